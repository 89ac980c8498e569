//! What looking costs: not what is closed, and not what is scheduled (B56).

use serde_json::Value;

use crate::support::Database;
use crate::support::ledger::session_settings;

const LIST: &str = include_str!("../../sql/list.sql");
const LIST_OPEN: &str = include_str!("../../sql/list_open.sql");
const LIST_BY_KEY: &str = include_str!("../../sql/list_by_key.sql");
const LIST_NOT_DONE: &str = include_str!("../../sql/list_not_done.sql");
const LIST_HELD: &str = include_str!("../../sql/list_held.sql");
const OVERVIEW: &str = include_str!("../../sql/overview.sql");
const NOW: &str = include_str!("../../sql/overview_now.sql");

/// A hundred thousand closed actions, ten of them as not done, a hundred that are open, and three that are held.
async fn fill(db: &Database) {
    db.run(
        "insert into outbox.action (action_id, operation, retry_key, input_hash, created_at)
           select outbox.uuid_v7(), 'note.publish', n::text, sha256(''), now() from generate_series(1, 100103) n;
         insert into outbox.delivery (action_id, operation, state, step, due_at, closed_at, doubt_since, first_sent_at,
             last_sent_at, budget_from, updated_at)
           select action_id, operation,
             case when n <= 100000 and n % 10000 = 7 then 'terminal_failure' when n <= 100000 then 'succeeded' when n <= 100003 then 'outcome_unknown' else 'pending' end,
             case when n <= 100000 then 'conclude' when n <= 100003 then 'review' else 'send' end,
             case when n > 100003 then now() end, case when n <= 100000 then now() - n * interval '1 s' end,
             case when n between 100001 and 100003 then now() end, case when n <= 100003 then now() end,
             case when n <= 100003 then now() end, now(), now()
           from (select action_id, operation, row_number() over (order by action_id) n from outbox.action) a",
    )
    .await;
    db.run("insert into outbox.operation (operation) values ('note.publish')").await;
    db.run("vacuum analyze outbox.delivery").await;
    db.run("vacuum analyze outbox.action").await;
}

/// The plan of a statement under the settings of the ledger's own sessions: its pages, and the tables it reads whole.
async fn cost(db: &Database, types: &str, statement: &str, arguments: &str) -> (i64, Vec<String>) {
    let settings = session_settings();
    let session = db.session().await;
    session.batch_execute(&format!("{settings}; prepare it ({types}) as {statement}")).await.expect("prepared");
    let sql = format!("explain (analyze, buffers, timing off, format json) execute it ({arguments})");
    session.query_one(&sql, &[]).await.expect("a plan"); // warms the session's caches
    let plan: Value = session.query_one(&sql, &[]).await.expect("a plan").get(0);
    let plan = &plan[0]["Plan"];
    let pages = ["Shared Hit Blocks", "Shared Read Blocks"].iter().filter_map(|name| plan[name].as_i64()).sum();
    let mut whole = Vec::new();
    read_whole(plan, &mut whole);
    (pages, whole)
}

fn read_whole(node: &Value, found: &mut Vec<String>) {
    if node["Node Type"] == "Seq Scan" {
        found.push(node["Relation Name"].to_string());
    }
    for below in node["Plans"].as_array().map(Vec::as_slice).unwrap_or_default() {
        read_whole(below, found);
    }
}

#[tokio::test]
async fn b56_what_an_operator_asks_costs_what_is_open_and_not_what_is_closed() {
    let db = Database::new().await;
    fill(&db).await;
    let types = "text, text[], text, text, bigint, uuid, bigint";
    for (name, types, statement, arguments, most) in [
        ("list", types, LIST, "null, null, null, null, null, null, 51", 400),
        ("list, old", types, LIST, "null, null, 'note.publish', '', 0, null, 51", 400),
        ("list, open", types, LIST_OPEN, "'pending', null, null, null, null, null, 51", 400),
        ("list, not done", types, LIST_NOT_DONE, "'terminal_failure', null, null, null, null, null, 51", 60),
        ("list, by key", "text, text, text, uuid, bigint", LIST_BY_KEY, "'n', null, null, null, 51", 60),
        ("review", types, LIST_HELD, "null, null, null, null, null, null, 51", 100),
        ("review, old", types, LIST_HELD, "null, null, null, '', 3600000000, gen_random_uuid(), 51", 100),
        ("status", "bigint", OVERVIEW, "1000000", 100),
        ("status, now", "bigint", NOW, "1000000", 100),
    ] {
        let (pages, whole) = cost(&db, types, statement, arguments).await;
        assert!(whole.is_empty(), "{name} reads {whole:?} from end to end");
        assert!(pages <= most, "{name} reads {pages} pages");
    }
}
