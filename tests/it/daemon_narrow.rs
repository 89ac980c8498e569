//! A destination that takes one request at a time, and several operations.

use outboxd::proving::fake::Behaviour;

use crate::support::World;
use crate::support::world::{SOON, keyed};

#[tokio::test(flavor = "multi_thread")]
async fn idle_operations_do_not_keep_the_only_slot_from_a_backlog() {
    let mut world = World::new().await;
    world.destination = "max_in_flight = 1".into();
    // Idle ones before and behind it, and a sleep that would be noticed.
    for name in ["a.idle", "b.idle", "z.idle"] {
        world.also(name, "/idle", &keyed("1s", ""));
    }
    world.dispatcher = "lease_margin = \"500ms\"\npoll_interval = \"20s\"".into();
    world.fake.behave(|_, _| Behaviour::accept());
    world.enqueue_many("n-", 40).await;
    let _daemon = world.daemon().await;
    let all = world.until_count("select count(*) from outbox.status where state = 'succeeded'", 40);
    tokio::time::timeout(SOON, all).await.expect("the backlog doesn't wait for a poll");
}
