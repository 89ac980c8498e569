//! What the database itself refuses, whoever asks: here always the superuser who owns everything.

use crate::support::Database;

const STATES: [&str; 6] =
    ["pending", "dispatching", "succeeded", "retryable_failure", "terminal_failure", "outcome_unknown"];

/// Section 4 of the design, edge by edge.
const EDGES: [(&str, &str); 17] = [
    ("pending", "dispatching"),
    ("retryable_failure", "dispatching"),
    ("outcome_unknown", "dispatching"),
    ("dispatching", "pending"),
    ("dispatching", "succeeded"),
    ("dispatching", "retryable_failure"),
    ("dispatching", "terminal_failure"),
    ("dispatching", "outcome_unknown"),
    // the doubt is cleared, or a person decides
    ("outcome_unknown", "pending"),
    ("outcome_unknown", "retryable_failure"),
    ("outcome_unknown", "succeeded"),
    ("outcome_unknown", "terminal_failure"),
    // late proof
    ("pending", "succeeded"),
    ("retryable_failure", "succeeded"),
    // late evidence of an unknown send
    ("pending", "outcome_unknown"),
    ("retryable_failure", "outcome_unknown"),
    // an operator's recorded decision
    ("terminal_failure", "pending"),
];

/// A row in that state, with everything that goes with it.
fn assignments(state: &str) -> String {
    let (step, due_at, worker, attempt, doubt, closed) = match state {
        "pending" | "retryable_failure" => ("send", "now()", "null", "null", "null", "null"),
        "dispatching" => ("send", "now()", "'w'", "gen_random_uuid()", "null", "null"),
        "outcome_unknown" => ("lookup", "now()", "null", "null", "now()", "null"),
        _ => ("conclude", "null", "null", "null", "null", "now()"),
    };
    format!(
        "state = '{state}', step = '{step}', due_at = {due_at}, worker = {worker}, attempt_id = {attempt},
         doubt_since = {doubt}, closed_at = {closed}"
    )
}

/// Makes the row stand in that state, whatever stands against it.
async fn stand(db: &Database, state: &str) {
    db.run(&format!(
        "set session_replication_role = replica; update outbox.delivery set {}, fence = 1; reset session_replication_role",
        assignments(state)
    ))
    .await;
}

#[tokio::test]
async fn r12_every_edge_that_is_not_drawn_is_refused() {
    let db = Database::new().await;
    db.enqueue("op", "{}", "k").await;
    for from in STATES {
        for to in STATES {
            stand(&db, from).await;
            let claim = if to == "dispatching" { 1 } else { 0 };
            let sql = format!("update outbox.delivery set {}, fence = fence + {claim}", assignments(to));
            let closed = ["succeeded", "terminal_failure"].contains(&from);
            if EDGES.contains(&(from, to)) || (from == to && !closed) {
                db.run(&sql).await;
            } else {
                let (state, message) = db.refused(&sql, &[]).await;
                assert_eq!(state, "OB412", "{from} > {to}: {message}");
            }
        }
    }
}

#[tokio::test]
async fn r12_a_closed_row_never_changes_but_by_an_operators_retry() {
    let db = Database::new().await;
    db.enqueue("op", "{}", "k").await;
    for state in ["succeeded", "terminal_failure"] {
        stand(&db, state).await;
        for change in ["receipt = 'other'", "reason = 'other'", "attempts = 7", "closed_at = now() + interval '1 s'"] {
            let (_, message) = db.refused(&format!("update outbox.delivery set {change}"), &[]).await;
            assert!(message.contains("a closed row never changes"), "{state} {change}: {message}");
        }
    }
    let (_, message) =
        db.refused(&format!("update outbox.delivery set {}, fence = fence + 1", assignments("pending")), &[]).await;
    assert!(message.contains("a closed row never changes"), "{message}");
    db.run(&format!("update outbox.delivery set {}", assignments("pending"))).await;
}

#[tokio::test]
async fn r24_a_fence_never_falls_and_every_claim_adds_one() {
    let db = Database::new().await;
    db.enqueue("op", "{}", "k").await;
    for (state, change) in [
        ("pending", "fence = 0".to_owned()),
        ("dispatching", "fence = 0".to_owned()),
        ("pending", assignments("dispatching")),
        ("pending", format!("{}, fence = fence + 2", assignments("dispatching"))),
        ("outcome_unknown", format!("{}, fence = 0", assignments("pending"))),
    ] {
        stand(&db, state).await;
        let (state, message) = db.refused(&format!("update outbox.delivery set {change}"), &[]).await;
        assert!(state == "OB412" && message.contains("fence"), "{change}: {message}");
    }
}

#[tokio::test]
async fn r3_a_delivery_stays_that_of_its_action() {
    let db = Database::new().await;
    db.enqueue("op", "{}", "k").await;
    for change in ["action_id = gen_random_uuid()", "operation = 'other'", "tenant = 'other'"] {
        let (state, _) = db.refused(&format!("update outbox.delivery set {change}"), &[]).await;
        assert_eq!(state, "OB412", "{change}");
    }
}

#[tokio::test]
async fn r4_the_intent_is_immutable_even_to_its_owner() {
    let db = Database::new().await;
    db.enqueue("op", "{}", "k").await;
    for sql in [
        "update outbox.action set body = ''",
        "update outbox.action set tenant = tenant where false",
        "truncate outbox.action",
        "insert into outbox.action select * from outbox.action on conflict (action_id) do update set body = ''",
    ] {
        assert_eq!(db.refused(sql, &[]).await.0, "OB412", "{sql}");
    }
}

#[tokio::test]
async fn r9_history_is_append_only() {
    let db = Database::new().await;
    db.run(
        "insert into outbox.attempt (attempt_id, action_id, number, kind, fence, finished_at, evidence, verdict)
        values (gen_random_uuid(), gen_random_uuid(), 1, 'send', 1, now(), 'accepted', 'succeeded')",
    )
    .await;
    for sql in ["update outbox.attempt set evidence = 'rejected'", "truncate outbox.attempt"] {
        assert_eq!(db.refused(sql, &[]).await.0, "OB412", "{sql}");
    }
}

/// Constraint, and what violates it: of a delivery, else a whole statement.
const VIOLATIONS: &[(&str, &str)] = &[
    ("state_is_known", "state = 'lost'"),
    ("step_is_known", "step = 'dance'"),
    ("closed_iff_closed_at", "closed_at = now(), due_at = null"),
    ("closed_is_never_due", "state = 'succeeded', closed_at = now()"),
    ("dispatching_is_leased", "worker = 'w'"),
    ("unknown_has_doubt", "state = 'outcome_unknown', step = 'lookup'"),
    ("doubt_only_while_open", "doubt_since = now()"),
    ("doubt_attempt_needs_doubt", "doubt_attempt = gen_random_uuid()"),
    ("held_is_unknown_and_never_due", "state = 'outcome_unknown', step = 'review', doubt_since = now()"),
    ("held_is_unknown_and_never_due", "step = 'review', due_at = null"),
    ("open_is_due_or_held_or_parked", "due_at = null"),
    ("closed_waits_for_nothing", "state = 'succeeded', closed_at = now(), due_at = null, proof = ''"),
    ("closed_waits_for_nothing", "state = 'succeeded', closed_at = now(), due_at = null, override = true"),
    ("sent_times_in_order", "state = 'outcome_unknown', doubt_since = now(), first_sent_at = now()"),
    (
        "sent_times_in_order",
        "state = 'outcome_unknown', doubt_since = now(), first_sent_at = now(), last_sent_at = now() - interval '1 s'",
    ),
    ("waiting_is_unsent", "first_sent_at = now(), last_sent_at = now()"),
    ("waiting_is_unsent", "sent_digest = '\\x01'"),
    ("lane_has_place", "lane = 1"),
    ("lane_has_place", "turn = true"),
    ("only_a_failure_holds", "holds = true, lane = 1, place = 1, turn = true"),
    (
        "only_a_failure_holds",
        "state = 'terminal_failure', closed_at = now(), due_at = null, holds = true, lane = 1, place = 1",
    ),
    ("identity_fits", "insert into outbox.action (operation) values ('')"),
    ("input_hash_is_sha256", "insert into outbox.action (input_hash) values ('short')"),
    ("ordering_key_fits", "insert into outbox.action (ordering_key) values (repeat('o', 501))"),
    ("authority_fits", "insert into outbox.action (authority) values (repeat('a', 501))"),
    ("ids_fit", "insert into outbox.action (event_id) values (repeat('e', 501))"),
    ("kind_is_known", "insert into outbox.attempt (kind) values ('guess')"),
    ("decision_has_author", "insert into outbox.attempt (kind) values ('decision')"),
    ("detail_is_bounded", "insert into outbox.attempt (detail) values (repeat('d', 4001))"),
    ("tombstone_is_closed", "insert into outbox.tombstone (state) values ('pending')"),
    ("message_fits", "insert into outbox.inbox (source, message_id) values ('', 'm')"),
    ("lifted_by_someone", "insert into outbox.revocation (lifted_at) values (now())"),
    ("revokes_something", "insert into outbox.revocation (tenant) values (null)"),
    ("destination_fits", "insert into outbox.resume_request values ('', now(), 'ops', 'because')"),
    ("ledger_is_one", "insert into outbox.ledger (the_only_one) values (false)"),
];

/// So that an insert has to say only what is wrong.
const DEFAULTS: &str = "
    alter table outbox.action alter action_id set default gen_random_uuid(), alter operation set default 'op',
      alter retry_key set default 'k', alter input_hash set default sha256(''), alter created_at set default now();
    alter table outbox.attempt alter attempt_id set default gen_random_uuid(), alter action_id set default gen_random_uuid(),
      alter number set default 1, alter kind set default 'send', alter fence set default 1,
      alter finished_at set default now(), alter evidence set default 'accepted', alter verdict set default 'succeeded';
    alter table outbox.tombstone alter action_id set default gen_random_uuid(), alter tenant set default '',
      alter principal set default '', alter operation set default 'op', alter retry_key set default 'k',
      alter input_hash set default '', alter created_at set default now(), alter closed_at set default now();
    alter table outbox.revocation alter tenant set default 't', alter revoked_by set default 'me', alter reason set default 'why';
    alter table outbox.delivery alter action_id set default gen_random_uuid(), alter operation set default 'op',
      alter budget_from set default now(), alter updated_at set default now(), alter due_at set default now()";

#[tokio::test]
async fn r12_every_check_is_violated_once_and_named() {
    let db = Database::new().await;
    db.run(DEFAULTS).await;
    for &(constraint, wrong) in VIOLATIONS {
        let sql = if wrong.starts_with("insert") {
            wrong.to_owned()
        } else {
            // Rows are updated as well as inserted; an update meets the checks before any trigger.
            db.run("delete from outbox.delivery; insert into outbox.delivery default values").await;
            format!("update outbox.delivery set {wrong}")
        };
        let error = db.client.execute(&sql, &[]).await.expect_err(&sql);
        let found = error.as_db_error().and_then(|e| e.constraint().map(str::to_owned));
        assert_eq!(found.as_deref(), Some(constraint), "{sql}: {error:?}");
    }
}

#[tokio::test]
async fn r12_no_check_is_missing_from_the_list_above() {
    let db = Database::new().await;
    let sql = "select conname::text from pg_constraint where connamespace = 'outbox'::regnamespace and contype = 'c'";
    for row in db.client.query(sql, &[]).await.unwrap() {
        let name: String = row.get(0);
        assert!(VIOLATIONS.iter().any(|(constraint, _)| *constraint == name), "{name} is not tested");
    }
}
