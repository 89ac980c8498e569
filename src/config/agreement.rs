//! Whether an operation agrees with its contract. Each may be right by itself and the two together promise nothing.

use super::contract::Promise;
use super::problem::Reported;
use super::show;
use super::table::{Table, quoted};
use crate::core::contract::{Effect, Key, Place, Rung, Window};
use crate::core::request::RequestTemplate;
use crate::core::target::{Auth, Target};
use crate::core::terms::Policy;

/// Reports every contradiction.
pub(super) fn check(
    name: &str,
    table: &Table<'_>,
    policy: &Policy,
    promise: &Promise,
    request: &RequestTemplate,
    target: &Target,
) -> Result<(), Reported> {
    let key = promise.contract.key.as_ref();
    let mut refused = None;
    let mut refuse = |at: &str, message: String| {
        refused = Some(table.report(table.at(at), format!("operation {name:?}: {message}")));
    };
    if policy.effect == Effect::Keyed && key.is_none() {
        let contract = &promise.contract.name;
        refuse("effect", format!("effect \"keyed\" needs a key, and contract {contract:?} has none"));
    }
    if resends(promise)
        && let Some(message) = resend_is_possible(policy, promise)
    {
        refuse("contract", message);
    }
    if let Some(message) = key.and_then(|key| window_is_long_enough(policy, key)) {
        refuse("contract", message);
    }
    if let Some(message) = key.and_then(|key| place_is_there(key, promise.needs_place, request)) {
        refuse("request", message);
    }
    if let Auth::Header { name, .. } = &target.auth
        && (request.headers.iter().any(|(header, _)| header == name) || key.is_some_and(|key| is_header(key, name)))
    {
        refuse("request", format!("header `{name}` is set twice: the destination's `auth` has it too"));
    }
    refused.map_or(Ok(()), Err)
}

fn is_header(key: &Key, name: &str) -> bool {
    key.place == Place::Header(name.to_owned())
}

/// Whether any ladder of the contract has a resend.
fn resends(promise: &Promise) -> bool {
    let ladders = promise.contract.rules.iter().filter_map(|rule| rule.then.as_ref());
    ladders.chain([&promise.contract.reconcile]).any(|ladder| ladder.contains(&Rung::Resend))
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

fn place_is_there(key: &Key, needs_place: bool, request: &RequestTemplate) -> Option<String> {
    match &key.place {
        Place::Path(name) if needs_place && !request.path_takes(&key.place) => {
            Some(format!("the contract puts the key into the path; write `{{{name}}}` into `path`"))
        }
        Place::Header(name) if request.headers.iter().any(|(header, _)| header == name) => {
            Some(format!("`headers` must not set `{name}`: the contract puts the key there"))
        }
        Place::Query(name) if request.query.iter().any(|(parameter, _)| parameter == name) => {
            Some(format!("`query` must not set `{name}`: the contract puts the key there"))
        }
        Place::Path(_) | Place::Header(_) | Place::Query(_) | Place::Json(_) | Place::Form(_) => None,
    }
}
