//! deploy/roles.sql: each role can do its work, and nothing else. Run as real logins that are members of one role.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use outboxd::core::action::Step;
use outboxd::core::evidence::Evidence;
use outboxd::core::late::Testimony;
use outboxd::core::target::Secret;
use outboxd::ledger::{self, DestinationReport, InventoryRow, Keep, Pruned, Want};
use outboxd::proving::session;
use tokio_postgres::Client;

use crate::support::Database;
use crate::support::database::sqlstate;
use crate::support::ledger::{NOTE, claim_one, lapsing, settle, testify, want};

const ROLES: &str = include_str!("../../deploy/roles.sql");
static LOGINS: AtomicU32 = AtomicU32::new(0);

/// The URL of a new login that is a member of that role, and of nothing else.
async fn login(db: &Database, role: &str) -> String {
    let name = format!("login{}", LOGINS.fetch_add(1, Ordering::Relaxed));
    db.run(&format!("create role {name} login; grant {role} to {name}")).await;
    db.url_as(&name)
}

async fn with_roles() -> Database {
    let db = Database::new().await;
    db.run(ROLES).await;
    db
}

async fn member(db: &Database, role: &str) -> Client {
    session::connect(&login(db, role).await).await.expect("a session")
}

async fn may(session: &Client, sql: &str) {
    session.batch_execute(sql).await.unwrap_or_else(|e| panic!("{sql}: {e:?}"));
}

async fn may_not(session: &Client, sql: &str) {
    let error = session.batch_execute(sql).await.expect_err(sql);
    assert_eq!(sqlstate(&error), "42501", "{sql}: {error:?}");
}

/// Whatever it is a member of, nobody but the owner may do these.
const NOBODY_MAY: [&str; 16] = [
    "delete from outbox.action",
    "delete from outbox.delivery",
    "delete from outbox.attempt",
    "truncate outbox.delivery",
    "drop table outbox.delivery",
    "drop schema outbox cascade",
    "alter table outbox.delivery disable trigger all",
    "update outbox.action set body = ''",
    "update outbox.attempt set evidence = 'accepted'",
    "insert into outbox.action (action_id) values (null)",
    "insert into outbox.delivery (action_id) values (null)",
    "insert into outbox.tombstone (action_id) values (null)",
    "update outbox.operation set forgets_before = 'infinity'",
    "create table outbox.mine ()",
    "select * from outbox.inbox",
    "select setval('outbox.place', 1)",
];

#[tokio::test]
async fn r8_an_application_can_enqueue_receive_cancel_and_read_the_status_only() {
    let db = with_roles().await;
    let app = member(&db, "outbox_app").await;
    for sql in [
        "select outbox.enqueue('note.publish', '{}', 'k', headers => '{\"x-a\":\"b\"}')",
        "select outbox.enqueue_bytes('note.publish', '\\x00', retry_key => 'bytes')",
        "select outbox.receive('billing', 'm-1')",
        "select action_id, label, sentence from outbox.status",
        "select outbox.cancel(action_id, 'app', 'why') from outbox.status",
    ] {
        may(&app, sql).await;
    }
    for sql in [
        "select body from outbox.action",
        "select * from outbox.delivery",
        "update outbox.delivery set state = 'succeeded'",
        "select * from outbox.attempt",
        "select outbox.revoke('app', 'why', tenant => 't')",
        "select outbox.restore(1, 'app', 'why')",
        "select outbox.resolve(action_id, 'happened', 'app', 'why') from outbox.status",
        "select outbox.retry(action_id, 'app', 'why') from outbox.status",
        "select outbox.release(action_id, 'app', 'why') from outbox.status",
        "select outbox.promote()",
        "select outbox.lock_queues()",
        "select outbox.prune(array['o'], array[interval '0'], array[interval '0'])",
        "select outbox.uuid_v7()",
        "select outbox.schema_version()",
        "select outbox.resume('payments', 'app', 'why')",
        "select * from outbox.daemon",
    ]
    .iter()
    .chain(&NOBODY_MAY)
    {
        may_not(&app, sql).await;
    }
}

#[tokio::test]
async fn r10_a_reader_can_read_the_status_only() {
    let db = with_roles().await;
    db.enqueue(NOTE, "{}", "k").await;
    let reader = member(&db, "outbox_reader").await;
    may(&reader, "select * from outbox.status").await;
    for sql in [
        "select body from outbox.action",
        "select outbox.enqueue('note.publish', '{}', 'k2')",
        "select outbox.receive('s', 'm')",
        "select outbox.cancel(action_id, 'me', 'why') from outbox.status",
        "select outbox.revoke('me', 'why', tenant => 't')",
    ]
    .iter()
    .chain(&NOBODY_MAY)
    {
        may_not(&reader, sql).await;
    }
}

#[tokio::test]
async fn r21_an_operator_can_stop_things_decide_and_read_the_history() {
    let db = with_roles().await;
    let action = db.enqueue(NOTE, "{}", "k").await;
    let held = db.enqueue(NOTE, "{}", "held").await;
    db.run(&format!(
        "update outbox.delivery set state = 'outcome_unknown', step = 'review', due_at = null, doubt_since = now()
         where action_id = '{held}'"
    ))
    .await;
    let failed = crate::support::queue::queued(&db, "failed", "o").await;
    db.run(&format!(
        "update outbox.delivery set state = 'dispatching', fence = fence + 1, worker = 'w', attempt_id = gen_random_uuid()
           where action_id = '{failed}';
         update outbox.delivery set state = 'terminal_failure', step = 'conclude', due_at = null, worker = null,
           attempt_id = null, closed_at = now(), turn = true, holds = true where action_id = '{failed}'"
    ))
    .await;
    let operator = member(&db, "outbox_operator").await;
    for sql in [
        "select action_id, workflow_id, traceparent, compensates, created_at from outbox.action",
        "select * from outbox.delivery",
        "select * from outbox.tombstone",
        &format!("select outbox.resolve('{held}', 'did_not_happen', 'op', 'why')"),
        &format!("select outbox.retry('{held}', 'op', 'why')"),
        &format!("select outbox.release('{failed}', 'op', 'why')"),
        "select outbox.took_effect(action_id) from outbox.status",
        "select * from outbox.status",
        "select * from outbox.attempt",
        "select outbox.restore(outbox.revoke('op', 'why', tenant => 't'), 'op', 'why')",
        "select * from outbox.revocation",
        &format!("select outbox.cancel('{action}', 'op', 'why')"),
        "select * from outbox.cancellation",
        "select * from outbox.operation",
        "select outbox.resume('payments', 'op', 'why')",
        "select * from outbox.daemon, outbox.resume_request",
    ] {
        may(&operator, sql).await;
    }
    for sql in [
        "select body from outbox.action",
        "select params from outbox.action",
        "select headers from outbox.action",
        "select outbox.enqueue('note.publish', '{}', 'k2')",
        "update outbox.delivery set state = 'succeeded'",
        "update outbox.revocation set lifted_at = now(), lifted_by = 'op'",
        "delete from outbox.daemon",
        "delete from outbox.resume_request",
        "select outbox.prune(array['o'], array[interval '0'], array[interval '0'])",
    ]
    .iter()
    .chain(&NOBODY_MAY)
    {
        may_not(&operator, sql).await;
    }
}

#[tokio::test]
async fn only_a_dispatcher_passes_for_one() {
    let db = with_roles().await;
    for (role, may) in [("outbox_dispatcher", true), ("outbox_operator", false)] {
        let ledger = ledger::connect(&Secret::new(login(&db, role).await), 1, "w").unwrap();
        ledger.check_schema().await.unwrap();
        match ledger.would_recognise().await {
            Ok(()) => assert!(may, "{role}"),
            Err(error) => assert!(!may && error.to_string().contains("outbox_dispatcher"), "{role}: {error}"),
        }
    }
}

#[tokio::test]
async fn r24_a_dispatcher_can_run_every_statement_of_the_ledger() {
    let db = with_roles().await;
    let url = login(&db, "outbox_dispatcher").await;
    let ledger = ledger::connect(&Secret::new(url.clone()), 2, "w").unwrap();
    ledger.check_schema().await.unwrap();
    assert!(ledger.recognise().await.unwrap().readable);
    ledger.clock().await.unwrap();
    assert_eq!(ledger.give_back("w", ledger::ClaimMark::new(), Duration::ZERO).await.unwrap(), 0);
    let of = |effect| InventoryRow {
        operation: NOTE,
        destination: "fake",
        effect,
        contract: "test",
        meaning: "Publish a note",
        owner: "tests",
        absence: Some(Duration::from_secs(60)),
        hold_on_failure: true,
        body_max: 1 << 20,
    };
    ledger.write_inventory(&[of("keyed")]).await.unwrap();
    ledger.write_inventory(&[of("idempotent")]).await.unwrap();
    assert_eq!(db.one::<String>("select effect from outbox.operation", &[]).await, "idempotent");

    db.enqueue(NOTE, "{}", "k").await;
    db.run("select outbox.revoke('ann', 'why', operation => 'other')").await;
    let slow = claim_one(&ledger, &lapsing(want(NOTE))).await;
    let next = claim_one(&ledger, &want(NOTE)).await;
    assert_eq!(next.row.step, Step::Conclude, "its lapse is in the history");
    assert!(!settle(&ledger, &slow, Evidence::Accepted).await);
    assert!(settle(&ledger, &next, Evidence::Lapsed).await);
    assert_eq!(testify(&ledger, &slow, Evidence::NotSent).await, Testimony::ClearToPending);
    let marking = Want { marks: true, ..want(NOTE) };
    let marked = claim_one(&ledger, &marking).await;
    assert_eq!(ledger.mark(std::slice::from_ref(&marked)).await.unwrap().len(), 1);
    assert!(settle(&ledger, &marked, Evidence::Accepted).await);
    assert_eq!(ledger.open_rows().await.unwrap(), ledger::OpenRows::default());
    assert_eq!(ledger::next_due_in(&ledger, &[(NOTE, false, None)]).await.unwrap(), None);
    let keep = [Keep { operation: NOTE, payload: Duration::ZERO, identity: Duration::from_secs(60) }];
    assert_eq!(ledger.prunable(&keep).await.unwrap().actions, 1);
    assert_eq!(ledger.prune(&keep).await.unwrap(), Pruned::Done { actions: 1, tombstones: 0 });

    crate::support::queue::queued(&db, "queued", "o").await;
    assert_eq!(crate::support::queue::send(&ledger, Evidence::Accepted).await.get_version_num(), 7);
    assert_eq!(ledger.mend_queues(None).await.unwrap().queues, 0);
    let report = DestinationReport {
        destination: "fake".into(),
        state: "credentials",
        since: Some(Duration::from_secs(3)),
        reason: Some("credentials_refused"),
        status: Some(401),
        probes: 1,
        in_flight: 0,
        max_in_flight: 8,
    };
    let (started, believed) = (Duration::from_secs(1), Duration::from_secs(60));
    let now = ledger.report("1.0", started, believed, std::slice::from_ref(&report)).await.unwrap();
    ledger.report("1.0", started, believed, &[report]).await.unwrap();
    assert_eq!(ledger.daemons().await.unwrap()[0].destinations[0].status, Some(401));
    assert_eq!(ledger.resume_requests(now).await.unwrap(), []);
    ledger.leave().await.unwrap();

    let mut bell = ledger::Bell::connect(&Secret::new(url)).await.unwrap();
    assert_eq!(bell.approach().await.unwrap(), ledger::Door::Ours);
    db.enqueue(NOTE, "{}", "rings").await;
    tokio::time::timeout(crate::support::world::SOON, bell.rung()).await.expect("a ring");
    bell.leave().await.unwrap();
}

#[tokio::test]
async fn r24_a_dispatcher_can_do_nothing_but_its_work() {
    let db = with_roles().await;
    db.enqueue(NOTE, "{}", "k").await;
    let dispatcher = member(&db, "outbox_dispatcher").await;
    for sql in [
        "select outbox.accept_cluster()",
        "update outbox.ledger set timeline = 2",
        "select outbox.enqueue('note.publish', '{}', 'k2')",
        "select outbox.cancel(gen_random_uuid(), 'me', 'why')",
        "select outbox.revoke('me', 'why', tenant => 't')",
        "select outbox.resolve(gen_random_uuid(), 'happened', 'me', 'why')",
        "select outbox.retry(gen_random_uuid(), 'me', 'why')",
        "select outbox.release(gen_random_uuid(), 'me', 'why')",
        "insert into outbox.cancellation (action_id, requested_by, reason) values (gen_random_uuid(), 'me', 'why')",
        "update outbox.revocation set lifted_at = now(), lifted_by = 'me'",
        "insert into outbox.operation (operation, forgets_before) values ('o', now())",
        "select outbox.resume('payments', 'me', 'why')",
        "insert into outbox.resume_request values ('payments', now(), 'me', 'why')",
    ]
    .iter()
    .chain(&NOBODY_MAY)
    {
        may_not(&dispatcher, sql).await;
    }
    // And the guards hold for it as for everybody.
    let error = dispatcher.batch_execute("update outbox.delivery set state = 'succeeded', fence = -1").await;
    assert!(error.is_err());
}

#[tokio::test]
async fn r8_roles_can_be_applied_again_and_take_back_what_was_too_much() {
    let db = with_roles().await;
    db.run("grant all on all tables in schema outbox to outbox_reader; grant all on schema outbox to public").await;
    db.run(ROLES).await;
    let reader = member(&db, "outbox_reader").await;
    may_not(&reader, "select * from outbox.action").await;
    may_not(&reader, "create table outbox.mine ()").await;
}

#[tokio::test]
async fn r8_roles_can_be_applied_to_several_databases_of_a_cluster_at_once() {
    let (one, two, three) = (Database::new().await, Database::new().await, Database::new().await);
    tokio::join!(one.run(ROLES), two.run(ROLES), three.run(ROLES));
}

#[tokio::test]
async fn r8_public_has_nothing_with_and_without_the_roles() {
    let db = Database::new().await;
    let anybody = "select count(*) from (
        select nspacl from pg_namespace where nspname = 'outbox' and nspacl::text ~ '[{,]='
        union all select relacl from pg_class where relnamespace = 'outbox'::regnamespace and relacl::text ~ '[{,]='
        union all select coalesce(proacl, acldefault('f', proowner)) from pg_proc where pronamespace = 'outbox'::regnamespace
          and coalesce(proacl, acldefault('f', proowner))::text ~ '[{,]=') t";
    assert_eq!(db.count(anybody).await, 0);
    db.run("create role nobody_special login").await;
    let nobody = session::connect(&db.url_as("nobody_special")).await.unwrap();
    for sql in ["select * from outbox.status", "select outbox.enqueue('o', '{}', 'k')"].iter().chain(&NOBODY_MAY) {
        if !sql.starts_with("drop") && !sql.starts_with("alter") {
            may_not(&nobody, sql).await;
        }
    }
    db.run(ROLES).await;
    assert_eq!(db.count(anybody).await, 0);
}
