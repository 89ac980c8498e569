//! `outbox.resolve` (R21): what a person may decide about an unknown outcome, and what is refused.

use outboxd::core::action::{Step, Stop};
use outboxd::core::evidence::Evidence;
use outboxd::core::late::Testimony;
use outboxd::core::row::{Row, SentUnder};
use outboxd::core::target::Secret;
use outboxd::ledger::{Bell, Claimed, Ledger, Want};
use uuid::Uuid;

use crate::support::Database;
use crate::support::ledger::{NOTE, OTHER_PINS, PINS, claim, claim_one, lapsing, settle, testify, want};
use crate::support::world::SOON;

const RESOLVE: &str = "select outbox.resolve($1, $2, 'ann', 'asked the desk')";

async fn resolve(db: &Database, action: Uuid, decision: &str) -> String {
    db.one(RESOLVE, &[&action, &decision]).await
}

/// Why it is refused: the message of an OB412.
async fn refused(db: &Database, action: Uuid, decision: &str) -> String {
    let (state, message) = db.refused(RESOLVE, &[&action, &decision]).await;
    assert_eq!(state, "OB412", "{message}");
    message
}

/// An action whose outcome is unknown, held for a person.
async fn in_review(db: &Database) -> (Ledger, Claimed) {
    db.enqueue(NOTE, "{}", "k").await;
    let ledger = db.ledger("w");
    let claimed = claim_one(&ledger, &want(NOTE)).await;
    assert!(settle(&ledger, &claimed, Evidence::NoAnswer).await);
    db.run("update outbox.delivery set step = 'review', due_at = null").await;
    (ledger, claimed)
}

#[tokio::test]
async fn r21_happened_closes_it_as_succeeded_with_the_receipt_and_who_and_why() {
    let db = Database::new().await;
    let (_, claimed) = in_review(&db).await;
    let action = claimed.intent.id.0;
    let sql = "select outbox.resolve($1, 'happened', by => 'ann', reason => E'seen\\nin\\u0007the channel', receipt => 'msg-7')";
    assert_eq!(db.one::<String>(sql, &[&action]).await, "succeeded");
    let row = db.delivery(action).await;
    assert_eq!(
        (&row["state"], &row["reason"], &row["receipt"]),
        (&"succeeded".into(), &"operator".into(), &"msg-7".into())
    );
    assert!(row["doubt_since"].is_null() && row["due_at"].is_null() && row["closed_at"].is_string(), "{row}");
    let history = db.attempts(action).await;
    let decision = history.last().unwrap();
    for (column, value) in [
        ("kind", "decision"),
        ("evidence", "happened"),
        ("verdict", "succeeded"),
        ("decided_by", "ann"),
        ("detail", "seen in the channel"),
        ("receipt", "msg-7"),
    ] {
        assert_eq!(decision[column], value, "{decision}");
    }
    assert!(refused(&db, action, "did_not_happen").await.contains("it is succeeded"));
}

#[tokio::test]
async fn r21_did_not_happen_closes_it_as_not_delivered() {
    let db = Database::new().await;
    let (ledger, claimed) = in_review(&db).await;
    let action = claimed.intent.id.0;
    assert_eq!(resolve(&db, action, "did_not_happen").await, "terminal_failure");
    let row = db.delivery(action).await;
    assert_eq!((&row["state"], &row["reason"]), (&"terminal_failure".into(), &"operator".into()));
    assert!(row["doubt_since"].is_null() && row["doubt_attempt"].is_null(), "{row}");
    // And whoever learns better later says so.
    assert_eq!(testify(&ledger, &claimed, Evidence::Accepted).await, Testimony::Contradicts);
}

#[tokio::test]
async fn r19_did_not_happen_is_refused_while_a_request_can_still_arrive() {
    let db = Database::new().await;
    let (_, claimed) = in_review(&db).await;
    let action = claimed.intent.id.0;
    db.run("update outbox.delivery set last_sent_at = now() + interval '1 h'").await;
    assert!(refused(&db, action, "did_not_happen").await.contains("a request may still arrive"));
    // The contract says that an absence proves something a minute after the last send.
    db.run(&format!(
        "update outbox.delivery set first_sent_at = now() - interval '1 h', last_sent_at = now() - interval '59 s';
         insert into outbox.operation (operation, absence) values ('{NOTE}', '60 s')"
    ))
    .await;
    assert!(refused(&db, action, "did_not_happen").await.contains("a request may still arrive"));
    assert_eq!(db.count("select count(*) from outbox.attempt where kind = 'decision'").await, 0);
    db.run("update outbox.delivery set last_sent_at = now() - interval '61 s'").await;
    assert_eq!(resolve(&db, action, "did_not_happen").await, "terminal_failure");
}

#[tokio::test]
async fn r21_send_again_keeps_the_doubt_and_sends_the_same_once_whatever_stops_it() {
    let db = Database::new().await;
    let (ledger, first) = in_review(&db).await;
    let action = first.intent.id.0;
    db.run("select outbox.revoke('eve', 'left', operation => 'note.publish')").await;
    let bell = Bell::connect(&Secret::new(db.url.clone())).await.unwrap();
    assert_eq!(resolve(&db, action, "send_again").await, "awaiting_resend");
    tokio::time::timeout(SOON, bell.rung()).await.expect("a ring");
    let row = db.delivery(action).await;
    assert_eq!((&row["state"], &row["override"]), (&"outcome_unknown".into(), &true.into()));
    assert!(row["doubt_since"].is_string(), "{row}");

    let again = claim_one(&ledger, &want(NOTE)).await;
    assert_eq!((again.row.step, again.row.overridden), (Step::Send, true));
    assert_eq!(again.row.sent_under, SentUnder::These(PINS));
    assert!(settle(&ledger, &again, Evidence::NoAnswer).await);
    db.run("update outbox.delivery set due_at = now(), step = 'send'").await;
    let third = claim_one(&ledger, &want(NOTE)).await;
    assert_eq!((third.row.step, third.row.overridden), (Step::Conclude, false), "it lets one send pass");
    assert_eq!(third.row.stop, Some(Stop::AuthorityRevoked));
}

#[tokio::test]
async fn r18_send_again_under_other_pins_binds_it_to_none() {
    let db = Database::new().await;
    let (ledger, claimed) = in_review(&db).await;
    resolve(&db, claimed.intent.id.0, "send_again").await;
    let again = claim_one(&ledger, &Want { pins: OTHER_PINS, ..want(NOTE) }).await;
    assert_eq!(again.row.sent_under, SentUnder::Mixed);
}

/// A stop that was seen in doubt is remembered; a person who sends it again knows better.
#[tokio::test]
async fn r22_send_again_forgets_a_stop_that_has_been_lifted() {
    let db = Database::new().await;
    let (ledger, claimed) = in_review(&db).await;
    db.run("update outbox.delivery set reason = 'authority_revoked'").await;
    resolve(&db, claimed.intent.id.0, "send_again").await;
    assert_eq!(claim_one(&ledger, &want(NOTE)).await.row.stop, None);
}

#[tokio::test]
async fn r18_nothing_is_sent_again_once_a_cancel_by_key_has_been_sent() {
    let db = Database::new().await;
    let (_, claimed) = in_review(&db).await;
    let action = claimed.intent.id.0;
    db.run("update outbox.delivery set cancel_sent_at = now()").await;
    assert!(refused(&db, action, "send_again").await.contains("a cancel by its key has been sent"));
    // What a person has seen counts all the same.
    assert_eq!(resolve(&db, action, "happened").await, "succeeded");
}

#[tokio::test]
async fn r25_a_confirmation_that_waits_in_the_row_is_not_decided_away() {
    let db = Database::new().await;
    let (_, claimed) = in_review(&db).await;
    let action = claimed.intent.id.0;
    db.run("update outbox.delivery set proof = 'late-receipt', step = 'conclude', due_at = now()").await;
    for decision in ["did_not_happen", "send_again"] {
        assert!(refused(&db, action, decision).await.contains("has confirmed it meanwhile"));
    }
    assert_eq!(resolve(&db, action, "happened").await, "succeeded");
    assert_eq!(db.delivery(action).await["receipt"], "late-receipt");
}

#[tokio::test]
async fn r21_only_an_unknown_outcome_that_nobody_holds_is_decided_upon() {
    let db = Database::new().await;
    let action = db.enqueue(NOTE, "{}", "k").await;
    assert!(refused(&db, action, "happened").await.contains("it is pending"));
    let ledger = db.ledger("w");
    let claimed = claim_one(&ledger, &want(NOTE)).await;
    assert!(refused(&db, action, "happened").await.contains("a worker holds it until"));
    assert!(settle(&ledger, &claimed, Evidence::Rejected { replayed: false }).await);
    assert!(refused(&db, action, "send_again").await.contains("retry sends it again"));
    assert!(refused(&db, Uuid::nil(), "happened").await.contains("there is no action"));
    db.run("insert into outbox.tombstone (action_id, tenant, principal, operation, retry_key, input_hash, state, created_at, closed_at)
        select gen_random_uuid(), '', '', 'op', 'k', input_hash, 'succeeded', now(), now() from outbox.action").await;
    let pruned: Uuid = db.one("select action_id from outbox.tombstone", &[]).await;
    assert!(refused(&db, pruned, "happened").await.contains("only its identity is remembered"));
}

#[tokio::test]
async fn r21_a_decision_never_waits_for_a_claim_in_flight() {
    let db = Database::new().await;
    let (_, claimed) = in_review(&db).await;
    let claiming = db.session().await;
    claiming.batch_execute("begin; select from outbox.delivery for update").await.unwrap();
    db.run("set lock_timeout = '1 ms'").await;
    assert!(refused(&db, claimed.intent.id.0, "happened").await.contains("a worker is at it just now; try again"));
}

#[tokio::test]
async fn r21_a_claim_beside_an_open_decision_leaves_the_row_alone() {
    let db = Database::new().await;
    let (ledger, claimed) = in_review(&db).await;
    let desk = db.session().await;
    desk.batch_execute("begin").await.unwrap();
    desk.query(RESOLVE, &[&claimed.intent.id.0, &"send_again"]).await.unwrap();
    assert!(claim(&ledger, &want(NOTE)).await.is_empty());
    desk.batch_execute("commit").await.unwrap();
    assert!(claim_one(&ledger, &want(NOTE)).await.row.overridden);
}

#[tokio::test]
async fn r21_a_decision_needs_who_and_why_and_is_one_of_three() {
    let db = Database::new().await;
    let (_, claimed) = in_review(&db).await;
    let action = claimed.intent.id.0;
    for arguments in [
        "'happened', null, 'why'",
        "'happened', 'ann', ''",
        "'happened', ' ', 'why'",
        "'happened', repeat('a', 201), 'why'",
        "'happened', 'ann', repeat('a', 4001)",
        "'maybe', 'ann', 'why'",
        "null, 'ann', 'why'",
        "'happened', 'ann', 'why', repeat('r', 1001)",
        "'happened', 'ann', 'why', ''",
        "'happened', 'ann', 'why', E'two\\nlines'",
        "'did_not_happen', 'ann', 'why', 'receipt'",
    ] {
        let (state, message) = db.refused(&format!("select outbox.resolve($1, {arguments})"), &[&action]).await;
        assert_eq!(state, "OB422", "{arguments}: {message}");
    }
    assert_eq!(db.count("select count(*) from outbox.attempt where kind = 'decision'").await, 0);
}

/// What is closed stays closed; what is known of it does not.
#[tokio::test]
async fn r25_a_contradiction_is_decided_by_a_person_and_the_closed_row_stays() {
    for (decision, ends, took_effect) in [
        ("happened", "but it took effect, as an operator decided later.", Some(true)),
        ("did_not_happen", "Not delivered (rejected); it will not be tried again.", Some(false)),
    ] {
        let db = Database::new().await;
        let action = db.enqueue(NOTE, "{}", "k").await;
        let ledger = db.ledger("w");
        let slow = claim_one(&ledger, &lapsing(want(NOTE))).await;
        let next = claim_one(&ledger, &want(NOTE)).await;
        db.run("update outbox.delivery set doubt_since = null, doubt_attempt = null").await;
        let next = Claimed { row: Row { doubt: None, ..next.row.clone() }, ..next };
        assert!(settle(&ledger, &next, Evidence::Rejected { replayed: false }).await);
        assert_eq!(testify(&ledger, &slow, Evidence::Accepted).await, Testimony::Contradicts);
        let known = "select outbox.took_effect($1)";
        assert_eq!(db.one::<Option<bool>>(known, &[&action]).await, None);
        assert!(refused(&db, action, "send_again").await.contains("say whether it happened"));

        let before = db.delivery(action).await;
        assert_eq!(resolve(&db, action, decision).await, "terminal_failure");
        assert_eq!(db.delivery(action).await, before);
        assert_eq!(db.one::<Option<bool>>(known, &[&action]).await, took_effect);
        let sentence: String = db.one("select sentence from outbox.status", &[]).await;
        assert!(sentence.ends_with(ends), "{sentence}");
        assert!(refused(&db, action, decision).await.contains("it is closed as not delivered"), "it is decided once");
    }
}

#[tokio::test]
async fn r21_happened_is_never_undone_by_what_is_learnt_later() {
    let db = Database::new().await;
    let (ledger, claimed) = in_review(&db).await;
    resolve(&db, claimed.intent.id.0, "happened").await;
    for evidence in [Evidence::Accepted, Evidence::NotSent, Evidence::Rejected { replayed: true }] {
        assert_eq!(testify(&ledger, &claimed, evidence).await, Testimony::Record);
    }
    assert_eq!(db.label(claimed.intent.id.0).await, "succeeded");
}
