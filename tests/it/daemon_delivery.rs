//! The main job: what was committed arrives, as it was committed, once.

use std::collections::HashSet;
use std::time::Duration;

use outboxd::proving::fake::{Behaviour, Reply};
use uuid::Uuid;

use crate::support::World;
use crate::support::world::keyed;

#[tokio::test(flavor = "multi_thread")]
async fn r8_r9_an_action_arrives_byte_for_byte_and_its_record_is_complete() {
    let world = World::new().await;
    let body = r#"{"id":9223372036854775807,"x":1.10,"y":1e400,  "b":1,"a":2,"s":"\u00e9 \u0000"}"#;
    let action: Uuid = world
        .db
        .one(
            "select action_id from outbox.enqueue('note.publish', $1::text::json, 'n-1', event_id => 'evt-1',
               workflow_id => 'wf-1', headers => '{\"X-Kind\":\"release\"}',
               traceparent => '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01')",
            &[&body],
        )
        .await;
    let _daemon = world.daemon().await;
    world.until(action, "succeeded").await;

    let seen = world.fake.seen();
    assert_eq!(seen.len(), 1);
    let request = &seen[0];
    assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/notes"));
    assert_eq!(request.text(), body, "B24: never parsed and printed again");
    assert_eq!(request.header("content-type"), Some("application/json"));
    assert_eq!(request.header("x-kind"), Some("release"));
    assert_eq!(request.header("traceparent"), Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"));
    assert_eq!(request.header("outbox-action"), Some(action.to_string().as_str()));
    assert_eq!(request.header("outbox-fence"), Some("1"));
    let key = request.key.clone().expect("a key");

    let standing = world.standing(action).await;
    assert_eq!((standing.attempts, standing.fence), (1, 1));
    assert_eq!(standing.receipt.as_deref(), Some(world.fake.effects()[0].receipt.as_str()));
    let row = world
        .db
        .client
        .query_one(
            "select attempt_id, number, kind, fence, worker, idempotency_key, evidence, verdict, http_status, receipt,
               started_at < finished_at and finished_at < deadline_at, detail
             from outbox.attempt where action_id = $1",
            &[&action],
        )
        .await
        .expect("one attempt");
    assert_eq!(request.header("outbox-attempt"), Some(row.get::<_, Uuid>(0).to_string().as_str()));
    assert_eq!((row.get::<_, i32>(1), row.get::<_, &str>(2), row.get::<_, i64>(3)), (1, "send", 1));
    assert!(row.get::<_, Option<&str>>(4).is_some_and(|worker| worker.contains('#')));
    assert_eq!(row.get::<_, Option<String>>(5), Some(key));
    assert_eq!((row.get::<_, &str>(6), row.get::<_, &str>(7)), ("accepted", "succeeded"));
    assert_eq!((row.get::<_, Option<i32>>(8), row.get::<_, Option<String>>(9)), (Some(201), standing.receipt));
    assert!(row.get::<_, bool>(10), "started, finished, deadline in this order");
    assert_eq!(row.get::<_, Option<&str>>(11), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn r8_b39_what_is_rolled_back_is_never_sent_and_a_late_commit_is_never_missed() {
    let world = World::new().await;
    let mut other = world.db.session().await;
    let slow = other.transaction().await.expect("a transaction");
    let sql = "select action_id from outbox.enqueue('note.publish', '{\"note\":\"slow\"}', 'slow')";
    let late: Uuid = slow.query_one(sql, &[]).await.expect("enqueued").get(0);
    world.db.run("begin; select outbox.enqueue('note.publish', '{\"note\":\"never\"}', 'never'); rollback").await;

    let _daemon = world.daemon().await;
    let prompt = world.enqueue("prompt").await;
    world.until(prompt, "succeeded").await;
    assert_eq!(world.fake.seen().len(), 1, "nothing of an open transaction");
    slow.commit().await.expect("committed");
    world.until(late, "succeeded").await;
    let texts: Vec<String> = world.fake.seen().iter().map(|seen| seen.text()).collect();
    assert_eq!(texts, [r#"{"note":"prompt"}"#, r#"{"note":"slow"}"#]);
}

#[tokio::test(flavor = "multi_thread")]
async fn r2_the_same_event_twice_is_sent_once_per_operation() {
    let mut world = World::new().await;
    world.also("note.mirror", "/mirror", &keyed("1s", ""));
    for _ in 0..2 {
        for operation in ["note.publish", "note.mirror"] {
            let sql = "select outbox.enqueue($1, '{\"note\":1}', event_id => 'evt-1')";
            world.db.client.execute(sql, &[&operation]).await.expect("enqueued");
        }
    }
    let _daemon = world.daemon().await;
    world.until_count("select count(*) from outbox.status where state = 'succeeded'", 2).await;
    let mut paths: Vec<String> = world.fake.seen().into_iter().map(|seen| seen.path).collect();
    paths.sort();
    assert_eq!(paths, ["/mirror", "/notes"]);
    assert_eq!(world.db.count("select count(*) from outbox.action").await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn r3_two_tenants_with_one_key_have_two_effects_and_two_receipts() {
    let world = World::new().await;
    let mut actions = Vec::new();
    for tenant in ["acme", "globex"] {
        let sql = "select action_id from outbox.enqueue('note.publish', '{\"note\":1}', 'same', tenant => $1)";
        actions.push(world.db.one::<Uuid>(sql, &[&tenant]).await);
    }
    let _daemon = world.daemon().await;
    let mut receipts = HashSet::new();
    for action in actions {
        world.until(action, "succeeded").await;
        receipts.insert(world.standing(action).await.receipt.expect("a receipt"));
    }
    assert_eq!(receipts.len(), 2);
    let keys: HashSet<_> = world.fake.seen().into_iter().map(|seen| seen.key).collect();
    assert_eq!((keys.len(), world.fake.effects().len()), (2, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn b24_r17_every_attempt_carries_the_same_bytes_and_the_same_key() {
    let world = World::new().await;
    world.fake.behave(|_, before| match before {
        0 => Behaviour::refuse(500),
        1 => Behaviour::refuse(429),
        _ => Behaviour::accept(),
    });
    let body = "{\"n\": 1.50,\t\"big\":123456789012345678901234567890}";
    let action = world.db.enqueue("note.publish", body, "n-1").await;
    let _daemon = world.daemon().await;
    world.until(action, "succeeded").await;
    let seen = world.fake.seen();
    assert_eq!(seen.len(), 3);
    assert!(seen.iter().all(|request| request.text() == body && request.key == seen[0].key));
    let fences: Vec<_> = seen.iter().filter_map(|request| request.header("outbox-fence")).collect();
    assert_eq!(fences, ["1", "2", "3"]);
    let attempts: HashSet<_> = seen.iter().filter_map(|request| request.header("outbox-attempt")).collect();
    assert_eq!(attempts.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn b26_bytes_that_are_no_json_arrive_as_they_are() {
    let world = World::new().await;
    let bytes: Vec<u8> = (0..=255).collect();
    let sql = "select action_id from outbox.enqueue_bytes('note.publish', $1::bytea, 'application/x-thing', 'n-1')";
    let action: Uuid = world.db.one(sql, &[&bytes]).await;
    let empty: Uuid =
        world.db.one("select action_id from outbox.enqueue_bytes('note.publish', null, retry_key => 'n-2')", &[]).await;
    let _daemon = world.daemon().await;
    world.until(action, "succeeded").await;
    world.until(empty, "succeeded").await;
    let request = &world.seen_of(action)[0];
    assert_eq!((&request.body[..], request.header("content-type")), (&bytes[..], Some("application/x-thing")));
    assert!(world.seen_of(empty)[0].body.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn b19_what_cannot_be_built_ends_without_contact_and_its_neighbours_arrive() {
    let mut world = World::new().await;
    world.also("note.channel", "/channels/{channel}/notes", &keyed("1s", ""));
    for (key, params) in [("none", None), ("other", Some("{\"x\":1}")), ("odd", Some(r#"{"channel":"\ud800"}"#))] {
        let sql = "select outbox.enqueue('note.channel', '{}', $1, params => $2::text::json)";
        world.db.client.execute(sql, &[&key, &params]).await.expect("enqueued");
    }
    let sql = "select action_id from outbox.enqueue('note.channel', '{}', 'good', params => '{\"channel\":\"a/b c\"}')";
    let good: Uuid = world.db.one(sql, &[]).await;
    let _daemon = world.daemon().await;
    world.until(good, "succeeded").await;
    world
        .until_count("select count(*) from outbox.status where state = 'terminal_failure' and reason = 'unsendable'", 3)
        .await;
    let paths: Vec<String> = world.fake.seen().into_iter().map(|seen| seen.path).collect();
    assert_eq!(paths, ["/channels/a%2Fb%20c/notes"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn r24_several_daemons_share_one_outbox_and_send_nothing_twice() {
    let mut world = World::new().await;
    world.dispatcher = "max_in_flight = 4\nlease_margin = \"2s\"\npoll_interval = \"200ms\"".into();
    world.operation = keyed("10s", "");
    world.fake.behave(|_, _| Behaviour::accept().delayed(Duration::from_millis(15)));
    let _daemons = [world.daemon().await, world.daemon().await, world.daemon().await];
    world.enqueue_many("n", 240).await;
    world.until_count("select count(*) from outbox.status where state = 'succeeded'", 240).await;
    assert_eq!((world.fake.tally().requests, world.fake.duplicates()), (240, 0));
    assert_eq!(world.db.count("select count(*) from outbox.attempt").await, 240);
    let workers = world.db.count("select count(distinct worker) from outbox.attempt").await;
    assert_eq!(workers, 3, "all three have worked");
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_on_requests_at_once_are_kept() {
    let mut world = World::new().await;
    world.operation = keyed("10s", "max_in_flight = 3");
    let gate = outboxd::proving::fake::Gate::new();
    let held = gate.clone();
    world.fake.behave(move |_, _| Behaviour::accept().held_by(&held));
    let _daemon = world.daemon().await;
    world.enqueue_many("n", 10).await;
    world.fake.wait_seen(3).await.expect("three");
    world.until_count("select count(*) from outbox.delivery where state = 'dispatching'", 3).await;
    world.fake.wait_until(Duration::from_millis(700), |tally| tally.requests > 3).await.expect_err("no fourth");
    gate.open();
    world.until_count("select count(*) from outbox.status where state = 'succeeded'", 10).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b06_an_endless_body_of_a_success_holds_no_slot_past_the_deadline() {
    let mut world = World::new().await;
    world.dispatcher.push_str("\nmax_in_flight = 1");
    let endless = Reply::json(201, vec![b' '; 10_000]);
    world.fake.behave(move |seen, _| match seen.text().contains("slow") {
        true => Behaviour::accept().dripping(endless.clone(), 300, Duration::from_millis(200)),
        false => Behaviour::accept(),
    });
    let slow = world.enqueue("slow").await;
    let _daemon = world.daemon().await;
    world.until(slow, "succeeded").await;
    let next = world.enqueue("next").await;
    world.until(next, "succeeded").await;
    assert_eq!(world.standing(slow).await.receipt, None);
    assert_eq!(world.seen_of(slow).len(), 1);
}
