//! What an operator sees of serial queues (R27): which are held, by what, since when, and who waits.

use outboxd::core::evidence::Evidence;
use outboxd::core::queue::Queue;
use outboxd::ledger::{Ledger, Settlement};
use uuid::Uuid;

use crate::support::World;
use crate::support::cli::holds;
use crate::support::ledger::{finding, settlement};
use crate::support::queue::{promote, queued, send, take_one};

/// One whose outcome is unknown, and two that wait behind it.
async fn held(world: &World, ledger: &Ledger) -> [Uuid; 3] {
    let mut all = [Uuid::nil(); 3];
    for (n, action) in all.iter_mut().enumerate() {
        *action = queued(&world.db, &format!("n-{n}"), "order 7").await;
    }
    assert_eq!(send(ledger, Evidence::NoAnswer).await, all[0]);
    world.db.run("update outbox.delivery set step = 'review', due_at = null, doubt_since = now() - interval '12 min' where turn").await;
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn r27_the_status_names_the_queues_that_are_held_and_why() {
    let world = World::new().await;
    let ledger = world.db.ledger("w");
    let status = world.says(&["status"]).await.done();
    assert!(!status.contains("held queue"), "{status}");
    let [head, ..] = held(&world, &ledger).await;
    // One that goes on as it should, one that has arrived just now, and one that nobody waits for.
    let (going, lonely) = (queued(&world.db, "going", "o2").await, queued(&world.db, "lonely", "o3").await);
    queued(&world.db, "behind", "o2").await;
    promote(&ledger).await;
    queued(&world.db, "arrived", "o2").await;
    world
        .db
        .run(&format!("update outbox.delivery set due_at = now() + interval '1 h' where action_id = '{lonely}'"))
        .await;
    let page = world.says(&["status"]).await.done();
    holds(
        &page,
        &["held queue waiting for behind", &format!("order 7 2 12 min {head} note.publish awaiting review: timeout")],
    );
    holds(&page, &["note.publish 1 1 4 0 0 1", "1 action needs a person: outboxd review"]);
    assert!(!page.contains(&going.to_string()) && !page.contains(&lonely.to_string()), "{page}");
    let json = world.says(&["status", "--json"]).await.json();
    let queues = json["queues_held"].as_array().expect("queues");
    assert_eq!(queues.len(), 1);
    assert_eq!(queues[0]["ordering_key"], "order 7");
    assert_eq!((queues[0]["waiting"].as_i64(), queues[0]["holds"].as_bool()), (Some(2), Some(false)));
    assert_eq!(queues[0]["head"]["action_id"], head.to_string());
    assert_eq!(json["operations"][0]["parked"], 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn r27_show_tells_the_place_in_the_queue_and_who_has_the_turn() {
    let world = World::new().await;
    let ledger = world.db.ledger("w");
    let [head, second, third] = held(&world, &ledger).await;
    promote(&ledger).await;
    let show = async |action: Uuid| world.says(&["show", &action.to_string()]).await.done();
    holds(&show(head).await, &["2 more wait behind it in its queue until it has ended."]);
    let behind = format!("It waits for its turn behind {head} (awaiting review: timeout)");
    holds(
        &show(second).await,
        &["committed, waiting for its turn", &format!("{behind}; it is the next one."), "ordering key order 7"],
    );
    holds(&show(third).await, &[&format!("{behind}; 1 more comes before it."), "Cancel it: it is not sent any more."]);
    let json = world.says(&["show", &third.to_string(), "--json"]).await.json();
    assert_eq!(json["queue"]["head"]["action_id"], head.to_string());
    assert_eq!((json["queue"]["waiting_before"].as_i64(), json["queue"]["has_turn"].as_bool()), (Some(1), Some(false)));
    let list = world.says(&["list", "--state", "pending"]).await.done();
    holds(&list, &[&second.to_string(), &third.to_string(), "in queue"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn r27_a_failure_that_holds_its_queue_is_told_with_what_may_be_done() {
    let world = World::new().await;
    let ledger = world.db.ledger("w");
    let [head, next] = [queued(&world.db, "a", "o").await, queued(&world.db, "b", "o").await];
    let claimed = take_one(&ledger).await;
    let failed = settlement(&claimed, &finding(Evidence::Rejected { replayed: false }));
    ledger.settle(&[Settlement { queue: Queue::IsHeld, ..failed }]).await.unwrap();
    let id = head.to_string();
    holds(
        &world.says(&["show", &id]).await.done(),
        &[
            "did not happen, holds its queue",
            "1 more waits behind it in its queue until it is tried again, or they are let go.",
            &format!("outboxd retry {id}"),
            &format!("outboxd release {id} --by YOU --reason WHY"),
        ],
    );
    let status = world.says(&["status"]).await.done();
    holds(&status, &["a failure that holds it: rejected", &format!("1 failure holds its queue: outboxd show {id}")]);
    world.says(&["release", &id, "--by", "ann", "--reason", "the next one needs nothing of it"]).await.done();
    let page = world.says(&["show", &id]).await.done();
    holds(&page, &["decided: release by ann: the next one needs nothing of it", "will not be tried again: "]);
    let refused = world.says(&["release", &id, "--by", "ann", "--reason", "again"]).await.refused();
    assert!(refused.contains("it holds no queue") && refused.ends_with("(OB412)\n"), "{refused}");
    assert_eq!(take_one(&ledger).await.intent.id.0, next);
}
