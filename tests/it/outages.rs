//! Databases that go away in one way or another, and come back: nothing is sent meanwhile, one line each way, and the
//! daemon goes on by itself.

use std::time::Duration;

use outboxd::clock::stopwatch;
use outboxd::proving::fake::{Behaviour, Gate};

use crate::support::World;
use crate::support::world::{SOON, keyed, lines, lines_of};

/// A daemon as a role of its own, so that trouble can be made for it alone.
async fn as_a_role() -> (World, String) {
    let mut world = World::new().await;
    world.operation = keyed("600s", "");
    let role = format!("daemon_{}", world.db.name);
    world.db.run(include_str!("../../deploy/roles.sql")).await;
    world.db.run(&format!("create role {role} login; grant outbox_dispatcher to {role}")).await;
    world.url = world.db.url_as(&role);
    (world, role)
}

#[tokio::test(flavor = "multi_thread")]
async fn b44_a_database_that_turns_the_daemon_away_in_any_way_is_waited_for() {
    let (world, role) = as_a_role().await;
    let postgres = world.db.elsewhere().await;
    let daemon = world.daemon().await;
    let name = &world.db.name;
    let troubles = [
        // As after a password that is not valid any more.
        ("login", format!("alter role {role} nologin"), format!("alter role {role} login")),
        (
            "too many clients",
            format!("alter role {role} connection limit 0"),
            format!("alter role {role} connection limit -1"),
        ),
        (
            "read only",
            format!("alter role {role} set default_transaction_read_only = on"),
            format!("alter role {role} reset default_transaction_read_only"),
        ),
        (
            "renamed",
            format!(
                "alter database {name} allow_connections false; select pg_terminate_backend(pid) from pg_stat_activity where datname = '{name}' and usename = '{role}'"
            ),
            format!("alter database {name} allow_connections true"),
        ),
    ];
    for (n, (what, begin, end)) in troubles.iter().enumerate() {
        postgres.batch_execute(begin).await.unwrap_or_else(|error| panic!("{what}: {error:?}"));
        let kill = format!("select pg_terminate_backend(pid) from pg_stat_activity where usename = '{role}'");
        postgres.batch_execute(&kill).await.expect("killed");
        let lost = async {
            while lines_of(&daemon.log(), "ledger lost").len() <= n {
                tokio::time::sleep(Duration::from_millis(10)).await
            }
        };
        tokio::time::timeout(SOON, lost).await.unwrap_or_else(|_| panic!("{what} is not noticed:\n{}", daemon.log()));
        let action = world.enqueue(&format!("n-{n}")).await;
        let before = lines(&daemon.log()).len();
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!((world.standing(action).await.fence, world.fake.tally().requests), (0, n), "{what}");
        assert!(lines(&daemon.log()).len() - before <= 3, "{what}:\n{}", daemon.log());
        postgres.batch_execute(end).await.expect("over");
        world.until(action, "succeeded").await;
    }
    let (lost, back) = (lines_of(&daemon.log(), "ledger lost").len(), lines_of(&daemon.log(), "ledger back").len());
    assert_eq!((lost, back), (troubles.len(), troubles.len()), "one line each way:\n{}", daemon.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn r11_a_result_that_a_missing_grant_keeps_out_is_kept_until_it_is_there() {
    let (world, role) = as_a_role().await;
    let gate = Gate::new();
    let held = gate.clone();
    world.fake.behave(move |_, _| Behaviour::accept().held_by(&held));
    let daemon = world.daemon().await;
    world.enqueue_many("n", 3).await;
    world.fake.wait_seen(3).await.expect("under way");
    world.db.run("revoke insert on outbox.attempt from outbox_dispatcher").await;
    gate.open();
    daemon.logged("ledger lost", SOON).await.expect("it is no matter of one row");
    let next = world.enqueue("next").await;
    world.fake.wait_until(Duration::from_millis(700), |tally| tally.requests > 3).await.expect_err("nothing is sent");
    world.db.run("grant insert on outbox.attempt to outbox_dispatcher").await;
    world.until(next, "succeeded").await;
    world.until_count("select count(*) from outbox.status where state = 'succeeded'", 4).await;
    let learnt = "select count(*) from outbox.attempt where evidence <> 'accepted' or kind <> 'send'";
    assert_eq!((world.db.count(learnt).await, world.fake.tally().requests), (0, 4), "{role}");
    assert_eq!(lines_of(&daemon.log(), "settle refused").len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn r11_a_claim_that_the_server_refuses_has_taken_nothing_and_is_in_no_journal() {
    let (mut world, _) = as_a_role().await;
    world.dispatcher.push_str("\njournal = \"daemon.journal\"");
    let daemon = world.daemon().await;
    world.db.run("revoke update on outbox.delivery from outbox_dispatcher").await;
    let action = world.enqueue("n-1").await;
    daemon.logged("ledger lost", SOON).await.expect("refused");
    // Longer than the journal takes to look at what was not answered.
    tokio::time::sleep(Duration::from_secs(1)).await;
    world.db.run("grant update on outbox.delivery to outbox_dispatcher").await;
    world.until(action, "succeeded").await;
    assert_eq!(lines_of(&daemon.log(), "journal in use").len(), 0, "{}", daemon.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn r25_what_was_sent_of_an_action_that_the_ledger_has_lost_is_told() {
    let mut world = World::new().await;
    world.operation = keyed("600s", "");
    let gate = Gate::new();
    let held = gate.clone();
    world.fake.behave(move |_, _| Behaviour::accept().held_by(&held));
    let action = world.enqueue("n-1").await;
    let daemon = world.daemon().await;
    world.fake.wait_seen(1).await.expect("under way");
    // As a failover to a replica does that has not received it.
    world.db.run("delete from outbox.delivery; delete from outbox.action").await;
    gate.open();
    daemon.logged("late testimony", SOON).await.expect("told");
    let line = &lines_of(&daemon.log(), "late testimony")[0];
    let told = (&line["action"], &line["evidence"], &line["meaning"]);
    let expected = (action.to_string().into(), "accepted".into(), "the ledger does not have the action".into());
    assert_eq!(told, (&expected.0, &expected.1, &expected.2));
}

#[tokio::test(flavor = "multi_thread")]
async fn b44_a_database_that_was_dropped_and_made_anew_is_found_again() {
    let mut world = World::new().await;
    let daemon = world.daemon().await;
    let before = world.enqueue("before").await;
    world.until(before, "succeeded").await;
    let (postgres, name) = (world.db.elsewhere().await, world.db.name.clone());
    postgres.batch_execute(&format!("drop database {name} with (force)")).await.expect("dropped");
    daemon.logged("ledger lost", SOON).await.expect("lost");
    postgres.batch_execute(&format!("create database {name} template outbox_template")).await.expect("made anew");
    world.db.client = world.db.session().await;
    let after = world.enqueue("after").await;
    world.until(after, "succeeded").await;
    daemon.logged("ledger back", SOON).await.expect("back");
}

#[tokio::test(flavor = "multi_thread")]
async fn b44_a_database_whose_name_does_not_resolve_is_waited_for_and_does_not_hold_up_a_stop() {
    let mut world = World::new().await;
    world.url = "postgres://postgres@nowhere.invalid/app".into();
    let mut daemon = world.start();
    daemon.logged("ledger lost", SOON).await.expect("lost");
    let asked = stopwatch();
    assert_eq!(daemon.terminate(SOON).await.expect("it ends").code(), Some(0));
    assert!(asked.elapsed() < Duration::from_secs(10), "{:?}", asked.elapsed());
    assert_eq!(lines_of(&daemon.log(), "ledger lost").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn r11_b52_sessions_that_are_killed_at_any_moment_lose_nothing_and_send_nothing_twice() {
    let mut world = World::new().await;
    world.operation = keyed("600s", "");
    world.dispatcher.push_str("\nmax_in_flight = 8");
    world.fake.behave(|_, _| Behaviour::accept().delayed(Duration::from_millis(10)));
    world.enqueue_many("n", 400).await;
    let daemon = world.daemon().await;
    let postgres = world.db.elsewhere().await;
    let kill = format!(
        "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'outboxd' and datname = '{}'",
        world.db.name
    );
    let mut kills = 0;
    let done = async {
        while world.db.count("select count(*) from outbox.status where state = 'succeeded'").await < 400 {
            postgres.batch_execute(&kill).await.expect("killed");
            kills += 1;
            // Another moment each time, and longer and longer, so that there is an end.
            tokio::time::sleep(Duration::from_millis(20 + 23 * kills % 400 + 5 * kills)).await;
        }
    };
    tokio::time::timeout(4 * SOON, done).await.unwrap_or_else(|_| panic!("not all of them:\n{}", daemon.log()));
    assert!(kills > 3);
    let learnt =
        world.db.count("select count(*) from outbox.attempt where evidence <> 'accepted' or kind <> 'send'").await;
    assert_eq!((learnt, world.fake.tally().requests, world.fake.duplicates()), (0, 400, 0), "{kills} kills");
}

#[tokio::test(flavor = "multi_thread")]
async fn b59_what_is_committed_late_is_seen_while_a_backlog_is_worked_off() {
    let mut world = World::new().await;
    world.dispatcher = "max_in_flight = 4\npoll_interval = \"30s\"".into();
    world.operation = keyed("600s", "");
    world.fake.behave(|_, _| Behaviour::accept().delayed(Duration::from_millis(40)));
    world.enqueue_many("n", 1500).await;
    let _daemon = world.daemon().await;
    world.fake.wait_seen(100).await.expect("some");
    // Due since before all that the last claims have met.
    let sql =
        "select action_id from outbox.enqueue('note.publish', '{}', 'late', not_before => now() - interval '1 hour')";
    let late = world.db.one(sql, &[]).await;
    world.until(late, "succeeded").await;
    let waiting = world.db.count("select count(*) from outbox.delivery where state = 'pending'").await;
    assert!(waiting > 0, "long before the others");
}
