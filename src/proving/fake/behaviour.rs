//! What the destination does with a request: whether it takes effect, and what the caller gets to know of it.

use std::time::Duration;

use bytes::Bytes;
use tokio::sync::watch;

use super::reply::Reply;
use super::retry_after::RetryAfter;

/// What happens to one request. Effect and answer have nothing to do with each other: that is the point.
#[derive(Clone, Debug)]
pub struct Behaviour {
    /// What it does to the world, before any waiting and answering.
    pub effect: Effect,
    /// How long after the request the effect happens, whether the caller is still there or not.
    pub effect_after: Duration,
    /// What the answer waits for. A caller who leaves meanwhile gets none.
    pub wait: Wait,
    /// What the caller gets.
    pub answer: Answer,
}

/// What a request does to the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    None,
    /// It takes effect unless one of the same key has: then the first one's receipt is given again.
    OncePerKey,
    /// It takes effect, whatever came before: a destination without key memory.
    EveryTime,
}

/// What an answer waits for.
#[derive(Clone, Debug)]
pub enum Wait {
    /// Nothing.
    No,
    /// Time.
    For(Duration),
    /// A test that says when.
    Gate(Gate),
}

/// What the caller gets.
#[derive(Clone, Debug)]
pub enum Answer {
    /// A complete answer. A 2xx after an effect that was not repeated is marked `Idempotent-Replayed: true`.
    Reply(Reply),
    /// A complete answer, `chunk` bytes at a time with a pause before each; then the connection is closed.
    Drip {
        /// The answer.
        reply: Reply,
        /// At least 1.
        chunk: usize,
        /// The pause.
        every: Duration,
    },
    /// A head that promises the whole body, and the first bytes of it.
    Cut {
        /// The answer.
        reply: Reply,
        /// How many bytes of its body are sent.
        keep: usize,
        /// What follows.
        ending: Ending,
    },
    /// These bytes, which need not be HTTP, or none at all.
    Raw {
        /// Sent as they are.
        bytes: Bytes,
        /// What follows.
        ending: Ending,
    },
}

/// What becomes of the connection after an answer that is not whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It stays open and silent until the caller closes it.
    Hold,
    /// FIN.
    Close,
    /// RST.
    Reset,
}

impl Behaviour {
    fn new(effect: Effect, answer: Answer) -> Self {
        Self { effect, effect_after: Duration::ZERO, wait: Wait::No, answer }
    }

    /// Takes effect once per key and answers 201 with a receipt, as a good destination does.
    pub fn accept() -> Self {
        Self::new(Effect::OncePerKey, Answer::Reply(Reply::receipt()))
    }

    /// No effect, and this answer.
    pub fn reply(reply: Reply) -> Self {
        Self::new(Effect::None, Answer::Reply(reply))
    }

    /// No effect, and this status (401, 403, 404, 422, 500 …).
    pub fn refuse(status: u16) -> Self {
        Self::reply(Reply::json(status, format!(r#"{{"error":{status}}}"#)))
    }

    /// No effect, 429, and when to come back.
    pub fn throttle(retry_after: &RetryAfter) -> Self {
        let value = retry_after.value(crate::clock::wall());
        Self::reply(Reply::json(429, r#"{"error":"slow down"}"#).header("retry-after", value))
    }

    /// No effect, and off to `location`.
    pub fn redirect(status: u16, location: &str) -> Self {
        Self::reply(Reply::new(status).header("location", location))
    }

    /// No effect and no answer, for as long as the caller waits.
    pub fn ignore() -> Self {
        Self::new(Effect::None, Answer::Reply(Reply::new(500))).withholding()
    }

    /// Takes effect each time it is asked.
    #[must_use]
    pub fn without_dedupe(mut self) -> Self {
        self.effect = Effect::EveryTime;
        self
    }

    /// Takes effect only that long after the request, as work in a queue does.
    #[must_use]
    pub fn taking_effect_after(mut self, delay: Duration) -> Self {
        self.effect_after = delay;
        self
    }

    /// Answers this instead; the effect stays (a 500 after the effect).
    #[must_use]
    pub fn answering(mut self, reply: Reply) -> Self {
        self.answer = Answer::Reply(reply);
        self
    }

    /// Answers after that long.
    #[must_use]
    pub fn delayed(mut self, delay: Duration) -> Self {
        self.wait = Wait::For(delay);
        self
    }

    /// Answers when the gate opens.
    #[must_use]
    pub fn held_by(mut self, gate: &Gate) -> Self {
        self.wait = Wait::Gate(gate.clone());
        self
    }

    /// Never answers; the connection stays open.
    #[must_use]
    pub fn withholding(self) -> Self {
        self.saying(Bytes::new(), Ending::Hold)
    }

    /// Closes the connection instead of answering.
    #[must_use]
    pub fn closing(self) -> Self {
        self.saying(Bytes::new(), Ending::Close)
    }

    /// Resets the connection instead of answering.
    #[must_use]
    pub fn resetting(self) -> Self {
        self.saying(Bytes::new(), Ending::Reset)
    }

    /// Sends half a status line, then resets the connection.
    #[must_use]
    pub fn stuttering(self) -> Self {
        self.saying(Bytes::from_static(b"HTTP/1.1 20"), Ending::Reset)
    }

    /// Sends these bytes for an answer.
    #[must_use]
    pub fn saying(mut self, bytes: impl Into<Bytes>, ending: Ending) -> Self {
        self.answer = Answer::Raw { bytes: bytes.into(), ending };
        self
    }

    /// Sends the reply in pieces of `chunk` bytes, with a pause before each.
    #[must_use]
    pub fn dripping(mut self, reply: Reply, chunk: usize, every: Duration) -> Self {
        self.answer = Answer::Drip { reply, chunk, every };
        self
    }

    /// Sends the reply's head and only `keep` bytes of its body.
    #[must_use]
    pub fn cutting(mut self, reply: Reply, keep: usize, ending: Ending) -> Self {
        self.answer = Answer::Cut { reply, keep, ending };
        self
    }
}

/// Holds answers back until it is opened; then it stays open.
#[derive(Clone, Debug)]
pub struct Gate(watch::Sender<bool>);

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}

impl Gate {
    /// A closed one.
    pub fn new() -> Self {
        Self(watch::Sender::new(false))
    }

    /// Lets everybody through.
    pub fn open(&self) {
        self.0.send_replace(true);
    }

    pub(super) async fn pass(&self) {
        // The sender is ours, so it cannot have gone.
        let _ = self.0.subscribe().wait_for(|open| *open).await;
    }
}
