//! The effective configuration in canonical form: defaults filled in, durations as they are understood, no secrets. What
//! `outboxd check` prints, so that a person sees what was understood (B76).

mod contract;

use std::fmt::{self, Write as _};
use std::time::Duration;

use super::table::quoted;
use super::{Config, LogFormat, LogLevel, show};
use crate::core::contract::Effect;
use crate::core::credentials::{ClientAuth, ClientCredentials, Scheme, Signing};
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
        if let Some(journal) = &dispatcher.journal {
            writeln!(out, "journal = {}", text(&journal.to_string_lossy()))?;
        }
        writeln!(out, "bytes_in_flight_max = {}", dispatcher.bytes_in_flight_max)?;
        writeln!(out, "body_max_bytes = {}", dispatcher.body_max_bytes)?;
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
            write!(out, "\n{}", promise.describe())?;
        }
        Ok(())
    }

    fn write_operation(&self, out: &mut String, operation: &Operation) -> fmt::Result {
        let Operation { name, meaning, owner, target, request, terms, response_max_bytes, cost, hold_on_failure } =
            operation;
        let policy = &terms.policy;
        writeln!(out, "\n[operation.{}]\ndestination = {}", quoted(name), text(target))?;
        writeln!(out, "request = {}", inline(request_parts(request)))?;
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
        writeln!(out, "hold_on_failure = {hold_on_failure}")?;
        if let Some(limits) = self.limits.get(name) {
            writeln!(out, "max_in_flight = {}", limits.max_in_flight)?;
            if let Some(max) = limits.tenant_max_in_flight {
                writeln!(out, "tenant_max_in_flight = {max}")?;
            }
            let (payload, identity) = (text(&show(limits.keep.payload)), text(&show(limits.keep.identity)));
            writeln!(out, "keep = {{ payload = {payload}, identity = {identity} }}")?;
            writeln!(out, "allow_unverified = {}", limits.allow_unverified)?;
        }
        Ok(())
    }
}

fn write_target(out: &mut String, target: &Target) -> fmt::Result {
    let Target { name, base_url, account, auth, signing, tls, connect_timeout, max_in_flight, rate, public_only, http } =
        target;
    writeln!(out, "\n[destination.{}]\nbase_url = {}", quoted(name), text(base_url.source()))?;
    if let Some(account) = account {
        writeln!(out, "account = {}", text(account))?;
    }
    let any_host = (*auth != Auth::None && target.host_from_data()).then(|| ("any_host", "true".to_owned()));
    let auth: Vec<_> = auth_parts(auth).into_iter().chain(signing.as_ref().map(signing_part)).chain(any_host).collect();
    if !auth.is_empty() {
        writeln!(out, "auth = {}", inline(auth))?;
    }
    let shown =
        [("roots", tls.roots.is_some()), ("certificate", tls.identity.is_some()), ("key", tls.identity.is_some())];
    let shown: Vec<_> =
        shown.into_iter().filter(|(_, given)| *given).map(|(key, _)| format!("{key} = \"[secret]\"")).collect();
    if !shown.is_empty() {
        writeln!(out, "tls = {{ {} }}", shown.join(", "))?;
    }
    duration(out, "connect_timeout", *connect_timeout)?;
    writeln!(out, "max_in_flight = {max_in_flight}")?;
    if let Some(rate) = rate {
        writeln!(out, "rate = {}", text(&super::pace::show_rate(*rate)))?;
    }
    writeln!(out, "public_only = {}", *public_only || target.host_from_data())?;
    writeln!(out, "http = {}", text(http.as_str()))
}

/// How the destination knows us, without the secret.
fn auth_parts(auth: &Auth) -> Option<(&'static str, String)> {
    let secret = || text("[secret]");
    match auth {
        Auth::None => None,
        Auth::Bearer(_) => Some(("bearer", secret())),
        Auth::Basic { user, .. } => Some(("basic", inline([("user", text(user)), ("password", secret())]))),
        Auth::Header { name, .. } => Some(("header", inline([("name", text(name)), ("value", secret())]))),
        Auth::OAuth2(client) => {
            let ClientCredentials { token_url, client_id, client_auth, scope, audience, .. } = client;
            let mut parts = vec![("token_url", text(token_url.source())), ("client_id", text(client_id))];
            parts.push(("client_secret", secret()));
            parts.push(("client_auth", text(name_of(&ClientAuth::ALL, client_auth))));
            parts.extend(scope.as_ref().map(|scope| ("scope", text(scope))));
            parts.extend(audience.as_ref().map(|audience| ("audience", text(audience))));
            Some(("oauth2", inline(parts)))
        }
    }
}

fn signing_part(signing: &Signing) -> (&'static str, String) {
    let secrets = texts(signing.keys.iter().map(|_| "[secret]"));
    ("sign", inline([("scheme", text(name_of(&Scheme::ALL, &signing.scheme))), ("secrets", secrets)]))
}

fn request_parts(request: &RequestTemplate) -> Vec<(&'static str, String)> {
    let RequestTemplate { method, path, query, headers } = request;
    let mut parts = vec![("method", text(method)), ("path", text(path.source()))];
    let pair = |(name, value): &(String, Template)| (quoted(name), text(value.source()));
    for (key, pairs) in [("query", query), ("headers", headers)] {
        if !pairs.is_empty() {
            parts.push((key, inline(pairs.iter().map(pair))));
        }
    }
    parts
}

/// A table in one line.
fn inline<K: fmt::Display>(pairs: impl IntoIterator<Item = (K, String)>) -> String {
    let pairs: Vec<_> = pairs.into_iter().map(|(key, value)| format!("{key} = {value}")).collect();
    if pairs.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", pairs.join(", ")) }
}

/// A list of strings.
fn texts<T: AsRef<str>>(values: impl IntoIterator<Item = T>) -> String {
    format!("[{}]", values.into_iter().map(|value| text(value.as_ref())).collect::<Vec<_>>().join(", "))
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
