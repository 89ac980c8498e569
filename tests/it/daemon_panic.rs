//! A delivery that panics (B68).

use crate::support::World;
use crate::support::world::{SOON, keyed};

#[tokio::test(flavor = "multi_thread")]
async fn b68_panics_stop_no_other_delivery_and_leak_no_slot() {
    let mut world = World::new().await;
    world.dispatcher = "max_in_flight = 4\nlease_margin = \"500ms\"\npoll_interval = \"100ms\"".into();
    world.operation = keyed("1s", "attempts_max = 3");
    world
        .db
        .run(
            "select outbox.enqueue('note.publish', '{}', 'bad-' || i, params => '{\"test_hook_panic\":1}')
             from generate_series(1, 10) i",
        )
        .await;
    let daemon = world.daemon().await;
    world.enqueue_many("good", 20).await;
    world.until_count("select count(*) from outbox.status where state = 'succeeded'", 20).await;
    // Ten actions, three panics each, four slots: all of them end, in doubt, for a person.
    world.until_count("select count(*) from outbox.status where label = 'awaiting_review' and attempts = 3", 10).await;
    assert_eq!(world.fake.tally().requests, 20);
    daemon.logged("delivery panicked", SOON).await.expect("logged");
    let last = world.enqueue("last").await;
    world.until(last, "succeeded").await;
}
