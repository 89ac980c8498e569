//! Bodies in memory are bounded, and one that is too large is refused before it is committed.

use std::time::Duration;

use outboxd::ledger::{ClaimMark, Room, Want};
use outboxd::proving::fake::{Behaviour, Gate};
use uuid::Uuid;

use crate::support::ledger::{NOTE, want};
use crate::support::world::{SOON, keyed};
use crate::support::{Database, World};

/// Enqueues a body of so many bytes, which PostgreSQL stores in few.
async fn enqueue(db: &Database, operation: &str, bytes: i32, retry_key: &str) -> Uuid {
    let sql = "select action_id from outbox.enqueue_bytes($1, convert_to(repeat('x', $2), 'UTF8'), 'text/plain', $3)";
    db.one(sql, &[&operation, &bytes, &retry_key]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn r11_two_hundred_megabytes_that_are_due_go_through_a_few() {
    const MEGABYTE: i32 = 1_000_000;
    let mut world = World::new().await;
    world.operation = keyed("60s", "");
    world.dispatcher.push_str("\nbytes_in_flight_max = 8_000_000");
    world.fake.behave(|_, _| Behaviour::accept().delayed(Duration::from_millis(20)));
    world
        .db
        .run(&format!(
            "select outbox.enqueue_bytes('{NOTE}', convert_to(repeat('x', {MEGABYTE}), 'UTF8'), 'text/plain', i::text)
             from generate_series(1, 200) i"
        ))
        .await;
    let daemon = world.daemon().await;
    world.fake.wait_until(3 * SOON, |tally| tally.requests == 200).await.expect("all of them");
    world.until_count("select count(*) from outbox.status where state = 'succeeded'", 200).await;
    assert_eq!((world.fake.tally().requests, world.fake.duplicates()), (200, 0));
    if let Some(usage) = daemon.usage() {
        assert!(usage.peak_rss < 100 << 20, "{} bytes in memory", usage.peak_rss);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_larger_than_all_that_may_be_in_memory_goes_and_holds_up_no_small_one() {
    let mut world = World::new().await;
    world.operation = keyed("60s", "");
    world.also("note.small", "/small", &keyed("10s", ""));
    world.dispatcher.push_str("\nbytes_in_flight_max = 1_048_576\nbody_max_bytes = 20_000_000");
    let gate = Gate::new();
    let held = gate.clone();
    world.fake.behave(move |seen, _| match seen.body.len() > 1000 {
        true => Behaviour::accept().held_by(&held),
        false => Behaviour::accept(),
    });
    let huge = enqueue(&world.db, NOTE, 10_000_000, "huge").await;
    let _daemon = world.daemon().await;
    world.fake.wait_seen(1).await.expect("it goes");
    // Another one waits for it; the small ones don't wait.
    let waits = enqueue(&world.db, NOTE, 5_000_000, "waits").await;
    for n in 0..20 {
        let small = enqueue(&world.db, "note.small", 10, &format!("k-{n}")).await;
        world.until(small, "succeeded").await;
    }
    assert_eq!((world.db.label(huge).await.as_str(), world.db.label(waits).await.as_str()), ("dispatching", "pending"));
    assert_eq!(world.standing(waits).await.fence, 0);
    gate.open();
    world.until(huge, "succeeded").await;
    world.until(waits, "succeeded").await;
    assert_eq!((world.standing(waits).await.fence, world.fake.duplicates()), (1, 0));
}

#[tokio::test]
async fn a_claim_takes_the_oldest_large_bodies_that_fit_and_every_small_one() {
    let db = Database::new().await;
    for (n, bytes) in [100_000, 50, 100_000, 200_000, 50].into_iter().enumerate() {
        enqueue(&db, NOTE, bytes, &format!("k-{n}")).await;
    }
    let ledger = db.ledger("w");
    let lengths = async |large: u64| {
        let room = Room { small: 1000, large, body_max: 1 << 20 };
        let claims = ledger.claim_as(ClaimMark::new(), &[want(NOTE)], room).await.expect("a claim");
        let mut lengths: Vec<usize> = claims.claimed.iter().map(|claimed| claimed.intent.body.len()).collect();
        lengths.sort_unstable();
        (lengths, claims.heavy)
    };
    assert_eq!(lengths(0).await, (vec![50, 50], true));
    assert_eq!(lengths(100_001).await, (vec![100_000, 100_000], true));
    assert_eq!(lengths(1).await, (vec![200_000], false), "the largest doesn't wait for ever");
    let heavy = db.count("select count(*) from outbox.delivery where fence <> 1").await;
    assert_eq!(heavy, 0, "what had to wait was left alone");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_too_large_is_refused_at_enqueue_and_is_never_sent() {
    let mut world = World::new().await;
    world.dispatcher.push_str("\nbody_max_bytes = 100_000");
    // Enqueued before any daemon has said what is too large.
    let before = enqueue(&world.db, NOTE, 100_001, "before").await;
    let fits = enqueue(&world.db, NOTE, 100_000, "fits").await;
    let _daemon = world.daemon().await;
    world.until(fits, "succeeded").await;
    world.until(before, "terminal_failure").await;
    let standing = world.standing(before).await;
    assert_eq!((standing.reason.as_deref(), standing.attempts), (Some("unsendable"), 0));
    let detail = world.history(before).await[0].detail.clone().unwrap_or_default();
    assert!(detail.contains("100001 bytes"), "{detail}");
    assert_eq!(world.fake.tally().requests, 1, "without contact");
    let sql = "select outbox.enqueue_bytes('note.publish', convert_to(repeat('x', $1), 'UTF8'), 'text/plain', $2)";
    let (sqlstate, message) = world.db.refused(sql, &[&100_001, &"after"]).await;
    assert_eq!(sqlstate, "OB422");
    assert!(message.contains("100001 bytes") && message.contains("100000"), "{message}");
    // What was committed once is found again.
    assert_eq!(enqueue(&world.db, NOTE, 100_001, "before").await, before);
    // Another operation has no limit yet.
    enqueue(&world.db, "other", 100_001, "k").await;
}

#[tokio::test]
async fn a_body_in_doubt_is_read_however_large_it_is() {
    let db = Database::new().await;
    let action = enqueue(&db, NOTE, 70_000, "k").await;
    let ledger = db.ledger("w");
    db.run(
        "update outbox.delivery set state = 'outcome_unknown', doubt_since = now(), first_sent_at = now(),
           last_sent_at = now(), fence = 1",
    )
    .await;
    let room = Room { small: 1000, large: 1, body_max: 65_536 };
    let want = Want { free: 1, ..want(NOTE) };
    let claimed = ledger.claim_as(ClaimMark::new(), &[want], room).await.expect("a claim").claimed;
    assert_eq!((claimed[0].intent.id.0, claimed[0].intent.body.len(), claimed[0].oversize), (action, 70_000, None));
}
