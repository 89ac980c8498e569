//! The daemon's configuration: a destination that promises to remember keys, and impatient times so that 20 s suffice.

/// How long the destination promises to remember a key, hours.
pub const WINDOW_HOURS: u32 = 24;

/// As a file for `outboxd run`.
pub fn toml(database_url: &str, base_url: &str) -> String {
    format!(
        r#"
[database]
url = "{database_url}"
pool_size = 4

[dispatcher]
max_in_flight = 64
drain_timeout = "5s"

[log]
format = "text"
level = "warn"

[destination.announcements]
base_url = "{base_url}"
account = "release-desk-demo"

[operation."announcement.deliver"]
destination = "announcements"
request = {{ method = "POST", path = "/v1/channels/{{channel}}/announcements" }}
contract = "demo.announcements"
effect = "keyed"
meaning = "Tell a channel that a release is out"
owner = "release-desk"
timeout = "1s"
attempts_max = 10
backoff = {{ initial = "300ms", max = "2s" }}

[contract."demo.announcements"]
title = "The demo's destination: it remembers every key as long as it runs"
reconcile = ["resend", "review"]
key = {{ mode = "dedupe", place = "header:Idempotency-Key", window = "{WINDOW_HOURS}h", margin = "1h" }}
receipt = {{ id = "json:/id" }}
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Secrets};

    #[test]
    fn the_daemon_would_take_it() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("outboxd.toml");
        std::fs::write(&file, toml("postgres://postgres@127.0.0.1:5432/postgres", "http://127.0.0.1:8080")).unwrap();
        Config::load(&file, Secrets::Resolve).unwrap();
    }
}
