//! Whether an operation agrees with its contract. Each may be right by itself and the two together promise nothing.

use super::contract::Promise;
use super::problem::Reported;
use super::table::{Table, quoted};
use super::{question, show};
use crate::core::contract::{Absence, Contract, Effect, Key, Lookup, Place, Rung, Window};
use crate::core::request::RequestTemplate;
use crate::core::target::{Auth, Target};
use crate::core::terms::Policy;

/// What has to agree.
pub(super) struct Parts<'a> {
    pub(super) policy: &'a Policy,
    pub(super) promise: &'a Promise,
    pub(super) request: &'a RequestTemplate,
    pub(super) target: &'a Target,
    pub(super) allow_unverified: bool,
}

/// Reports every contradiction.
pub(super) fn check(name: &str, table: &Table<'_>, parts: &Parts<'_>) -> Result<(), Reported> {
    let Parts { policy, promise, request, target, allow_unverified } = parts;
    let contract = &promise.contract;
    let key = contract.key.as_ref();
    let mut refused = None;
    let mut refuse = |at: &str, message: String| {
        refused = Some(table.report(table.at(at), format!("operation {name:?}: {message}")));
    };
    let unverified = promise.unverified();
    if !unverified.is_empty() && !allow_unverified {
        refuse(
            "contract",
            format!(
                "contract {:?} rests on what nobody has verified: {}; read it up, or accept it with `allow_unverified = \
                 true`",
                contract.name,
                unverified.join(", ")
            ),
        );
    }
    if policy.effect == Effect::Keyed && key.is_none() && !(contract.reference.is_some() && contract.lookup.is_some()) {
        let contract = &contract.name;
        refuse(
            "effect",
            format!("effect \"keyed\" needs a key, or a `ref` with a lookup, and contract {contract:?} has neither"),
        );
    }
    if reaches(contract, Rung::Resend)
        && let Some(message) = resend_is_possible(policy, promise)
    {
        refuse("contract", message);
    }
    if let Some(message) = key.and_then(|key| window_is_long_enough(policy, key)) {
        refuse("contract", message);
    }
    if contract.sign.is_some() && target.signing.is_none() {
        let (contract, target) = (&contract.name, quoted(&target.name));
        refuse(
            "contract",
            format!("contract {contract:?} needs signed requests; give [destination.{target}] an `auth` with `sign`"),
        );
    }
    for header in signed_twice(request, promise, target) {
        refuse("request", format!("header `{header}` is set twice: the destination's `sign` writes it too"));
    }
    for message in in_time(policy, contract) {
        refuse("review_after", message);
    }
    for message in asks_by_what_is_sent(promise, request) {
        refuse("request", message);
    }
    for (what, place) in places(promise) {
        if let Some(message) = place_is_there(what, place, request, target) {
            refuse("request", message);
        }
    }
    if let Auth::Header { name, .. } = &target.auth
        && request.headers.iter().any(|(header, _)| header == name)
    {
        refuse("request", format!("header `{name}` is set twice: the destination's `auth` has it too"));
    }
    refused.map_or(Ok(()), Err)
}

/// Whether any ladder of the contract has that rung.
pub(super) fn reaches(contract: &Contract, rung: Rung) -> bool {
    let ladders = contract.rules.iter().filter_map(|rule| rule.then.as_ref());
    ladders.chain([&contract.reconcile]).any(|ladder| ladder.contains(&rung))
}

fn resend_is_possible(policy: &Policy, promise: &Promise) -> Option<String> {
    let contract = &promise.contract.name;
    let within = |policy: &Policy| {
        (policy.resend_within <= policy.timeout).then(|| {
            let (within, timeout) = (show(policy.resend_within), show(policy.timeout));
            format!("`resend_within` ({within}) must be longer than `timeout` ({timeout}), or nothing is ever resent")
        })
    };
    match &promise.contract.key {
        _ if policy.effect.repeats_freely() => within(policy),
        Some(key) if !key.mode.needs_window() => within(policy),
        Some(key) if key.window.is_some() => None,
        Some(_) => {
            let remedy = match promise.built_in {
                false => format!("add `window` to [contract.{}.key]", quoted(contract)),
                true => format!(
                    "write a [contract.…] of your own with `extends = {contract:?}` and `key.window`, and name it here"
                ),
            };
            Some(format!(
                "`resend` needs to know how long the destination remembers a key; {remedy} or take `resend` out of \
                 `reconcile`"
            ))
        }
        None => Some(format!(
            "`resend` needs a key by which the destination recognises a repeat; add [contract.{}.key] or take `resend` \
             out of `reconcile`",
            quoted(contract)
        )),
    }
}

/// A repeat may leave until `first sent + window - margin - timeout`, which must not have passed when it is due.
fn window_is_long_enough(policy: &Policy, key: &Key) -> Option<String> {
    let Some(Window::For(window)) = key.window.filter(|_| key.mode.needs_window()) else { return None };
    let usable = window.saturating_sub(key.margin);
    (usable <= policy.timeout).then(|| {
        format!(
            "the key's `window` ({}) less its `margin` ({}) must be longer than `timeout` ({}), or nothing is ever resent",
            show(window),
            show(key.margin),
            show(policy.timeout)
        )
    })
}

/// Whoever asks must do so before a person is asked, and get an answer that can still prove something.
fn in_time(policy: &Policy, contract: &Contract) -> Vec<String> {
    let lookup = contract.lookup.as_ref().map(|lookup| ("lookup", Rung::Lookup, &lookup.asking));
    let cancel = contract.cancel.as_ref().map(|cancel| ("cancel", Rung::Cancel, &cancel.asking));
    let mut messages = Vec::new();
    for (what, _, asking) in [lookup, cancel].into_iter().flatten().filter(|(_, rung, _)| reaches(contract, *rung)) {
        let review_after = policy.review_after;
        if asking.first_after >= review_after {
            let first_after = show(asking.first_after);
            messages.push(format!(
                "`review_after` ({}) must be longer than `first_after` of the contract's {what} ({first_after}), or the \
                 destination is never asked",
                show(review_after)
            ));
        } else if let Some(absence) = asking.absence.after().filter(|absence| *absence >= review_after) {
            messages.push(format!(
                "`review_after` ({}) must be longer than the time after which the contract's {what} is believed ({}), \
                 or it never is",
                show(review_after),
                show(absence)
            ));
        }
    }
    messages
}

/// A question whose answer is proof goes by what the requests carry. A natural key without a place in the path stands
/// nowhere: the destination has never heard of it.
fn asks_by_what_is_sent(promise: &Promise, request: &RequestTemplate) -> Vec<String> {
    let contract = &promise.contract;
    let nowhere = |key: &&Key| !promise.needs_place && !request.path_takes(&key.place);
    let Some(Place::Path(name)) = contract.key.as_ref().filter(nowhere).map(|key| &key.place) else { return vec![] };
    let by_key_alone = |lookup: &&Lookup| question::asks_by(&lookup.question) == (true, false);
    let believed = contract.lookup.iter().filter(|lookup| lookup.asking.absence != Absence::Never);
    let lookup = believed.filter(by_key_alone).map(|_| ("lookup", Rung::Lookup));
    let cancel = contract.cancel.iter().map(|_| ("cancel", Rung::Cancel));
    let asking = lookup.chain(cancel).filter(|(_, rung)| reaches(contract, *rung));
    let complaint = |(what, _)| {
        format!(
            "the contract's {what} goes by `{{key}}` and its word is proof, but the operation's requests carry no key; \
             write `{{{name}}}` into `path`"
        )
    };
    asking.map(complaint).collect()
}

/// What is put into a request, and where.
fn places(promise: &Promise) -> Vec<(&'static str, &Place)> {
    let contract = &promise.contract;
    let key = contract.key.iter();
    let key_place = key.clone().filter(|_| promise.needs_place).map(|key| (THE_KEY, &key.place));
    let reference = contract.reference.iter().map(|reference| ("our reference", &reference.place));
    let also = key.flat_map(|key| &key.also).map(|(place, _)| ("a value", place));
    key_place.chain(reference).chain(also).collect()
}

/// The headers of the signature that something else sets too. Only the contract's key may be the id.
fn signed_twice<'a>(request: &'a RequestTemplate, promise: &'a Promise, target: &Target) -> Vec<&'a str> {
    let Some(signing) = &target.signing else { return vec![] };
    let written = signing.scheme.headers();
    let set = request.headers.iter().map(|(header, _)| header.as_str());
    let planted = places(promise).into_iter().filter_map(|(what, place)| match place {
        Place::Header(name) if what != THE_KEY || *name != written[0] => Some(name.as_str()),
        Place::Header(_) | Place::Path(_) | Place::Query(_) | Place::Json(_) | Place::Form(_) => None,
    });
    set.chain(planted).filter(|header| written.contains(header)).collect()
}

const THE_KEY: &str = "the key";

fn place_is_there(what: &str, place: &Place, request: &RequestTemplate, target: &Target) -> Option<String> {
    match place {
        Place::Path(name) if !request.path_takes(place) => {
            Some(format!("the contract puts {what} into the path; write `{{{name}}}` into `path`"))
        }
        Place::Header(name) if matches!(&target.auth, Auth::Header { name: auth, .. } if auth == name) => {
            Some(format!("header `{name}` is set twice: the destination's `auth` has it too"))
        }
        Place::Header(name) if name == "authorization" && target.auth != Auth::None => {
            Some(format!("header `{name}` is set twice: the destination's `auth` has it too"))
        }
        Place::Header(name) if request.headers.iter().any(|(header, _)| header == name) => {
            Some(format!("`headers` must not set `{name}`: the contract puts {what} there"))
        }
        Place::Query(name) if request.query.iter().any(|(parameter, _)| parameter == name) => {
            Some(format!("`query` must not set `{name}`: the contract puts {what} there"))
        }
        Place::Path(_) | Place::Header(_) | Place::Query(_) | Place::Json(_) | Place::Form(_) => None,
    }
}
