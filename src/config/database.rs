//! `[database]`: where the ledger is. A connection string holds a password, so no message quotes any part of it (B79).

use std::fmt;
use std::str::FromStr as _;

use tokio_postgres::config::Host;

use super::problem::Reported;
use super::secret::Sources;
use super::table::Table;
use crate::core::dsn;
use crate::core::target::Secret;

/// Where the ledger is. Both strings have been parsed once and can be parsed again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Database {
    /// The connection string.
    pub url: Secret,
    /// The same for LISTEN and advisory locks behind a pooler; `None` = `url`.
    pub direct_url: Option<Secret>,
    /// Connections of this daemon, 1 to 100.
    pub pool_size: u32,
}

impl Database {
    pub(super) fn parse(table: &Table<'_>, sources: &Sources<'_>) -> Result<Self, Reported> {
        let read = |key| {
            let url = sources.connection_string(table, key)?;
            // An empty one stands elsewhere, for a command that does not connect.
            if let Some(url) = url.as_ref().filter(|url| !url.expose().is_empty()) {
                check(url).map_err(|complaint| table.wrong(key, complaint))?;
            }
            Ok(url)
        };
        let (url, direct_url, pool_size) = (read("url"), read("direct_url"), table.integer("pool_size"));
        let url = url?.ok_or_else(|| table.missing("url"));
        Ok(Self { url: url?, direct_url: direct_url?, pool_size: pool_size? })
    }

    /// User, host and database, for messages.
    pub fn place(&self) -> Place {
        Place::of(&self.url)
    }

    /// The same of `direct_url`.
    pub fn direct_place(&self) -> Option<Place> {
        self.direct_url.as_ref().map(Place::of)
    }
}

/// Who connects where, without the password.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place(String);

impl Place {
    fn of(url: &Secret) -> Self {
        let config = dsn::cut(url.expose()).ok().and_then(|dsn| tokio_postgres::Config::from_str(&dsn.rest).ok());
        let Some(config) = config else { return Self(String::new()) };
        let ports = config.get_ports();
        let host = |(at, host): (usize, &Host)| {
            let port = ports.get(at).or(ports.first()).copied().unwrap_or(5432);
            match host {
                Host::Tcp(name) if name.contains(':') => format!("[{name}]:{port}"),
                Host::Tcp(name) => format!("{name}:{port}"),
                Host::Unix(path) => format!("{}:{port}", path.display()),
            }
        };
        let mut hosts: Vec<_> = config.get_hosts().iter().enumerate().map(host).collect();
        if hosts.is_empty() {
            hosts = config.get_hostaddrs().iter().map(ToString::to_string).collect();
        }
        let user = config.get_user().map(|user| format!("{user}@")).unwrap_or_default();
        let database = config.get_dbname().map(|name| format!("/{name}")).unwrap_or_default();
        Self(format!("{user}{}{database}", hosts.join(",")))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether it can be connected with. The client's own error is never shown: it may quote what it could not read.
fn check(url: &Secret) -> Result<(), String> {
    let text = url.expose();
    let rest = text.strip_prefix("postgres://").or_else(|| text.strip_prefix("postgresql://"));
    let cut = dsn::cut(text).map_err(|error| error.to_string())?;
    // The client takes the first `@` for the end of the password; what follows a second one would pass for a host.
    if rest.is_some_and(|rest| rest.split('?').next().unwrap_or_default().matches('@').count() > 1) {
        return Err("has more than one `@`; in user, password and database name write it as `%40`".to_owned());
    }
    let config = tokio_postgres::Config::from_str(&cut.rest).map_err(|_| match rest {
        Some(_) => "is not a URL that PostgreSQL understands; write postgres://user:password@host:5432/database, with \
                    `:`, `/`, `@`, `?`, `#` and `%` in user and password percent-encoded"
            .to_owned(),
        None => "is not a connection string that PostgreSQL understands; write \
                 postgres://user:password@host:5432/database, or host=… user=… password='…' dbname=…"
            .to_owned(),
    })?;
    let valid = |host: &Host| match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_:%".contains(&byte))
        }
    };
    if !config.get_hosts().iter().all(valid) {
        return Err("has a host with characters that no host has; special characters in user and password must be \
                    percent-encoded"
            .to_owned());
    }
    if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
        return Err("names no host".to_owned());
    }
    Ok(())
}
