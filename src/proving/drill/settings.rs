//! A daemon's configuration: every kind of contract, impatient times, its own way to the database.

use super::WAYS;
use super::kinds::{Kind, LEASE_MARGIN, Version, rate};

/// Sessions of one daemon for its work.
pub const POOL: u64 = 4;

/// Whether daemons know how fast they may go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pace {
    /// The rate and the bounds are in their configuration.
    Kept,
    /// They are not: a mistake.
    Unknown,
}

/// As a file for `outboxd run`. `ways` are the destinations' base URLs, one for each way.
pub fn toml(database_url: &str, ways: &[String; WAYS], version: Version, pace: Pace) -> String {
    let (in_flight, account) = match version {
        Version::First => (48, "one"),
        Version::Second => (32, "two"),
    };
    let mut text = format!(
        "[database]\nurl = \"{database_url}\"\npool_size = {POOL}\n\n\
         [dispatcher]\nmax_in_flight = {in_flight}\nlease_margin = \"{}ms\"\npoll_interval = \"250ms\"\n\
         drain_timeout = \"4s\"\n\n[log]\nformat = \"json\"\nlevel = \"info\"\nstats_interval = \"10s\"\n",
        LEASE_MARGIN.as_millis()
    );
    let destinations = ways.iter().enumerate().map(|(number, url)| (format!("way{number}"), url.clone(), "drill"));
    // Another account is another memory: what one has done under a key the other does not know.
    let moving = format!("{}/account-{account}", ways[Kind::Moving.way()]);
    let rated = ways[Kind::KeyedThenLookup.way()].clone();
    let others = [("moving".to_owned(), moving, account), ("rated".to_owned(), rated, "drill")];
    for (name, url, account) in destinations.chain(others) {
        text += &format!(
            "\n[destination.{name}]\nbase_url = \"{url}\"\naccount = \"{account}\"\nconnect_timeout = \"1s\"\n\
             max_in_flight = 32\n"
        );
        if name == "rated" && pace == Pace::Kept {
            let (burst, a_second) = rate();
            text += &format!("rate = \"{a_second}/s burst {burst}\"\n");
        }
    }
    for kind in Kind::ALL {
        text += &kind.toml(version, pace);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Secrets};

    #[test]
    fn a_daemon_would_take_every_version() {
        let dir = tempfile::tempdir().unwrap();
        let versions =
            [Version::First, Version::Second].map(|version| [Pace::Kept, Pace::Unknown].map(|p| (version, p)));
        for (version, pace) in versions.into_iter().flatten() {
            let file = dir.path().join("outboxd.toml");
            let ways = [0, 1, 2].map(|n| format!("http://127.0.0.1:808{n}"));
            std::fs::write(&file, toml("postgres://postgres@127.0.0.1:5432/postgres", &ways, version, pace)).unwrap();
            if let Err(refusal) = Config::load(&file, Secrets::Resolve) {
                panic!("{refusal}");
            }
        }
    }
}
