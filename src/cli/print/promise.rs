//! What a destination promises about an operation, in words.

use super::text::name;
use super::words::span;
use crate::core::contract::{Absence, By, Contract, Effect, Key, KeyMode, Window};
use crate::core::target::Operation;

/// In a few words, for a table: "key 24 h, lookup by key", or "nothing".
pub fn short(operation: &Operation) -> String {
    let contract = &operation.terms.contract;
    let key = contract.key.as_ref().map(|key| match (key.mode, key.window) {
        (KeyMode::Dedupe | KeyMode::Conflict, Some(Window::For(window))) => format!("key {}", span(window)),
        (KeyMode::Dedupe | KeyMode::Conflict, Some(Window::Forever)) => "key for ever".to_owned(),
        (KeyMode::Dedupe | KeyMode::Conflict, None) => "key, window unknown".to_owned(),
        (KeyMode::Natural, _) => "natural key".to_owned(),
        (KeyMode::Receiver, _) => "receiver's own".to_owned(),
    });
    let lookup = contract.lookup.as_ref().map(|lookup| format!("lookup by {}", by(lookup.by)));
    let cancel = contract.cancel.as_ref().map(|_| "cancel by key".to_owned());
    let hint = contract.hint.as_ref().map(|_| "hint".to_owned());
    let promises: Vec<String> = [key, lookup, cancel, hint].into_iter().flatten().collect();
    if promises.is_empty() { "nothing".to_owned() } else { promises.join(", ") }
}

/// In a sentence or two.
pub fn long(operation: &Operation) -> String {
    let contract = &operation.terms.contract;
    let whose = name(&contract.name);
    let promises = promises(contract);
    let promised = if promises.is_empty() {
        format!("The destination promises nothing for this operation (contract {whose}): no key memory, no lookup.")
    } else {
        format!("The destination promises (contract {whose}): {}.", promises.join("; "))
    };
    match operation.terms.policy.effect {
        Effect::ReadOnly | Effect::Idempotent => promised + " By its owner's word a repeat is harmless.",
        Effect::Unreconcilable => promised + " It is never sent again unless a person decides so.",
        Effect::Keyed | Effect::Compensatable => promised,
    }
}

fn promises(contract: &Contract) -> Vec<String> {
    let lookup = contract.lookup.as_ref().map(|lookup| {
        let absence = match lookup.asking.absence {
            Absence::Never => "not finding it proves nothing".to_owned(),
            Absence::After(delay) => {
                format!("not finding it is proof from {} after the last send on", span(delay))
            }
        };
        format!("it can be asked by {}, and {absence}", by(lookup.by))
    });
    let cancel = contract.cancel.as_ref().map(|_| "it can be cancelled by its key".to_owned());
    [contract.key.as_ref().map(key), lookup, cancel].into_iter().flatten().collect()
}

fn key(key: &Key) -> String {
    let window = match key.window {
        Some(Window::For(window)) => format!("for {} from the first send on", span(window)),
        Some(Window::Forever) => "for as long as the object exists".to_owned(),
        None => "but it does not say for how long".to_owned(),
    };
    match key.mode {
        KeyMode::Dedupe => format!("a repeat under the same key gives the first result, {window}"),
        KeyMode::Conflict => format!("a repeat under the same key is refused recognisably, {window}"),
        KeyMode::Natural => "the same request again leaves the same result".to_owned(),
        KeyMode::Receiver => "duplicates arrive, and the receiver sorts them out by the key".to_owned(),
    }
}

fn by(by: By) -> &'static str {
    match by {
        By::Key => "key",
        By::Reference => "reference",
    }
}
