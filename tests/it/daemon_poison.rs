//! Actions that can't be sent, that nobody knows how to send, or that kill whoever sends them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use outboxd::proving::fake::Behaviour;
use rustix::process::{Pid, Signal, kill_process};
use uuid::Uuid;

use crate::support::World;
use crate::support::world::{SOON, keyed, lines_of};

#[tokio::test(flavor = "multi_thread")]
async fn b35_an_action_that_kills_its_daemon_is_counted_and_ends_with_a_person() {
    let mut world = World::new().await;
    world.operation = keyed("500ms", "attempts_max = 2");
    let victim = Arc::new(AtomicU32::new(0));
    let of = Arc::clone(&victim);
    world.fake.behave(move |seen, _| {
        if seen.text().contains("poison") {
            let pid = Pid::from_raw(i32::try_from(of.load(Ordering::SeqCst)).expect("a pid")).expect("a pid");
            kill_process(pid, Signal::KILL).expect("it lives");
            return Behaviour::ignore();
        }
        Behaviour::accept()
    });
    let poison = world.enqueue("poison").await;
    // A supervisor that starts it again whenever it has died.
    for _ in 0..2 {
        let mut daemon = world.start();
        victim.store(daemon.pid(), Ordering::SeqCst);
        daemon.ended(SOON).await.expect("it has died");
        world.enqueue_many(&format!("good-{}-", daemon.pid()), 5).await;
    }
    let _daemon = world.daemon().await;
    world.until(poison, "awaiting_review").await;
    world.until_count("select count(*) from outbox.status where state = 'succeeded'", 10).await;
    let standing = world.standing(poison).await;
    assert_eq!((standing.reason.as_deref(), standing.attempts), (Some("attempts_exhausted"), 2));
    let keys: Vec<_> = world.seen_of(poison).into_iter().map(|seen| seen.key).collect();
    assert_eq!(keys.len(), 2);
    assert_eq!(keys[0], keys[1], "R17");
}

#[tokio::test(flavor = "multi_thread")]
async fn b61_what_cannot_be_sent_is_parked_with_its_reason_and_holds_up_nobody() {
    let mut world = World::new().await;
    world.also("channel.publish", "/channels/{channel}", &keyed("1s", ""));
    let sql = "select action_id from outbox.enqueue('channel.publish', '{}'::json, retry_key => $1, params => $2::text::json)";
    let mut bad: Vec<Uuid> = vec![];
    for params in ["{}", r#"{"channel":null}"#, r#"{"channel":[1]}"#, r#"{"channel":""}"#, r#"{"channel":".."}"#] {
        bad.push(world.db.client.query_one(sql, &[&params, &params]).await.expect("committed").get(0));
    }
    let headers = "select outbox.enqueue('note.publish', '{}'::json, retry_key => 'h', headers => '{\"X A\":\"1\"}')";
    assert_eq!(world.db.refused(headers, &[]).await.0, "OB422", "what the ledger can tell is refused at once");
    let insert =
        "insert into outbox.action (action_id, operation, retry_key, params, headers, body, input_hash, created_at)
        values (gen_random_uuid(), 'note.publish', 'behind-its-back', '7', '[1,2', 'x', sha256(''), clock_timestamp())";
    assert!(world.db.client.batch_execute(insert).await.is_err(), "broken JSON never gets in");
    world.enqueue_many("good-", 100).await;
    let daemon = world.daemon().await;
    world.until_count("select count(*) from outbox.status where state = 'succeeded'", 100).await;
    for action in &bad {
        world.until(*action, "terminal_failure").await;
        let standing = world.standing(*action).await;
        assert_eq!((standing.reason.as_deref(), standing.attempts), (Some("unsendable"), 0), "{standing:?}");
        let about = lines_of(&daemon.log(), "action not delivered");
        assert!(about.iter().filter(|line| line["action"] == action.to_string()).count() <= 2);
    }
    assert_eq!(world.fake.tally().requests, 100, "nothing was sent of what cannot be sent");
}

#[tokio::test(flavor = "multi_thread")]
async fn b63_actions_of_an_operation_that_was_taken_out_wait_untouched_and_are_warned_of_once() {
    let mut world = World::new().await;
    let plain = world.config();
    world.also("other.publish", "/others", &keyed("1s", ""));
    let whole = world.config();
    let waiting = world.db.enqueue("other.publish", "{}", "o-1").await;
    let daemon = world.start_with(&plain);
    daemon.logged("operation not configured", SOON).await.expect("a warning");
    let delivered = world.enqueue("n-1").await;
    world.until(delivered, "succeeded").await;
    tokio::time::sleep(Duration::from_millis(2500)).await;
    let told = lines_of(&daemon.log(), "operation not configured");
    assert_eq!((told.len(), told[0]["operation"].as_str()), (1, Some("other.publish")));
    let standing = world.standing(waiting).await;
    assert_eq!((standing.state.as_str(), standing.attempts, standing.fence), ("pending", 0, 0));
    drop(daemon);
    let _again = world.start_with(&whole);
    world.until(waiting, "succeeded").await;
}
