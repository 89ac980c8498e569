//! `[operation.NAME]`: a kind of effect, what its owner allows, and whether that agrees with what is promised.

use std::collections::BTreeMap;
use std::time::Duration;

use super::agreement::{self, Parts};
use super::contract::Promise;
use super::nearest::did_you_mean;
use super::problem::Reported;
use super::request;
use super::table::Table;
use crate::core::contract::Effect;
use crate::core::retry::Backoff;
use crate::core::target::{Cost, Operation, Target, pins};
use crate::core::terms::{Policy, Terms};

/// What the daemon itself observes for an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Requests at once from this daemon; the destination's where the operation has none.
    pub max_in_flight: u32,
    /// The same of one tenant; `None` = no other bound than that.
    pub tenant_max_in_flight: Option<u32>,
    /// How long closed actions are remembered.
    pub keep: Keep,
    /// The owner accepts what nobody has verified of the contract.
    pub allow_unverified: bool,
}

/// How long closed actions are remembered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Keep {
    /// Bodies and history.
    pub payload: Duration,
    /// Retry keys and outcomes; at least as long.
    pub identity: Duration,
}

/// What an operation may refer to. `None` = it exists, and what is wrong with it is reported.
pub(super) struct Known<'a> {
    pub(super) targets: &'a BTreeMap<String, Option<Target>>,
    pub(super) promises: &'a BTreeMap<String, Option<Promise>>,
}

pub(super) fn parse(name: &str, table: &Table<'_>, known: &Known<'_>) -> Result<(Operation, Limits), Reported> {
    let target = refer(table, "destination", known.targets);
    let promise = refer(table, "contract", known.promises);
    let request = request::parse(table);
    let (meaning, owner) = (table.text("meaning"), table.text("owner"));
    let cost = cost(table);
    let policy = policy(table, promise.ok(), cost.ok().flatten());
    let response_max_bytes = table.integer("response_max_bytes");
    let (max_in_flight, keep) = (table.integer_if("max_in_flight"), keep(table));
    let (allow_unverified, hold_on_failure) = (table.boolean("allow_unverified"), table.boolean("hold_on_failure"));
    let tenant_max_in_flight = table.integer_if("tenant_max_in_flight");
    let (target, promise, request, policy) = (target?, promise?, request?, policy?);
    let allow_unverified = allow_unverified?;
    let parts = Parts { policy: &policy, promise, request: &request, target, allow_unverified };
    let agreed = agreement::check(name, table, &parts);
    let contract = promise.contract.clone();
    let pins = pins(target, &request, &contract);
    let operation = Operation {
        name: name.to_owned(),
        meaning: meaning?,
        owner: owner?,
        target: target.name.clone(),
        request,
        terms: Terms { policy, contract, pins },
        response_max_bytes: response_max_bytes? as usize,
        cost: cost?,
        hold_on_failure: hold_on_failure?,
    };
    agreed?;
    let max_in_flight = max_in_flight?.unwrap_or(target.max_in_flight);
    Ok((
        operation,
        Limits { max_in_flight, tenant_max_in_flight: tenant_max_in_flight?, keep: keep?, allow_unverified },
    ))
}

/// What the name under `key` stands for.
fn refer<'k, T>(table: &Table<'_>, key: &str, known: &'k BTreeMap<String, Option<T>>) -> Result<&'k T, Reported> {
    let name = table.text(key)?;
    match known.get(&name) {
        Some(Some(found)) => Ok(found),
        Some(None) => Err(Reported),
        None => {
            let near = did_you_mean(&name, known.keys().map(String::as_str));
            let is_far = near.is_empty() && key == "contract";
            let hint = if is_far { "; `outboxd contracts` lists them".to_owned() } else { near };
            Err(table.wrong(key, format!("names {name:?}, which does not exist{hint}")))
        }
    }
}

/// How late a repeat may leave where neither the operation nor its contract says it.
const RESEND_WITHIN: Duration = Duration::from_secs(3600);

fn policy(table: &Table<'_>, promise: Option<&Promise>, cost: Option<Cost>) -> Result<Policy, Reported> {
    let effect = table.choice("effect", &Effect::ALL);
    let (timeout, attempts_max) = (table.duration("timeout"), table.integer("attempts_max"));
    let (elapsed_max, backoff) = (table.duration("elapsed_max"), backoff(table));
    let (retry_after_max, review_after) = (table.duration("retry_after_max"), table.duration("review_after"));
    let resend_within = table.duration_if("resend_within");
    let promised = promise.and_then(|promise| promise.resend_within);
    Ok(Policy {
        effect: effect?,
        timeout: timeout?,
        attempts_max: attempts_max?,
        affordable: cost.and_then(affordable),
        elapsed_max: elapsed_max?,
        backoff: backoff?,
        retry_after_max: retry_after_max?,
        review_after: review_after?,
        resend_within: resend_within?.or(promised).unwrap_or(RESEND_WITHIN),
    })
}

fn backoff(operation: &Table<'_>) -> Result<Backoff, Reported> {
    let table = operation.sub_or_default("backoff")?;
    let (initial, multiplier, max) = (table.duration("initial"), table.number("multiplier"), table.duration("max"));
    let backoff = Backoff { initial: initial?, multiplier: multiplier?, max: max? };
    if backoff.initial > backoff.max {
        let (initial, max) = (super::show(backoff.initial), super::show(backoff.max));
        return Err(table.wrong("initial", format!("must not be longer than `max` ({max}), found {initial}")));
    }
    Ok(backoff)
}

fn cost(operation: &Table<'_>) -> Result<Option<Cost>, Reported> {
    let Some(table) = operation.sub("cost")? else { return Ok(None) };
    let (attempt, max) = (table.number("attempt"), table.number_if("max"));
    let cost = Cost { attempt: attempt?, max: max? };
    match cost.max {
        Some(max) if max < cost.attempt => {
            let attempt = cost.attempt;
            Err(table.wrong("max", format!("must be at least what one attempt costs ({attempt}), found {max}")))
        }
        Some(_) | None => Ok(Some(cost)),
    }
}

/// How many attempts the most that may be spent pays for. A hair is forgiven: 0.3 pays for three times 0.1.
fn affordable(cost: Cost) -> Option<u32> {
    let attempts = (cost.max? / cost.attempt * (1.0 + f64::EPSILON * 4.0)).floor();
    // Dividing by nothing gives no number of attempts; a cast of a larger one stops at the largest.
    attempts.is_finite().then_some(attempts as u32)
}

fn keep(operation: &Table<'_>) -> Result<Keep, Reported> {
    let table = operation.sub_or_default("keep")?;
    let (payload, identity) = (table.duration("payload"), table.duration("identity"));
    let keep = Keep { payload: payload?, identity: identity? };
    if keep.payload > keep.identity {
        let (payload, identity) = (super::show(keep.payload), super::show(keep.identity));
        return Err(table.wrong("payload", format!("must not be longer than `identity` ({identity}), found {payload}")));
    }
    Ok(keep)
}
