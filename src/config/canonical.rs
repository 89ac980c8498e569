//! The effective configuration in canonical form: defaults filled in, durations as they are understood, no secrets. What
//! `outboxd check` prints, so that a person sees what was understood (B76).

use std::fmt::{self, Write as _};
use std::time::Duration;

use super::key::{ENCODINGS, MODES};
use super::table::quoted;
use super::{Config, LogFormat, LogLevel, Promise, show};
use crate::core::contract::{Class, Effect, JsonIs, Key, KeyForm, Place, Rule, Rung, Source, StatusSet, Window};
use crate::core::request::{RequestTemplate, Template};
use crate::core::target::{Auth, Operation, Target};

impl Config {
    /// The effective configuration, as TOML but for the secrets. Contracts that no operation names are left out.
    pub fn describe(&self) -> String {
        let mut out = String::new();
        // Writing into a string cannot fail.
        let _ = self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) -> fmt::Result {
        writeln!(out, "[database]\nurl = {}", text(&format!("postgres://{}", self.database.place())))?;
        if let Some(place) = self.database.direct_place() {
            writeln!(out, "direct_url = {}", text(&format!("postgres://{place}")))?;
        }
        writeln!(out, "pool_size = {}", self.database.pool_size)?;
        let dispatcher = &self.dispatcher;
        writeln!(out, "\n[dispatcher]\nmax_in_flight = {}", dispatcher.max_in_flight)?;
        duration(out, "lease_margin", dispatcher.lease_margin)?;
        duration(out, "poll_interval", dispatcher.poll_interval)?;
        writeln!(out, "notify = {}", dispatcher.notify)?;
        duration(out, "drain_timeout", dispatcher.drain_timeout)?;
        writeln!(out, "\n[log]\nformat = {}", text(name_of(&LogFormat::ALL, &self.log.format)))?;
        writeln!(out, "level = {}", text(name_of(&LogLevel::ALL, &self.log.level)))?;
        duration(out, "stats_interval", self.log.stats_interval)?;
        for target in self.targets.values() {
            write_target(out, target)?;
        }
        for operation in self.operations.values() {
            self.write_operation(out, operation)?;
        }
        let used = |name: &str| self.operations.values().any(|operation| operation.terms.contract.name == name);
        for promise in self.contracts.values().filter(|promise| used(&promise.contract.name)) {
            write_contract(out, promise)?;
        }
        Ok(())
    }

    fn write_operation(&self, out: &mut String, operation: &Operation) -> fmt::Result {
        let Operation { name, meaning, owner, target, request, terms, response_max_bytes, cost } = operation;
        let policy = &terms.policy;
        writeln!(out, "\n[operation.{}]\ndestination = {}", quoted(name), text(target))?;
        write_request(out, request)?;
        writeln!(out, "contract = {}", text(&terms.contract.name))?;
        writeln!(out, "effect = {}", text(name_of(&Effect::ALL, &policy.effect)))?;
        writeln!(out, "meaning = {}\nowner = {}", text(meaning), text(owner))?;
        duration(out, "timeout", policy.timeout)?;
        writeln!(out, "attempts_max = {}", policy.attempts_max)?;
        duration(out, "elapsed_max", policy.elapsed_max)?;
        let (initial, max) = (text(&show(policy.backoff.initial)), text(&show(policy.backoff.max)));
        let multiplier = policy.backoff.multiplier;
        writeln!(out, "backoff = {{ initial = {initial}, multiplier = {multiplier:?}, max = {max} }}")?;
        duration(out, "retry_after_max", policy.retry_after_max)?;
        duration(out, "review_after", policy.review_after)?;
        duration(out, "resend_within", policy.resend_within)?;
        writeln!(out, "response_max_bytes = {response_max_bytes}")?;
        match cost.map(|cost| (cost.attempt, cost.max)) {
            Some((attempt, Some(max))) => writeln!(out, "cost = {{ attempt = {attempt:?}, max = {max:?} }}")?,
            Some((attempt, None)) => writeln!(out, "cost = {{ attempt = {attempt:?} }}")?,
            None => {}
        }
        if let Some(limits) = self.limits.get(name) {
            writeln!(out, "max_in_flight = {}", limits.max_in_flight)?;
            let (payload, identity) = (text(&show(limits.keep.payload)), text(&show(limits.keep.identity)));
            writeln!(out, "keep = {{ payload = {payload}, identity = {identity} }}")?;
        }
        Ok(())
    }
}

fn write_target(out: &mut String, target: &Target) -> fmt::Result {
    let Target { name, base_url, account, auth, connect_timeout, max_in_flight } = target;
    writeln!(out, "\n[destination.{}]\nbase_url = {}", quoted(name), text(base_url.source()))?;
    if let Some(account) = account {
        writeln!(out, "account = {}", text(account))?;
    }
    match auth {
        Auth::None => {}
        Auth::Bearer(_) => writeln!(out, "auth = {{ bearer = \"[secret]\" }}")?,
        Auth::Basic { user, .. } => {
            writeln!(out, "auth = {{ basic = {{ user = {}, password = \"[secret]\" }} }}", text(user))?;
        }
        Auth::Header { name, .. } => {
            writeln!(out, "auth = {{ header = {{ name = {}, value = \"[secret]\" }} }}", text(name))?;
        }
    }
    duration(out, "connect_timeout", *connect_timeout)?;
    writeln!(out, "max_in_flight = {max_in_flight}")
}

fn write_request(out: &mut String, request: &RequestTemplate) -> fmt::Result {
    let RequestTemplate { method, path, query, headers } = request;
    write!(out, "request = {{ method = {}, path = {}", text(method), text(path.source()))?;
    for (key, pairs) in [("query", query), ("headers", headers)] {
        if !pairs.is_empty() {
            let pair = |(name, value): &(String, Template)| format!("{} = {}", quoted(name), text(value.source()));
            write!(out, ", {key} = {{ {} }}", pairs.iter().map(pair).collect::<Vec<_>>().join(", "))?;
        }
    }
    writeln!(out, " }}")
}

fn write_contract(out: &mut String, promise: &Promise) -> fmt::Result {
    let contract = &promise.contract;
    let title = format!("contract.{}", quoted(&contract.name));
    writeln!(out, "\n[{title}]\nreconcile = {}", ladder(&contract.reconcile))?;
    if let Some(key) = &contract.key {
        write_key(out, &title, key, promise.needs_place)?;
    }
    let receipt = &contract.receipt;
    if !receipt.id.is_empty() || receipt.request_id.is_some() {
        writeln!(out, "[{title}.receipt]")?;
    }
    for (key, source) in [("id", receipt.id.first()), ("request_id", receipt.request_id.as_ref())] {
        match source {
            Some(Source::Header(name)) => writeln!(out, "{key} = {}", text(&format!("header:{name}")))?,
            Some(Source::Json(pointer)) => writeln!(out, "{key} = {}", text(&format!("json:{pointer}")))?,
            None => {}
        }
    }
    contract.rules.iter().try_for_each(|rule| write_rule(out, &title, rule))
}

fn write_key(out: &mut String, title: &str, key: &Key, has_place: bool) -> fmt::Result {
    writeln!(out, "[{title}.key]\nmode = {}", text(name_of(&MODES, &Some(key.mode))))?;
    let place = match &key.place {
        Place::Header(name) => format!("header:{name}"),
        Place::Json(pointer) => format!("json:{pointer}"),
        Place::Form(name) => format!("form:{name}"),
        Place::Query(name) => format!("query:{name}"),
        Place::Path(name) => format!("path:{name}"),
    };
    if has_place {
        writeln!(out, "place = {}", text(&place))?;
    }
    writeln!(out, "form = {}", text(name_of(&KeyForm::ALL, &key.form)))?;
    writeln!(out, "encode = {}", text(name_of(&ENCODINGS, &key.encode)))?;
    match key.window {
        Some(Window::For(window)) => duration(out, "window", window)?,
        Some(Window::Forever) => writeln!(out, "window = \"forever\"")?,
        None => {}
    }
    duration(out, "margin", key.margin)?;
    duration(out, "min_gap", key.min_gap)
}

fn write_rule(out: &mut String, title: &str, rule: &Rule) -> fmt::Result {
    let mut parts = Vec::new();
    if let Some(sets) = &rule.when.status {
        let set = |set: &StatusSet| match set {
            StatusSet::Exact(status) => format!("\"{status}\""),
            StatusSet::Class(class) => format!("\"{class}xx\""),
        };
        parts.push(format!("status = [{}]", sets.iter().map(set).collect::<Vec<_>>().join(", ")));
    }
    let header =
        |(name, is): &(String, crate::core::contract::TextIs)| format!("{} = {}", quoted(name), text(is.pattern()));
    if !rule.when.headers.is_empty() {
        parts.push(format!("header = {{ {} }}", rule.when.headers.iter().map(header).collect::<Vec<_>>().join(", ")));
    }
    let json = |(pointer, is): &(String, JsonIs)| {
        let is = match is {
            JsonIs::Text(is) => text(is.pattern()),
            JsonIs::Present => text("*"),
            JsonIs::Exactly(value @ (serde_json::Value::Array(_) | serde_json::Value::Object(_))) => {
                text(&value.to_string())
            }
            JsonIs::Exactly(value) => value.to_string(),
        };
        format!("{} = {is}", quoted(pointer))
    };
    if !rule.when.json.is_empty() {
        parts.push(format!("json = {{ {} }}", rule.when.json.iter().map(json).collect::<Vec<_>>().join(", ")));
    }
    writeln!(out, "[[{title}.rule]]\nwhen = {{ {} }}", parts.join(", "))?;
    writeln!(out, "class = {}", text(name_of(&Class::ALL, &rule.class)))?;
    if let Some(then) = &rule.then {
        writeln!(out, "then = {}", ladder(then))?;
    }
    rule.wait.map_or(Ok(()), |wait| duration(out, "wait", wait))
}

fn ladder(rungs: &[Rung]) -> String {
    format!("[{}]", rungs.iter().map(|rung| text(rung.as_str())).collect::<Vec<_>>().join(", "))
}

fn duration(out: &mut String, key: &str, value: Duration) -> fmt::Result {
    writeln!(out, "{key} = {}", text(&show(value)))
}

fn name_of<T: PartialEq>(names: &[(T, &'static str)], value: &T) -> &'static str {
    names.iter().find(|(known, _)| known == value).map_or("", |(_, name)| name)
}

/// A string as TOML writes it.
fn text(value: &str) -> String {
    toml::Value::from(value).to_string()
}
