//! What must not be sent any more is not sent (R22).

use outboxd::proving::fake::{Behaviour, Gate};
use uuid::Uuid;

use crate::support::World;
use crate::support::world::{SOON, keyed};

/// Enqueues with further arguments.
async fn enqueue(world: &World, key: &str, more: &str) -> Uuid {
    let sql = format!("select action_id from outbox.enqueue('note.publish', '{{}}', '{key}' {more})");
    world.db.one(&sql, &[]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn r22_what_is_cancelled_before_its_send_is_never_sent() {
    let world = World::new().await;
    let action = world.enqueue("n-1").await;
    let said: String = world.db.one("select outbox.cancel($1, 'me', 'a typo')", &[&action]).await;
    assert_eq!(said, "cancelled");
    let _daemon = world.daemon().await;
    world.until(action, "terminal_failure").await;
    let standing = world.standing(action).await;
    assert_eq!((standing.reason.as_deref(), standing.attempts), (Some("cancelled"), 0));
    assert_eq!(world.fake.tally().requests, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn r22_what_is_cancelled_between_two_attempts_is_not_sent_again() {
    let mut world = World::new().await;
    world.operation = "effect = \"keyed\"\ntimeout = \"1s\"\nbackoff = { initial = \"1h\", max = \"1h\" }".into();
    world.fake.behave(|_, _| Behaviour::refuse(429));
    let action = world.enqueue("n-1").await;
    let _daemon = world.daemon().await;
    world.until(action, "retryable_failure").await;
    let said: String = world.db.one("select outbox.cancel($1, 'me', 'too late')", &[&action]).await;
    assert_eq!(said, "cancelled");
    world.until(action, "terminal_failure").await;
    assert_eq!((world.standing(action).await.reason.as_deref(), world.fake.tally().requests), (Some("cancelled"), 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn r22_a_cancellation_in_mid_send_does_not_undo_the_success() {
    let mut world = World::new().await;
    world.operation = keyed("10s", "");
    let gate = Gate::new();
    let held = gate.clone();
    world.fake.behave(move |_, _| Behaviour::accept().held_by(&held));
    let action = world.enqueue("n-1").await;
    let _daemon = world.daemon().await;
    world.fake.wait_seen(1).await.expect("under way");
    let said: String = world.db.one("select outbox.cancel($1, 'me', 'too late')", &[&action]).await;
    assert_eq!(said, "requested");
    gate.open();
    world.until(action, "succeeded").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r22_what_has_expired_is_not_sent() {
    let world = World::new().await;
    let late = enqueue(&world, "late", ", expires_at => clock_timestamp() + interval '1 ms'").await;
    let good = enqueue(&world, "good", ", expires_at => clock_timestamp() + interval '1 hour'").await;
    world
        .until_true(
            "not exists (select from outbox.action where retry_key = 'late' and expires_at > clock_timestamp())",
        )
        .await;
    let _daemon = world.daemon().await;
    world.until(late, "terminal_failure").await;
    world.until(good, "succeeded").await;
    assert_eq!(world.standing(late).await.reason.as_deref(), Some("deadline"));
    assert_eq!(world.fake.tally().requests, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn r22_each_key_of_a_revocation_stops_its_own_actions_and_no_others() {
    let mut world = World::new().await;
    world.also("note.other", "/other", &keyed("1s", ""));
    let mut stopped = Vec::new();
    for (revoked, more) in [
        ("tenant => 'acme'", ", tenant => 'acme'"),
        ("principal => 'bot'", ", principal => 'bot'"),
        ("authority => 'grant-7'", ", authority => 'grant-7'"),
        ("tenant => 'globex', principal => 'eve'", ", tenant => 'globex', principal => 'eve'"),
    ] {
        stopped.push(enqueue(&world, revoked.replace('\'', "").as_str(), more).await);
        world.db.one::<i64>(&format!("select outbox.revoke('me', 'left the company', {revoked})"), &[]).await;
    }
    stopped.push(world.db.enqueue("note.other", "{}", "n").await);
    world.db.one::<i64>("select outbox.revoke('me', 'switched off', operation => 'note.other')", &[]).await;
    let mut fine = vec![enqueue(&world, "plain", "").await];
    fine.push(enqueue(&world, "only-half", ", tenant => 'globex', principal => 'adam'").await);
    fine.push(enqueue(&world, "other-grant", ", authority => 'grant-8'").await);

    let _daemon = world.daemon().await;
    for action in &fine {
        world.until(*action, "succeeded").await;
    }
    for action in &stopped {
        world.until(*action, "terminal_failure").await;
        assert_eq!(world.standing(*action).await.reason.as_deref(), Some("authority_revoked"));
        assert!(world.seen_of(*action).is_empty());
    }
    assert_eq!(world.fake.tally().requests, fine.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn r22_what_a_lifted_revocation_has_not_stopped_goes_on() {
    let world = World::new().await;
    let revocation: i64 = world.db.one("select outbox.revoke('me', 'wait', tenant => 'acme')", &[]).await;
    world.db.one::<bool>("select outbox.restore($1, 'me', 'go on')", &[&revocation]).await;
    let action = enqueue(&world, "n-1", ", tenant => 'acme'").await;
    let _daemon = world.daemon().await;
    world.until(action, "succeeded").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r22_what_is_revoked_while_in_doubt_is_not_resent_and_stays_unknown() {
    let mut world = World::new().await;
    world.operation = keyed("1s", "").replace("initial = \"50ms\", max = \"1s\"", "initial = \"2s\", max = \"2s\"");
    world.fake.behave(|_, _| Behaviour::accept().withholding());
    let action = enqueue(&world, "n-1", ", authority => 'grant-7'").await;
    let daemon = world.daemon().await;
    world.until(action, "awaiting_resend").await;
    world.db.one::<i64>("select outbox.revoke('me', 'left', authority => 'grant-7')", &[]).await;
    world.until(action, "awaiting_review").await;
    let standing = world.standing(action).await;
    assert_eq!((standing.reason.as_deref(), standing.in_doubt), (Some("authority_revoked"), true));
    assert_eq!(world.fake.tally().requests, 1);
    daemon.logged("action held for review", SOON).await.expect("logged");
}

#[tokio::test(flavor = "multi_thread")]
async fn r22_what_is_cancelled_while_in_doubt_is_not_resent_and_stays_unknown() {
    let mut world = World::new().await;
    world.operation = keyed("1s", "").replace("initial = \"50ms\", max = \"1s\"", "initial = \"2s\", max = \"2s\"");
    world.fake.behave(|_, _| Behaviour::accept().withholding());
    let action = world.enqueue("n-1").await;
    let _daemon = world.daemon().await;
    world.until(action, "awaiting_resend").await;
    let said: String = world.db.one("select outbox.cancel($1, 'me', 'stop it')", &[&action]).await;
    assert_eq!(said, "requested");
    world.until(action, "awaiting_review").await;
    assert_eq!(world.standing(action).await.reason.as_deref(), Some("cancelled"));
    assert_eq!(world.fake.tally().requests, 1);
}
