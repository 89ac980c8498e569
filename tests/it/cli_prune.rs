//! `outboxd prune`: what is older than it is kept goes, and only that.

use crate::support::World;
use crate::support::cli::holds;

/// Five succeeded actions and a pending one; three of the five were closed forty days ago.
async fn aged(world: &World) {
    world.enqueue_many("n", 6).await;
    world
        .db
        .run(
            "update outbox.delivery d set state = 'succeeded', step = 'conclude', due_at = null,
               closed_at = now() - case when n <= 3 then interval '40 days' else interval '1 day' end
             from (select action_id, row_number() over (order by action_id) n from outbox.action) a
             where a.action_id = d.action_id and n <= 5",
        )
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r5_a_dry_run_counts_and_a_prune_leaves_tombstones() {
    let mut world = World::new().await;
    world.operation.push_str("\nkeep = { payload = \"30d\", identity = \"400d\" }\n");
    world.also("note.other", "/other", "effect = \"keyed\"");
    aged(&world).await;
    let page = world.says(&["prune", "--dry-run"]).await.done();
    holds(&page, &["would prune", "note.publish 30 days 3 400 days 0 0", "note.other 30 days 0"]);
    assert_eq!(world.db.count("select count(*) from outbox.tombstone").await, 0, "a dry run changes nothing");
    let page = world.says(&["prune"]).await.done();
    holds(&page, &["pruned", "note.publish 30 days 3 400 days 0 0"]);
    assert_eq!(world.db.count("select count(*) from outbox.tombstone").await, 3);
    assert_eq!(world.db.count("select count(*) from outbox.delivery").await, 3);
    let gone: uuid::Uuid = world.db.one("select action_id from outbox.tombstone limit 1", &[]).await;
    holds(&world.says(&["show", &gone.to_string()]).await.done(), &["succeeded, pruned", "remembered until about"]);
    let again = world.says(&["prune", "--json"]).await.json();
    let note = again["operations"].as_array().unwrap().iter().find(|o| o["operation"] == "note.publish").unwrap();
    assert_eq!((note["actions"].as_u64(), note["left_alone"].as_u64()), (Some(0), Some(0)), "{again}");
}

#[tokio::test(flavor = "multi_thread")]
async fn r5_the_retry_key_of_a_pruned_action_is_remembered() {
    let world = World::new().await;
    aged(&world).await;
    world.says(&["prune", "--json"]).await.json();
    let sql = "select count(*) from outbox.tombstone t, outbox.enqueue('note.publish',
          json_build_object('note', t.retry_key), t.retry_key) e where not e.created and e.action_id = t.action_id";
    assert_eq!(world.db.count(sql).await, 3, "the same key gives the first action");
}
