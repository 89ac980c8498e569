//! What a daemon writes down about itself.

use outboxd::proving::fake::{Behaviour, Reply};
use rustix::process::Signal;

use crate::support::World;
use crate::support::world::{SOON, lines, lines_of};

#[tokio::test(flavor = "multi_thread")]
async fn b81_every_line_is_one_json_object_and_holds_nothing_confidential() {
    let mut world = World::new().await;
    let token = world.dir.path().join("token");
    std::fs::write(&token, "c0nfidential-token").expect("a file");
    world.destination = format!("auth = {{ bearer = {{ file = {:?} }} }}", token.to_str().expect("a path"));
    let forged = "\n2026-01-01T00:00:00Z ERROR forged\r\n\u{1b}[31mred\u{85}\u{2028}{\"level\":\"ERROR\"}";
    world.fake.behave(move |seen, before| {
        let echo =
            format!("{forged} you said {} with {}", seen.text(), seen.header("authorization").unwrap_or_default());
        match (seen.text(), before) {
            (text, _) if text.contains("rejected") => Behaviour::reply(Reply::new(422).body(echo)),
            (_, 0) => Behaviour::reply(Reply::new(500).body(echo + &"x".repeat(1_000_000))),
            _ => Behaviour::accept(),
        }
    });
    let sql = "select outbox.enqueue('note.publish', $1::text::json, $2, headers => '{\"X-Private\":\"c0nfidential-header\"}')";
    for (key, body) in
        [("good", "{\"text\":\"c0nfidential-body\"}"), ("rejected", "{\"rejected\":\"c0nfidential-body\"}")]
    {
        world.db.client.execute(sql, &[&body, &key]).await.expect("enqueued");
    }
    let mut daemon = world.daemon().await;
    world.until_count("select count(*) from outbox.status where closed_at is not null", 2).await;
    daemon.logged("\"stats\"", SOON).await.expect("figures");
    assert_eq!(daemon.terminate(SOON).await.expect("it ends").code(), Some(0));

    let log = daemon.log();
    for line in lines(&log) {
        for field in ["timestamp", "level", "message"] {
            assert!(line[field].is_string(), "{field} in {line}");
        }
        assert!(line.to_string().len() < 4000, "{line}");
    }
    assert!(!log.contains("c0nfidential"), "{log}");
    for forbidden in ['\u{1b}', '\r', '\u{85}', '\u{2028}'] {
        assert!(!log.contains(forbidden), "{forbidden:?} as it came");
    }
    assert!(!log.lines().any(|line| line.starts_with("2026-01-01")));
    let detail: String = world.db.one("select string_agg(detail, '') from outbox.attempt", &[]).await;
    assert!(!detail.contains("c0nfidential") && detail.len() < 5000, "{detail}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_life_from_start_to_stop_is_told_with_its_known_fields() {
    let world = World::new().await;
    world.fake.behave(|seen, before| match (seen.text(), before) {
        (text, _) if text.contains("bad") => Behaviour::refuse(400),
        (text, 0) if text.contains("lost") => Behaviour::accept().closing(),
        (text, 0) if text.contains("slow") => Behaviour::refuse(429),
        _ => Behaviour::accept(),
    });
    let mut daemon = world.daemon().await;
    for key in ["bad", "lost", "slow"] {
        world.enqueue(key).await;
    }
    world.until_count("select count(*) from outbox.status where closed_at is not null", 3).await;
    daemon.logged("outcome resolved", SOON).await.expect("resolved");
    // A stats line that counts them.
    daemon.logged("\"delivered\":", SOON).await.expect("figures");
    daemon.signal(Signal::TERM).expect("a signal");
    daemon.ended(SOON).await.expect("it ends");
    let log = daemon.log();
    for (message, level, fields) in [
        ("outboxd started", "INFO", &["version", "worker", "operations", "destinations"][..]),
        ("action delivered", "DEBUG", &["action", "operation", "destination", "attempt", "fence", "receipt"]),
        ("action postponed", "DEBUG", &["action", "evidence", "reason", "status", "detail", "in_ms"]),
        ("action not delivered", "WARN", &["action", "evidence", "reason", "status", "detail"]),
        ("outcome unknown", "WARN", &["action", "evidence", "reason", "next", "in_ms"]),
        ("outcome resolved", "INFO", &["action", "by", "state", "unknown_ms", "receipt"]),
        (
            "stats",
            "INFO",
            &[
                "delivered",
                "per_s",
                "due",
                "scheduled",
                "retrying",
                "in_flight",
                "unknown",
                "review",
                "oldest_due_ms",
                "oldest_unknown_ms",
            ],
        ),
        ("drain started", "INFO", &["in_flight", "drain_timeout_ms"]),
        ("outboxd stopped", "INFO", &["abandoned"]),
    ] {
        let lines = lines_of(&log, message);
        let line = lines.first().unwrap_or_else(|| panic!("{message:?} in {log}"));
        assert_eq!(line["level"], level, "{message}");
        for field in fields {
            assert!(line.get(field).is_some(), "{field} in {line}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn b83_a_prune_that_the_database_refuses_is_said_once() {
    let world = World::new().await;
    world.db.run("drop function outbox.prune(text[], interval[], interval[])").await;
    let daemon = world.daemon().await;
    daemon.logged("prune refused", SOON).await.expect("said");
    // A round of the janitor lies between two stats lines.
    let rounds = || lines_of(&daemon.log(), "stats").len();
    let before = rounds();
    let passed = async {
        while rounds() < before + 3 {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(SOON, passed).await.expect("rounds");
    assert_eq!(lines_of(&daemon.log(), "prune refused").len(), 1);
}
