//! What a claim costs depends on what is due, not on what is closed or scheduled (B56).

use serde_json::Value;
use tokio_postgres::Client;

use crate::support::Database;
use crate::support::ledger::{NOTE, session_settings};

const CLAIM: &str = include_str!("../../sql/claim.sql");
const NEXT_DUE: &str = include_str!("../../sql/next_due.sql");
const STATS: &str = include_str!("../../sql/stats.sql");
const LIST_HELD: &str = include_str!("../../sql/list_held.sql");

/// A session like the ledger's, with its statements prepared.
async fn prepared(db: &Database) -> Client {
    let session = db.session().await;
    let statements = format!(
        "{}; prepare claim (text[], boolean[], int[], bigint[], text[], bytea[], boolean[], text, bytea,
         int[], text[], boolean[], text[], int[], bigint, bigint, bigint, timestamptz[]) as {CLAIM};
         prepare next_due (text[], boolean[], timestamptz[]) as {NEXT_DUE}",
        session_settings()
    );
    session.batch_execute(&statements).await.expect("prepared");
    session
}

/// The plan of a claim that is carried out and rolled back.
async fn explain(session: &Client, statement: &str) -> Value {
    session.batch_execute("begin").await.unwrap();
    let sql = format!("explain (analyze, buffers, timing off, format json) execute {statement}");
    let plan: Value = session.query_one(&sql, &[]).await.unwrap_or_else(|e| panic!("{e:?}")).get(0);
    session.batch_execute("rollback").await.unwrap();
    plan[0]["Plan"].clone()
}

/// Of both kinds of rows.
fn claim() -> String {
    claim_since("-infinity")
}

/// Of those that have been due since then.
fn claim_since(since: &str) -> String {
    format!(
        "claim (array['{NOTE}', '{NOTE}'], array[false, true], array[64, 8], array[60000000, 60000000], array['', ''],
         array['\\x01'::bytea, '\\x01'], array[false, false], 'w', '\\x0102030405060708',
         array[null, null]::int[], '{{}}', '{{}}', '{{}}', '{{}}', 100000, 1000000, 1000000,
         array['{since}'::timestamptz, '{since}'])"
    )
}

fn nodes(plan: &Value) -> Vec<&Value> {
    let below = plan["Plans"].as_array().map(Vec::as_slice).unwrap_or_default();
    std::iter::once(plan).chain(below.iter().flat_map(nodes)).collect()
}

fn pages(plan: &Value) -> i64 {
    ["Shared Hit Blocks", "Shared Read Blocks"].iter().filter_map(|name| plan[name].as_i64()).sum()
}

/// Closed rows and rows of tomorrow, of some tenants.
async fn fill(db: &Database) {
    db.run(&format!(
        "insert into outbox.delivery (action_id, operation, tenant, state, step, due_at, closed_at, budget_from, updated_at)
           select gen_random_uuid(), '{NOTE}', 't' || n % 5, 'succeeded', 'conclude', null, now(), now(), now()
           from generate_series(1, 200000) n;
         insert into outbox.delivery (action_id, operation, tenant, due_at, budget_from, updated_at)
           select gen_random_uuid(), '{NOTE}', 't' || n % 5, now() + interval '1 day', now(), now()
           from generate_series(1, 50000) n"
    ))
    .await;
    db.run("vacuum analyze outbox.delivery").await;
}

/// Twenty to send, and twenty to ask about.
async fn enqueue_due(db: &Database) {
    db.run(
        "select outbox.enqueue('note.publish', '{}', n::text, tenant => 't' || n % 5) from generate_series(1, 40) n;
         update outbox.delivery d set state = 'outcome_unknown', step = 'lookup', doubt_since = now(), fence = fence + 1
           from outbox.action a where a.action_id = d.action_id and a.retry_key::int > 20",
    )
    .await;
}

#[tokio::test]
async fn b56_a_claim_costs_what_is_due_and_not_what_is_closed_or_scheduled() {
    let db = Database::new().await;
    enqueue_due(&db).await;
    let session = prepared(&db).await;
    explain(&session, &claim()).await; // warms the session's caches
    let small = explain(&session, &claim()).await;
    fill(&db).await;
    let session = prepared(&db).await;
    explain(&session, &claim()).await;
    let large = explain(&session, &claim()).await;

    for node in nodes(&large) {
        let kind = node["Node Type"].as_str().unwrap_or_default();
        let relation = node["Relation Name"].as_str().unwrap_or_default();
        if ["delivery", "action", "attempt"].contains(&relation) && node["Operation"].is_null() {
            assert!(kind.contains("Index") || kind == "Tid Scan", "{kind} on {relation}");
        }
        let rows = node["Actual Rows"].as_f64().unwrap_or_default() * node["Actual Loops"].as_f64().unwrap_or_default();
        assert!(rows <= 200.0, "{kind} of {rows} rows");
        let removed = node["Rows Removed by Filter"].as_f64().unwrap_or_default();
        assert!(removed <= 100.0, "{kind} reads {removed} rows in vain");
    }
    assert!(nodes(&large).iter().any(|node| node["Index Name"] == "delivery_due"), "{large:#}");
    // All that is to be sent, and of the others one of each tenant.
    let claimed = |plan: &Value| plan["Actual Rows"].as_f64();
    assert_eq!((claimed(&small), claimed(&large)), (Some(25.0), Some(25.0)));
    // Indexes are two levels deeper, and a walk looks at one row of each tenant.
    assert!(pages(&large) <= pages(&small) + 200, "{} pages instead of {}", pages(&large), pages(&small));
}

#[tokio::test]
async fn b56_a_claim_that_finds_nothing_costs_a_probe_per_tenant() {
    let db = Database::new().await;
    fill(&db).await;
    let session = prepared(&db).await;
    explain(&session, &claim()).await;
    let nothing = explain(&session, &claim()).await;
    assert!(pages(&nothing) <= 60, "{} pages", pages(&nothing));
    let next_due =
        explain(&session, "next_due (array['note.publish'], array[false], array['-infinity'::timestamptz])").await;
    assert!(pages(&next_due) <= 60, "{} pages", pages(&next_due));
    assert!(nodes(&next_due).iter().all(|node| node["Node Type"] != "Seq Scan"));
}

#[tokio::test]
async fn b59_a_claim_that_begins_where_the_due_rows_do_steps_over_nothing_dead() {
    let db = Database::new().await;
    db.run(
        "select outbox.enqueue('note.publish', '{}', n::text, not_before => now() - interval '1 hour' + n * interval '1 ms')
         from generate_series(1, 20200) n",
    )
    .await;
    db.run("vacuum analyze").await;
    let mut reader = db.session().await;
    let pinned = reader.build_transaction().isolation_level(tokio_postgres::IsolationLevel::RepeatableRead);
    let pinned = pinned.start().await.unwrap();
    pinned.query("select from outbox.delivery limit 1", &[]).await.unwrap();
    db.run(
        "update outbox.delivery d set state = 'dispatching', fence = 1, worker = 'w', attempt_id = gen_random_uuid(),
           due_at = now() + interval '1 hour' from outbox.action a where a.action_id = d.action_id and a.retry_key::int <= 20000;
         update outbox.delivery set state = 'succeeded', step = 'conclude', due_at = null, worker = null, closed_at = now()
           where state = 'dispatching'",
    )
    .await;
    let since: String = db.one("select min(due_at)::text from outbox.delivery", &[]).await;
    let session = prepared(&db).await;
    explain(&session, &claim_since(&since)).await;
    let (edge, begun) = (explain(&session, &claim()).await, explain(&session, &claim_since(&since)).await);
    assert_eq!((&edge["Actual Rows"], &begun["Actual Rows"]), (&Value::from(65), &Value::from(65)));
    // What it claims costs both the same; the pages of what is dead come on top of it.
    assert!(pages(&begun) + 500 < pages(&edge), "{} pages, {} from the edge", pages(&begun), pages(&edge));
}

/// A hundred thousand that wait behind one whose outcome is unknown, half of them in one queue.
async fn park(db: &Database) {
    db.run(&format!(
        "insert into outbox.action (action_id, operation, retry_key, input_hash, ordering_key, created_at)
           select outbox.uuid_v7(), '{NOTE}', 'parked' || n, sha256(''), 'o', now() from generate_series(0, 100000) n;
         insert into outbox.delivery (action_id, operation, state, step, due_at, doubt_since, lane, place, turn, budget_from, updated_at)
           select action_id, operation, case when n <= 2 then 'outcome_unknown' else 'pending' end,
             case when n <= 2 then 'review' else 'send' end, null, case when n <= 2 then now() end, n % 2, n, n <= 2, now(), now()
           from (select a.*, row_number() over (order by action_id) n from outbox.action a where retry_key like 'parked%') a"
    ))
    .await;
    db.run("vacuum analyze outbox.delivery").await;
}

#[tokio::test]
async fn r27_rows_that_wait_for_their_turn_cost_a_claim_nothing() {
    let db = Database::new().await;
    enqueue_due(&db).await;
    let session = prepared(&db).await;
    explain(&session, &claim()).await; // warms the session's caches
    let next_due = "next_due (array['note.publish'], array[false], array['-infinity'::timestamptz])";
    let (small, small_due) = (explain(&session, &claim()).await, explain(&session, next_due).await);
    park(&db).await;
    let session = prepared(&db).await;
    explain(&session, &claim()).await;
    let (large, large_due) = (explain(&session, &claim()).await, explain(&session, next_due).await);
    for plan in [&large, &large_due] {
        for node in nodes(plan) {
            let kind = node["Node Type"].as_str().unwrap_or_default();
            assert_ne!(kind, "Seq Scan");
            let removed = node["Rows Removed by Filter"].as_f64().unwrap_or_default();
            assert!(removed <= 100.0, "{kind} reads {removed} rows in vain");
        }
        assert!(nodes(plan).iter().any(|node| node["Index Name"] == "delivery_unplaced"), "{plan:#}");
    }
    assert_eq!(small["Actual Rows"], large["Actual Rows"]);
    // The indexes by id are a level deeper.
    assert!(pages(&large) <= pages(&small) + 200, "{} pages instead of {}", pages(&large), pages(&small));
    assert!(pages(&large_due) <= pages(&small_due) + 10, "{} pages", pages(&large_due));
    // The stats line and a review look at what is held, not at what waits behind it.
    let all = "select count(*) from outbox.delivery where due_at is null and closed_at is null";
    assert_eq!(db.count(all).await, 100_001);
    for (types, sql, arguments) in [
        ("bigint", STATS, "1000000"),
        ("text, text[], text, text, bigint, uuid, bigint", LIST_HELD, "null, null, null, null, null, null, 50"),
    ] {
        let name = format!("s{}", sql.len());
        session.batch_execute(&format!("prepare {name} ({types}) as {sql}")).await.unwrap();
        let plan = explain(&session, &format!("{name} ({arguments})")).await;
        assert!(pages(&plan) <= 150, "{} pages", pages(&plan));
    }
}

#[tokio::test]
async fn r27_giving_a_turn_costs_what_moves_and_not_what_waits() {
    let db = Database::new().await;
    park(&db).await;
    let session = db.session().await;
    let promote = "select (p).moved from outbox.promote() p";
    let cost = async || -> i64 {
        session.batch_execute("begin").await.unwrap();
        let sql = format!("explain (analyze, buffers, timing off, format json) {promote}");
        let plan: Value = session.query_one(&sql, &[]).await.unwrap().get(0);
        session.batch_execute("rollback").await.unwrap();
        pages(&plan[0]["Plan"])
    };
    cost().await;
    assert!(cost().await <= 100, "{} pages where there is nothing to do", cost().await);
    // One that arrives behind them all, and a head that ends.
    db.run(
        "select outbox.enqueue('note.publish', '{}', 'new', ordering_key => 'o');
        update outbox.delivery set lane = 1 where place = 1 and closed_at is null and step = 'send'",
    )
    .await;
    db.run("update outbox.delivery set state = 'succeeded', step = 'conclude', doubt_since = null, closed_at = now() where turn and lane = 1").await;
    cost().await;
    assert!(cost().await <= 400, "{} pages for two", cost().await);
    assert_eq!(db.count("select turns from outbox.promote()").await, 1);
}
