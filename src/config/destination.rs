//! `[destination.NAME]`: an external system.

use super::http;
use super::problem::Reported;
use super::secret::{Secrets, Sources};
use super::table::Table;
use crate::core::target::{Auth, Identity, Secret, Target, Tls};

pub(super) fn parse(name: &str, table: &Table<'_>, sources: &Sources<'_>) -> Result<Target, Reported> {
    let base_url = table
        .text("base_url")
        .and_then(|url| http::base_url(&url).map_err(|complaint| table.wrong("base_url", complaint)));
    let account = table.text_if("account");
    let (auth, tls) = (auth(table, sources), tls(table, sources));
    let (connect_timeout, max_in_flight) = (table.duration("connect_timeout"), table.integer("max_in_flight"));
    let public_only = table.boolean("public_only");
    Ok(Target {
        name: name.to_owned(),
        base_url: base_url?,
        account: account?,
        auth: auth?,
        tls: tls?,
        connect_timeout: connect_timeout?,
        max_in_flight: max_in_flight?,
        public_only: public_only?,
    })
}

fn auth(destination: &Table<'_>, sources: &Sources<'_>) -> Result<Auth, Reported> {
    let Some(table) = destination.sub("auth")? else { return Ok(Auth::None) };
    let given: Vec<_> = ["bearer", "basic", "header"].into_iter().filter(|key| table.item(key).is_some()).collect();
    match given.as_slice() {
        ["bearer"] => Ok(Auth::Bearer(header_secret(&table, "bearer", sources)?)),
        ["basic"] => basic(&table, sources),
        ["header"] => header(&table, sources),
        // `sign` has been refused as a key of a later version.
        [] if table.item("sign").is_some() => Err(Reported),
        _ => Err(destination.wrong("auth", "must have exactly one of `bearer`, `basic`, `header`")),
    }
}

fn tls(destination: &Table<'_>, sources: &Sources<'_>) -> Result<Tls, Reported> {
    let Some(table) = destination.sub("tls")? else { return Ok(Tls::default()) };
    let pem = |key: &str, marker: &str| {
        let text = sources.secret(&table, key)?;
        match &text {
            Some(text) if sources.secrets == Secrets::Resolve && !text.expose().contains(marker) => {
                Err(table.wrong(key, format!("holds no PEM text with `{marker}`")))
            }
            Some(_) | None => Ok(text),
        }
    };
    let (roots, certificate) = (pem("roots", "BEGIN CERTIFICATE"), pem("certificate", "BEGIN CERTIFICATE"));
    let key = pem("key", "PRIVATE KEY");
    let identity = match (certificate?, key?) {
        (Some(certificate), Some(key)) => Some(Identity { certificate: certificate.expose().to_owned(), key }),
        (None, None) => None,
        (Some(_), None) => return Err(table.missing("key")),
        (None, Some(_)) => return Err(table.missing("certificate")),
    };
    Ok(Tls { roots: roots?.map(|pem| pem.expose().to_owned()), identity })
}

fn basic(auth: &Table<'_>, sources: &Sources<'_>) -> Result<Auth, Reported> {
    let Some(table) = auth.sub("basic")? else { return Err(auth.missing("basic")) };
    let user = table.text("user").and_then(|user| match user.contains(':') || user.chars().any(char::is_control) {
        true => Err(table.wrong("user", "must not hold a colon or a control character")),
        false => Ok(user),
    });
    let password = required(&table, "password", sources);
    Ok(Auth::Basic { user: user?, password: password? })
}

fn header(auth: &Table<'_>, sources: &Sources<'_>) -> Result<Auth, Reported> {
    let Some(table) = auth.sub("header")? else { return Err(auth.missing("header")) };
    let name = table
        .text("name")
        .and_then(|name| http::request_header_name(&name).map_err(|complaint| table.wrong("name", complaint)));
    let value = header_secret(&table, "value", sources);
    Ok(Auth::Header { name: name?, value: value? })
}

fn required(table: &Table<'_>, key: &str, sources: &Sources<'_>) -> Result<Secret, Reported> {
    sources.secret(table, key)?.ok_or_else(|| table.missing(key))
}

/// A secret that travels as a header's value. What is wrong with it is said without showing it.
fn header_secret(table: &Table<'_>, key: &str, sources: &Sources<'_>) -> Result<Secret, Reported> {
    let secret = required(table, key, sources)?;
    match sources.secrets != Secrets::Resolve || http::is_header_value(secret.expose()) {
        true => Ok(secret),
        false => Err(table.wrong(key, "is a secret with a line break or control character, which no header can carry")),
    }
}
