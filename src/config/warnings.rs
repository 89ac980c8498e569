//! What an operation's owner should know and may want: nothing here is refused.

use std::fmt;

use super::contract::Promise;
use super::{Config, question, show};
use crate::core::contract::{Absence, Contract, Effect, Lookup, Place, Rung, Window};
use crate::core::target::{Auth, Operation};

/// Something to know about an operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Warning {
    /// The operation's name.
    pub operation: String,
    /// The sentence that goes on from it.
    pub sentence: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.operation, self.sentence)
    }
}

impl Config {
    /// What the owners of operations should know, in the order of the operations.
    pub fn warnings(&self) -> Vec<Warning> {
        let of = |operation: &Operation| -> Vec<Warning> {
            let sentences = self.sentences(operation);
            sentences.map(|sentence| Warning { operation: operation.name.clone(), sentence }).collect()
        };
        self.operations.values().flat_map(of).collect()
    }

    fn sentences(&self, operation: &Operation) -> impl Iterator<Item = String> {
        let promise = self.contracts.get(&operation.terms.contract.name);
        let unverified = promise.map(Promise::unverified).filter(|unverified| !unverified.is_empty());
        let unverified = unverified.map(|what| format!("it rests on what nobody has verified: {}", what.join(", ")));
        [
            nothing_settles(operation),
            short_memory(operation),
            found_is_no_proof(operation),
            nothing_behind(operation),
            cancel_is_never_final(operation),
            promise.and_then(|promise| self.unnamed_account(operation, promise)),
            self.signed_unasked(operation),
            self.shown_to_anyone(operation),
            unverified,
        ]
        .into_iter()
        .flatten()
    }

    fn signed_unasked(&self, operation: &Operation) -> Option<String> {
        let target = self.targets.get(&operation.target)?;
        let contract = &operation.terms.contract;
        (target.signing.is_some() && contract.sign.is_none()).then(|| {
            format!(
                "[destination.{}] signs its requests, and contract {:?} does not say that anybody looks at signatures \
                 (`sign`)",
                target.name, contract.name
            )
        })
    }

    /// A signature gives nothing away; all other credentials are the receiver's to keep.
    fn shown_to_anyone(&self, operation: &Operation) -> Option<String> {
        let target = self.targets.get(&operation.target)?;
        (target.host_from_data() && target.auth != Auth::None).then(|| {
            format!(
                "the host of [destination.{}] comes from params, and its credentials are sent there: whoever writes \
                 params can have them",
                target.name
            )
        })
    }

    fn unnamed_account(&self, operation: &Operation, promise: &Promise) -> Option<String> {
        let target = self.targets.get(&operation.target)?;
        let pinned = promise.key_notes.pins.contains(&"credential-account");
        (pinned && (target.auth != Auth::None || target.signing.is_some()) && target.account.is_none()).then(|| {
            format!(
                "its contract holds a key to the account that used it, and [destination.{}] names no `account`: nobody \
                 would notice that the credentials have become another's",
                target.name
            )
        })
    }
}

/// What is tried for an operation, in order. One that is unreconcilable never resends.
pub fn ladder(operation: &Operation) -> Vec<Rung> {
    let resends = operation.terms.policy.effect != Effect::Unreconcilable;
    let rungs = operation.terms.contract.reconcile.iter().copied();
    rungs.filter(|rung| resends || *rung != Rung::Resend).collect()
}

fn nothing_settles(operation: &Operation) -> Option<String> {
    (ladder(operation) == [Rung::Review]).then(|| {
        let owner = &operation.owner;
        format!("nothing can settle an unknown outcome; every one becomes a review for {owner}")
    })
}

fn short_memory(operation: &Operation) -> Option<String> {
    let policy = &operation.terms.policy;
    let key = operation.terms.contract.key.as_ref().filter(|key| key.mode.needs_window())?;
    let Some(Window::For(window)) = key.window else { return None };
    let resends = ladder(operation).contains(&Rung::Resend) && !policy.effect.repeats_freely();
    (resends && window < policy.elapsed_max).then(|| {
        format!(
            "the destination remembers a key for {}, and attempts go on for {} (`elapsed_max`): an outcome that is \
             unknown for longer is not resent any more",
            show(window),
            show(policy.elapsed_max)
        )
    })
}

/// The lookup that is climbed to.
fn lookup(operation: &Operation) -> Option<&Lookup> {
    operation.terms.contract.lookup.as_ref().filter(|_| ladder(operation).contains(&Rung::Lookup))
}

fn found_is_no_proof(operation: &Operation) -> Option<String> {
    let lookup = lookup(operation)?;
    let contract: &Contract = &operation.terms.contract;
    // A natural key without a placeholder in the path is the application's own name for the resource.
    let carried = |place: &Place| !matches!(place, Place::Path(_)) || operation.request.path_takes(place);
    let key = contract.key.as_ref().map(|key| &key.place).filter(|place| carried(place));
    let reference = contract.reference.as_ref().map(|reference| &reference.place);
    let compares =
        |ours: Option<&Place>| ours.is_some_and(|ours| lookup.compare.iter().any(|compare| compare.sent == *ours));
    let (by_key, by_reference) = question::asks_by(&lookup.question);
    let is_proof =
        (by_key && key.is_some()) || (by_reference && reference.is_some()) || compares(key) || compares(reference);
    (!is_proof).then(|| {
        format!(
            "what its lookup finds is no proof, because it neither asks by `{{key}}` or `{{ref}}` nor compares one; all \
             that is found becomes a review for {}",
            operation.owner
        )
    })
}

fn nothing_behind(operation: &Operation) -> Option<String> {
    let lookup = lookup(operation)?;
    let rungs = ladder(operation);
    let nothing_else = rungs == [Rung::Lookup, Rung::Review];
    (nothing_else && lookup.asking.absence == Absence::Never).then(|| {
        format!(
            "its lookup can prove that it happened, never that it did not (`absence` is \"never\"), and nothing else is \
             tried; what is not found within {} (`review_after`) becomes a review for {}",
            show(operation.terms.policy.review_after),
            operation.owner
        )
    })
}

fn cancel_is_never_final(operation: &Operation) -> Option<String> {
    let cancel = operation.terms.contract.cancel.as_ref()?;
    let cancels = ladder(operation).contains(&Rung::Cancel);
    (cancels && cancel.asking.absence == Absence::Never).then(|| {
        format!(
            "a confirmed cancel is never final (`absence` is \"never\"); every one becomes a review for {}",
            operation.owner
        )
    })
}
