//! A daemon's configuration: every kind of contract, impatient times, its own way to the database.

use super::WAYS;
use super::kinds::{Kind, LEASE_MARGIN, Version};

/// Sessions of one daemon for its work.
pub const POOL: u64 = 4;

/// As a file for `outboxd run`. `ways` are the destinations' base URLs, one for each way.
pub fn toml(database_url: &str, ways: &[String; WAYS], version: Version) -> String {
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
    for (name, url, account) in destinations.chain([("moving".to_owned(), moving, account)]) {
        text += &format!(
            "\n[destination.{name}]\nbase_url = \"{url}\"\naccount = \"{account}\"\nconnect_timeout = \"1s\"\n\
             max_in_flight = 32\n"
        );
    }
    for kind in Kind::ALL {
        text += &kind.toml(version);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Secrets};

    #[test]
    fn a_daemon_would_take_both_versions() {
        let dir = tempfile::tempdir().unwrap();
        for version in [Version::First, Version::Second] {
            let file = dir.path().join("outboxd.toml");
            let ways = [0, 1, 2].map(|n| format!("http://127.0.0.1:808{n}"));
            std::fs::write(&file, toml("postgres://postgres@127.0.0.1:5432/postgres", &ways, version)).unwrap();
            if let Err(refusal) = Config::load(&file, Secrets::Resolve) {
                panic!("{refusal}");
            }
        }
    }
}
