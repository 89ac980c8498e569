//! What reached the destination and what it did: the truth that the ledger is compared with.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::SystemTime;

use bytes::Bytes;
use hyper::HeaderMap;

use super::behaviour::Effect;

/// A request that arrived whole.
#[derive(Clone, Debug)]
pub struct Seen {
    /// From 1, in the order of their arrival.
    pub number: usize,
    /// The connection it came on, from 1.
    pub connection: usize,
    /// As sent.
    pub method: String,
    /// As sent, percent-encoding included.
    pub path: String,
    /// What followed the `?`, as sent.
    pub query: Option<String>,
    /// Names in lower case.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// What the destination recognises repeats by: `Idempotency-Key`, unless the fake was told otherwise.
    pub key: Option<String>,
    /// When its last byte had been read, by this machine's clock.
    pub at: SystemTime,
}

impl Seen {
    /// A header's value, the first if there are several, if it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The body as text, with U+FFFD for what is none.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Of everything that makes two requests ask for the same thing.
    fn content(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (&self.method, &self.path, &self.query, &self.body).hash(&mut hasher);
        hasher.finish()
    }
}

/// An effect, and how often it happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectRecord {
    /// The key it was asked under. Without one, every request is an effect of its own.
    pub key: Option<String>,
    /// The `Outbox-Action` of the first request.
    pub action: Option<String>,
    /// The first effect's.
    pub receipt: String,
    /// At least 1; more is a duplicate.
    pub times: usize,
    /// Requests recognised as repeats, without effect.
    pub replays: usize,
    /// Requests under the same key that asked for something else (method, path, query or body).
    pub other_content: usize,
}

/// What a request came to.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) receipt: Option<String>,
    pub(super) replayed: bool,
}

/// Everything the destination remembers.
#[derive(Debug, Default)]
pub(super) struct Record {
    pub(super) seen: Vec<Seen>,
    pub(super) effects: Vec<EffectRecord>,
    /// Effects beyond the first of the same action, or key where no action is named.
    pub(super) duplicates: usize,
    asked: HashMap<String, usize>,
    by_key: HashMap<String, (usize, u64)>,
    by_identity: HashMap<String, usize>,
    receipts: usize,
    numbers: usize,
}

impl Record {
    /// From 1.
    pub(super) fn next_number(&mut self) -> usize {
        self.numbers += 1;
        self.numbers
    }

    /// Counts a request under its key; how many there were before.
    pub(super) fn ask(&mut self, key: Option<&str>) -> usize {
        let Some(key) = key else { return 0 };
        match self.asked.get_mut(key) {
            Some(before) => {
                *before += 1;
                *before - 1
            }
            None => {
                self.asked.insert(key.to_owned(), 1);
                0
            }
        }
    }

    /// Lets a request take effect.
    pub(super) fn take_effect(&mut self, seen: &Seen, effect: Effect) -> Outcome {
        let content = seen.content();
        let known = seen.key.as_ref().and_then(|key| self.by_key.get(key)).copied();
        if let Some((index, first)) = known {
            self.effects[index].other_content += usize::from(first != content);
        }
        match (effect, known) {
            (Effect::None, Some(_) | None) => Outcome::default(),
            (Effect::OncePerKey, Some((index, _))) => {
                self.effects[index].replays += 1;
                Outcome { receipt: Some(self.effects[index].receipt.clone()), replayed: true }
            }
            (Effect::EveryTime, Some((index, _))) => {
                self.effects[index].times += 1;
                Outcome { receipt: Some(self.count(seen)), replayed: false }
            }
            (Effect::OncePerKey | Effect::EveryTime, None) => {
                let receipt = self.count(seen);
                if let Some(key) = &seen.key {
                    self.by_key.insert(key.clone(), (self.effects.len(), content));
                }
                self.effects.push(EffectRecord {
                    key: seen.key.clone(),
                    action: seen.header("outbox-action").map(str::to_owned),
                    receipt: receipt.clone(),
                    times: 1,
                    replays: 0,
                    other_content: 0,
                });
                Outcome { receipt: Some(receipt), replayed: false }
            }
        }
    }

    /// One more effect: its receipt.
    fn count(&mut self, seen: &Seen) -> String {
        self.receipts += 1;
        if let Some(identity) = seen.header("outbox-action").or(seen.key.as_deref()) {
            match self.by_identity.get_mut(identity) {
                Some(times) => {
                    *times += 1;
                    self.duplicates += 1;
                }
                None => drop(self.by_identity.insert(identity.to_owned(), 1)),
            }
        }
        format!("r-{}", self.receipts)
    }
}
