//! Requests that are signed, and a receiver that looks.

use outboxd::proving::fake::{Behaviour, Reply};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use crate::support::World;
use crate::support::webhook::{time, verify};
use crate::support::world::keyed;

const OLD: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const NEW: &str = "whsec_aGVyZSBhcmUgbW9yZSB0aGFuIHR3ZW50eS1mb3VyIGJ5dGVz";

const WEBHOOKS: &str = r#"
[contract."test"]
extends = "standard-webhooks.deliver"
"#;

/// A world whose destination follows Standard Webhooks, with these secrets in files.
async fn world(secrets: &[&str]) -> World {
    let mut world = World::new().await;
    let files: Vec<String> = (secrets.iter().enumerate())
        .map(|(at, secret)| {
            let file = world.dir.path().join(format!("key{at}"));
            std::fs::write(&file, format!("{secret}\n")).expect("a file");
            format!("{{ file = {file:?} }}")
        })
        .collect();
    world.destination =
        format!("auth = {{ sign = {{ scheme = \"standard-webhooks\", secrets = [{}] }} }}", files.join(", "));
    world.contract = WEBHOOKS.into();
    world.fake.keyed_by(|seen| seen.header("webhook-id").map(str::to_owned));
    world
}

/// A JSON text as people and programs write them: layout, escapes, numbers and order as they happen to come.
fn payload(dice: &mut StdRng, depth: u32) -> String {
    const TEXTS: [&str; 12] = [
        r#""""#,
        r#""a/b\/c""#,
        r#""ü€😀""#,
        r#""\u00fc\ud83d\ude00""#,
        r#""\"\\\n\t""#,
        r#"" two  spaces ""#,
        r#""null""#,
        r#""a.b.c""#,
        r#""1674087231.""#,
        r#""<&>'%2F""#,
        r#""é""#,
        r#""é""#,
    ];
    const OTHERS: [&str; 9] = ["0", "-0.0", "1.10", "1e400", "9223372036854775808", "true", "false", "null", "1E+2"];
    const GAPS: [&str; 6] = ["", "", " ", "  ", "\n", "\t\r\n "];
    let gap = |dice: &mut StdRng| GAPS[dice.random_range(0..GAPS.len())];
    match dice.random_range(0..if depth == 0 { 2 } else { 4 }) {
        0 => TEXTS[dice.random_range(0..TEXTS.len())].to_owned(),
        1 => OTHERS[dice.random_range(0..OTHERS.len())].to_owned(),
        kind => {
            let mut text = String::from(if kind == 2 { "[" } else { "{" });
            for at in 0..dice.random_range(0..4) {
                text += if at > 0 { "," } else { "" };
                text += gap(dice);
                if kind == 3 {
                    text += TEXTS[dice.random_range(0..TEXTS.len())];
                    text += gap(dice);
                    text += ":";
                    text += gap(dice);
                }
                text += &payload(dice, depth - 1);
                text += gap(dice);
            }
            text + if kind == 2 { "]" } else { "}" }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn b23_two_hundred_payloads_verify_over_the_bytes_that_arrive() {
    let world = world(&[OLD, NEW]).await;
    let mut dice = StdRng::seed_from_u64(23);
    let mut bodies: Vec<Vec<u8>> = (0..180).map(|_| payload(&mut dice, 4).into_bytes()).collect();
    let json = bodies.len();
    bodies.extend((0..20).map(|n| (0..n * 97).map(|_| dice.random()).collect()));
    for (at, body) in bodies.iter().enumerate() {
        let key = format!("{at:03}");
        let sql = match at < json {
            true => "select outbox.enqueue('note.publish', convert_from($1, 'UTF8')::json, $2)",
            false => "select outbox.enqueue_bytes('note.publish', $1, 'application/octet-stream', $2)",
        };
        world.db.client.execute(sql, &[body, &key]).await.unwrap_or_else(|e| panic!("{key}: {e:?}"));
    }
    let _daemon = world.daemon().await;
    world.until_count("select count(*) from outbox.status where state = 'succeeded'", 200).await;
    let mut arrived: Vec<Vec<u8>> = Vec::new();
    for seen in world.fake.seen() {
        for secret in [OLD, NEW] {
            assert_eq!(verify(&seen, secret, 60), Ok(()), "{:?} {}", seen.headers, seen.text());
        }
        assert_eq!(seen.header("webhook-id"), seen.header("outbox-action"));
        arrived.push(seen.body.to_vec());
    }
    arrived.sort();
    bodies.sort();
    assert_eq!(arrived, bodies);
}

#[tokio::test(flavor = "multi_thread")]
async fn b25_every_attempt_is_signed_anew_under_the_same_id() {
    let mut world = world(&[OLD]).await;
    world.operation = keyed("2s", "");
    // Longer than the receiver tolerates.
    world.fake.behave(|seen, before| match (before, verify(seen, OLD, 2)) {
        (0, Ok(())) => Behaviour::reply(Reply::new(503).header("retry-after", "4")),
        (_, Ok(())) => Behaviour::accept(),
        (_, Err(why)) => Behaviour::reply(Reply::new(400).body(why)),
    });
    let action = world.enqueue("n-1").await;
    let _daemon = world.daemon().await;
    world.until(action, "succeeded").await;
    let seen = world.seen_of(action);
    assert_eq!(seen.len(), 2);
    assert_eq!(seen[0].header("webhook-id"), seen[1].header("webhook-id"));
    assert!(time(&seen[1]) >= time(&seen[0]) + 3, "{} and {}", time(&seen[0]), time(&seen[1]));
    assert_ne!(seen[0].header("webhook-signature"), seen[1].header("webhook-signature"));
    assert_eq!(seen[0].body, seen[1].body);
    assert!(verify(&seen[1], NEW, 60).is_err(), "the test's receiver can tell");
}

#[tokio::test(flavor = "multi_thread")]
async fn b25_a_lookup_is_a_message_of_its_own() {
    let mut world = world(&[OLD]).await;
    world.contract = r#"
[contract."test"]
reconcile = ["lookup", "review"]
key = { mode = "none" }
ref = { place = "json:/reference" }
sign = { scheme = "standard-webhooks-v1" }
[contract."test".lookup]
by = "ref"
request = { method = "GET", path = "/notes", query = { reference = "{ref}" } }
found = { status = 200 }
first_after = "50ms"
repeat = ["50ms"]
"#
    .into();
    world.fake.behave(|seen, _| match seen.method.as_str() {
        "GET" => Behaviour::refuse(if verify(seen, OLD, 60).is_ok() { 200 } else { 401 }),
        _ => Behaviour::accept().closing(),
    });
    let action = world.enqueue("n-1").await;
    let _daemon = world.daemon().await;
    world.until(action, "succeeded").await;
    let seen = world.seen_of(action);
    assert_eq!(seen[0].header("webhook-id"), Some(action.to_string().as_str()));
    assert_eq!(seen[1].header("webhook-id"), seen[1].header("outbox-attempt"));
    assert_eq!(verify(&seen[1], OLD, 60), Ok(()));
}
