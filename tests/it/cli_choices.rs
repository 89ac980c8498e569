//! What `outboxd show` says may be decided is what the ledger lets be decided, in every state.

use std::collections::BTreeMap;

use uuid::Uuid;

use crate::support::World;

const UNKNOWN: &str = "state = 'outcome_unknown', step = 'review', due_at = null, doubt_since = now(),
    first_sent_at = now() - interval '1 min', last_sent_at = now() - interval '50 s', reason = 'timeout'";
const NOT_DONE: &str = "state = 'terminal_failure', step = 'conclude', due_at = null, doubt_since = null, proof = null,
    closed_at = now(), reason = 'absent'";

/// Each story, as statements about the one action `$`.
fn stories() -> Vec<(&'static str, Vec<String>)> {
    let set = |what: &str| format!("update outbox.delivery set {what} where action_id = '$'");
    let unknown = |more: &str| format!("{}; {}", set(UNKNOWN), if more.is_empty() { String::new() } else { set(more) });
    let not_done = || set(NOT_DONE);
    let late = "insert into outbox.attempt (attempt_id, action_id, number, kind, fence, finished_at, evidence, verdict)
        values (gen_random_uuid(), '$', 1, 'late', 1, now() + interval '1 ms', 'accepted', 'contradicts')";
    let cancelled = "insert into outbox.cancellation (action_id, requested_by, reason) values ('$', 'ann', 'why')";
    let revoked = "select outbox.revoke('ann', 'why', principal => 'bot')";
    vec![
        ("pending", vec![]),
        (
            "retryable",
            vec![
                unknown(""),
                set("state = 'retryable_failure', step = 'send', due_at = now(), doubt_since = null, first_sent_at = null,
                    last_sent_at = null"),
            ],
        ),
        ("held", vec![unknown("")]),
        ("held, and may still arrive", vec![unknown("last_sent_at = now() + interval '1 h'")]),
        ("to be resent", vec![unknown("step = 'send', due_at = now()")]),
        ("being asked about", vec![unknown("step = 'lookup', due_at = now()")]),
        ("held, its key is spent", vec![unknown("cancel_sent_at = now()")]),
        ("unknown, with proof", vec![unknown("step = 'send', due_at = now(), proof = 'a-77'")]),
        ("held, and cancelled", vec![unknown(""), cancelled.into()]),
        (
            "in flight",
            vec![
                "update outbox.delivery set state = 'dispatching', fence = 1, worker = 'w',
            attempt_id = gen_random_uuid(), due_at = now() + interval '1 h' where action_id = '$'"
                    .into(),
            ],
        ),
        (
            "succeeded",
            vec![
                "update outbox.delivery set state = 'succeeded', step = 'conclude', due_at = null,
            closed_at = now() where action_id = '$'"
                    .into(),
            ],
        ),
        ("not done", vec![unknown(""), not_done()]),
        ("not done, its key is spent", vec![unknown("cancel_sent_at = now()"), not_done()]),
        ("not done, and cancelled", vec![unknown(""), not_done(), cancelled.into()]),
        ("not done, and revoked", vec![unknown(""), not_done(), revoked.into()]),
        ("contradicted", vec![unknown(""), not_done(), late.into()]),
        (
            "contradicted, and it happened",
            vec![
                unknown(""),
                not_done(),
                late.into(),
                "select outbox.resolve('$', 'happened', 'ann', 'why') from pg_sleep(0.01)".into(),
            ],
        ),
        (
            "contradicted, and it did not happen",
            vec![
                unknown(""),
                not_done(),
                late.into(),
                "select outbox.resolve('$', 'did_not_happen', 'ann', 'why') from pg_sleep(0.01)".into(),
            ],
        ),
    ]
}

/// What the ledger says to each decision, without its taking effect.
async fn ledger_allows(world: &World, action: Uuid) -> BTreeMap<String, bool> {
    let mut allowed = BTreeMap::new();
    for (name, call) in [
        ("happened", "select outbox.resolve($1, 'happened', 'ann', 'why')"),
        ("did_not_happen", "select outbox.resolve($1, 'did_not_happen', 'ann', 'why')"),
        ("send_again", "select outbox.resolve($1, 'send_again', 'ann', 'why')"),
        ("retry", "select outbox.retry($1, 'ann', 'why')"),
    ] {
        world.db.run("begin").await;
        let answer = world.db.client.query(call, &[&action]).await;
        world.db.run("rollback").await;
        if let Err(error) = &answer {
            assert_eq!(error.code().map(|code| code.code()), Some("OB412"), "{name}: {error:?}");
        }
        allowed.insert(name.to_owned(), answer.is_ok());
    }
    allowed
}

#[tokio::test(flavor = "multi_thread")]
async fn r21_what_may_be_decided_is_what_the_ledger_lets_be_decided() {
    let world = World::new().await;
    for (number, (story, statements)) in stories().into_iter().enumerate() {
        let sql = "select action_id from outbox.enqueue('note.publish', '{}', $1, principal => $2)";
        let principal = if story.ends_with("revoked") { "bot" } else { "" };
        let action: Uuid = world.db.one(sql, &[&number.to_string(), &principal]).await;
        for statement in statements {
            world.db.run(&statement.replace('$', &action.to_string())).await;
        }
        let told = world.says(&["show", &action.to_string(), "--json"]).await.json();
        let mut shown: BTreeMap<String, bool> =
            ["happened", "did_not_happen", "send_again", "retry"].map(|name| (name.to_owned(), false)).into();
        for choice in told["choices"].as_array().unwrap() {
            let (name, possible) = (choice["decision"].as_str().unwrap(), choice["possible"].as_bool().unwrap());
            if let Some(known) = shown.get_mut(name) {
                *known = possible;
            }
        }
        assert_eq!(shown, ledger_allows(&world, action).await, "{story}: {told:#}");
    }
}
