//! What a daemon refuses to start with, and what it says.

use std::net::TcpListener;
use std::process::Output;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::support::{Database, World};

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[tokio::test(flavor = "multi_thread")]
async fn b75_a_misspelt_key_is_refused_before_any_connection_with_the_likely_one() {
    let mut world = World::new().await;
    // A port that tells whether anybody came.
    let port = TcpListener::bind("127.0.0.1:0").expect("a port");
    port.set_nonblocking(true).expect("non-blocking");
    world.url = format!("postgres://postgres@{}/app", port.local_addr().expect("an address"));
    world.operation.push_str("\nmax_atempts = 3\n");
    let config = world.config();
    let line = 1 + config.lines().position(|line| line.starts_with("max_atempts")).expect("the line");
    for command in ["run", "check"] {
        let output = world.command(command, &config).await;
        assert_eq!(output.status.code(), Some(78), "{command}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(said.trim().lines().filter(|line| line.contains("max_atempts")).count(), 1, "one message: {said}");
        for part in [&format!("outboxd.toml:{line}"), "max_atempts", "attempts_max"] {
            assert!(said.contains(part), "{command}: {part:?} in {said}");
        }
    }
    assert!(port.accept().is_err(), "nobody connected");
    assert_eq!(world.fake.connections(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn b76_contradictions_and_durations_without_a_unit_are_refused() {
    let world = World::new().await;
    for (good, bad, key) in [
        ("timeout = \"1s\"", "timeout = 30", "timeout"),
        ("timeout = \"1s\"", "timeout = \"30\"", "timeout"),
        ("timeout = \"1s\"", "timeout = \"0s\"", "timeout"),
        ("timeout = \"1s\"", "timeout = \"-5s\"", "timeout"),
        ("window = \"24h\"", "window = \"500ms\"", "window"),
        ("destination = \"fake\"", "destination = \"fakes\"", "destination"),
    ] {
        let config = world.config().replace(good, bad);
        let output = world.command("run", &config).await;
        assert_eq!(output.status.code(), Some(78), "{bad}");
        assert!(text(&output).contains(key), "{bad}: {}", text(&output));
    }
    let config = world.config().replace("timeout = \"1s\"", "timeout = \"1m30s\"");
    let output = world.command("check", &config).await;
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert!(text(&output).contains("1m 30s"), "in its usual form: {}", text(&output));
}

#[tokio::test(flavor = "multi_thread")]
async fn b79_no_password_is_ever_printed() {
    let mut world = World::new().await;
    let password = "s3cr#t p@ss/word:{x}";
    let encoded = utf8_percent_encode(password, NON_ALPHANUMERIC).to_string();
    let place = world.db.url.split_once('@').expect("a host").1.to_owned();
    let closed = place.split_once('/').map(|(_, database)| format!("127.0.0.1:1/{database}")).expect("a database");
    let urls = [
        format!("postgres://nobody_of_that_name:{encoded}@{place}"),
        format!("postgres://postgres:{encoded}@{closed}"),
        format!("postgres://postgres:{password}@{place}"),
        format!("postgres://postgres:{encoded}@{place}?sslmode=sideways"),
        format!("postgres://postgres:{encoded}@[nonsense"),
        format!("host=127.0.0.1 port=1 user=postgres password={encoded}"),
        format!("host=127.0.0.1 pasword='{password}"),
    ];
    for url in urls {
        world.url = url.clone();
        let config = world.config().replace("level = \"debug\"", "level = \"trace\"");
        let checked = world.command("check", &config).await;
        assert_ne!(checked.status.code(), Some(0), "{url}: {}", text(&checked));
        let file = world.dir.path().join("run.toml");
        std::fs::write(&file, &config).expect("a file");
        let mut daemon = world.start_with(&config);
        // Either it refuses to start, or it goes on trying; in both cases it has said what it had to say.
        let ended = daemon.ended(std::time::Duration::from_millis(1500)).await;
        if ended.is_err() {
            daemon.logged("ledger lost", crate::support::world::SOON).await.expect("it says that it waits");
        }
        for said in [text(&checked), daemon.log()] {
            assert!(!said.is_empty(), "{url}: it says what is wrong");
            for secret in [password, encoded.as_str(), "s3cr", "p@ss", "p%40ss"] {
                assert!(!said.contains(secret), "{secret:?} in {said}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn check_says_that_a_schema_is_missing_and_run_refuses_to_start() {
    let mut world = World::new().await;
    let empty = Database::empty().await;
    world.url = empty.url.clone();
    for command in ["check", "run"] {
        let output = world.command(command, &world.config()).await;
        assert_eq!(output.status.code(), Some(1), "{command}: {}", text(&output));
        assert!(text(&output).contains("outboxd migrate"), "it says what to do: {}", text(&output));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schema_that_is_newer_is_refused_with_69() {
    let world = World::new().await;
    world
        .db
        .run("create or replace function outbox.schema_version() returns int language sql immutable as 'select 900'")
        .await;
    for command in ["run", "check", "migrate"] {
        let output = world.command(command, &world.config()).await;
        assert_eq!(output.status.code(), Some(69), "{command}: {}", text(&output));
        assert!(text(&output).contains("900"), "{}", text(&output));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn check_prints_what_would_run() {
    let mut world = World::new().await;
    world.destination = "auth = { bearer = { env = \"E2E_TOKEN_THAT_IS_SET\" } }".into();
    let config = world.config().replace("{ env = \"E2E_TOKEN_THAT_IS_SET\" }", "{ file = \"TOKEN\" }");
    let token = world.dir.path().join("token");
    std::fs::write(&token, "t0ken-of-ours\n").expect("a file");
    let config = config.replace("TOKEN", token.to_str().expect("a path"));
    let output = world.command("check", &config).await;
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let said = text(&output);
    for part in ["note.publish", "fake", "test", "/notes", "in order"] {
        assert!(said.contains(part), "{part} in {said}");
    }
    assert!(!said.contains("t0ken-of-ours"));
}

#[tokio::test(flavor = "multi_thread")]
async fn unset_secrets_are_all_named_at_once() {
    let mut world = World::new().await;
    world.destination = "auth = { basic = { user = \"me\", password = { env = \"E2E_UNSET_ONE\" } } }".into();
    world.contract.push_str(
        "\n[destination.other]\nbase_url = \"http://127.0.0.1:1\"\nauth = { bearer = { env = \"E2E_UNSET_TWO\" } }\n",
    );
    for command in ["run", "check"] {
        let output = world.command(command, &world.config()).await;
        assert_eq!(output.status.code(), Some(78), "{command}");
        assert!(
            text(&output).contains("E2E_UNSET_ONE") && text(&output).contains("E2E_UNSET_TWO"),
            "{}",
            text(&output)
        );
    }
    let output = world.command("migrate", &world.config()).await;
    assert_eq!(output.status.code(), Some(0), "migrate needs no destination's secret: {}", text(&output));
}
