//! `[destination.NAME]`: an external system.

use super::http;
use super::pace;
use super::problem::{At, Reported};
use super::secret::{Secrets, Sources};
use super::table::Table;
use crate::core::credentials::{ClientAuth, ClientCredentials, Scheme, Signing, SigningKey};
use crate::core::target::{Auth, Http, Identity, Secret, Target, Tls};

pub(super) fn parse(name: &str, table: &Table<'_>, sources: &Sources<'_>) -> Result<Target, Reported> {
    let base_url = table
        .text("base_url")
        .and_then(|url| http::base_url(&url).map_err(|complaint| table.wrong("base_url", complaint)));
    let account = table.text_if("account");
    let (auth, signing, tls) = (auth(table, sources), signing(table, sources), tls(table, sources));
    let (connect_timeout, max_in_flight) = (table.duration("connect_timeout"), table.integer("max_in_flight"));
    let rate = pace::rate(table);
    let (public_only, http) = (table.boolean("public_only"), table.choice("http", &Http::ALL));
    let target = Target {
        name: name.to_owned(),
        base_url: base_url?,
        account: account?,
        auth: auth?,
        signing: signing?,
        tls: tls?,
        connect_timeout: connect_timeout?,
        max_in_flight: max_in_flight?,
        rate: rate?,
        public_only: public_only?,
        http: http?,
    };
    given_to_anyone(&target, table)?;
    Ok(target)
}

/// Credentials go to a host that is named here, or to any only where that is said.
fn given_to_anyone(target: &Target, table: &Table<'_>) -> Result<(), Reported> {
    let any_host = match table.sub("auth")? {
        Some(auth) => auth.boolean("any_host")?,
        None => false,
    };
    if target.auth == Auth::None || any_host || !target.host_from_data() {
        return Ok(());
    }
    let remedy =
        "name the host in `base_url`, send a signature (`sign`) instead, or write `any_host = true` beside them";
    Err(table.wrong("auth", format!(
        "has credentials, and the host of `base_url` comes from params: whoever writes params could have them; {remedy}"
    )))
}

fn auth(destination: &Table<'_>, sources: &Sources<'_>) -> Result<Auth, Reported> {
    let Some(table) = destination.sub("auth")? else { return Ok(Auth::None) };
    let given: Vec<_> = WAYS.into_iter().filter(|key| table.item(key).is_some()).collect();
    match given.as_slice() {
        ["bearer"] => Ok(Auth::Bearer(header_secret(&table, "bearer", sources)?)),
        ["basic"] => basic(&table, sources),
        ["header"] => header(&table, sources),
        ["oauth2"] => oauth2(&table, sources),
        [] if table.item("sign").is_some() => Ok(Auth::None),
        _ => Err(destination.wrong(
            "auth",
            "must have exactly one of `bearer`, `basic`, `header`, `oauth2`; `sign` may stand alone or beside it",
        )),
    }
}

/// What tells the destination who we are; `sign` may come to it.
const WAYS: [&str; 4] = ["bearer", "basic", "header", "oauth2"];

fn oauth2(auth: &Table<'_>, sources: &Sources<'_>) -> Result<Auth, Reported> {
    let Some(table) = auth.sub("oauth2")? else { return Err(auth.missing("oauth2")) };
    let token_url = table
        .text("token_url")
        .and_then(|url| http::token_url(&url).map_err(|complaint| table.wrong("token_url", complaint)));
    let client_id = table.text("client_id");
    let client_secret = required(&table, "client_secret", sources);
    let client_auth = table.choice("client_auth", &ClientAuth::ALL);
    let (scope, audience) = (table.text_if("scope"), table.text_if("audience"));
    Ok(Auth::OAuth2(ClientCredentials {
        token_url: token_url?,
        client_id: client_id?,
        client_secret: client_secret?,
        client_auth: client_auth?,
        scope: scope?,
        audience: audience?,
    }))
}

fn signing(destination: &Table<'_>, sources: &Sources<'_>) -> Result<Option<Signing>, Reported> {
    let Ok(Some(auth)) = destination.sub("auth") else { return Ok(None) };
    if auth.item("sign").is_some_and(|item| item.value.is_str()) {
        return Err(auth.wrong(
            "sign",
            "must say with what; write `{ scheme = \"standard-webhooks\", secrets = [{ env = \"NAME\" }] }`",
        ));
    }
    let Some(table) = auth.sub("sign")? else { return Ok(None) };
    let (scheme, secrets) = (table.choice("scheme", &Scheme::ALL), sources.secrets(&table, "secrets"));
    let read = |(secret, at): (Secret, At<'_>)| {
        SigningKey::parse(&secret).map_err(|bad| table.report(at, format!("`secrets` in {} {bad}", table.title())))
    };
    let keys: Vec<_> = secrets?.into_iter().map(read).collect();
    let signing = Signing { scheme: scheme?, keys: keys.into_iter().collect::<Result<_, _>>()? };
    if let Some(Ok(Some(header))) = auth.item("header").map(|_| auth.sub("header"))
        && let Ok(Some(name)) = header.text_if("name")
        && signing.scheme.headers().contains(&name.to_ascii_lowercase().as_str())
    {
        return Err(header.wrong("name", "is a header that `sign` writes"));
    }
    Ok(Some(signing))
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
