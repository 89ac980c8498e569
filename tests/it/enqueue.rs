//! `outbox.enqueue`, `enqueue_bytes` and `receive` in an application's own transactions.

use tokio_postgres::Client;
use uuid::Uuid;

use crate::support::Database;
use crate::support::database::{pid, sqlstate};

const NOTE_17: &str = "select action_id, created, state from outbox.enqueue(
    operation => 'note.publish', payload => '{\"text\":\"v1.2 is out\"}', retry_key => 'note-17', tenant => 'acme')";

async fn enqueue(session: &Client, sql: &str) -> (Uuid, bool, String) {
    let row = session.query_one(sql, &[]).await.unwrap_or_else(|e| panic!("{sql}: {e:?}"));
    (row.get(0), row.get(1), row.get(2))
}

#[tokio::test]
async fn r1_ids_of_six_kinds_are_six_columns_and_the_action_id_is_ours() {
    let db = Database::new().await;
    let (action, created, state) = enqueue(
        &db.client,
        "select * from outbox.enqueue(operation => 'note.publish', payload => '{}', retry_key => 'key-1',
           event_id => 'evt-9', proposal_id => 'prop-3', workflow_id => 'flow-4',
           traceparent => '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01')",
    )
    .await;
    assert!(created);
    assert_eq!(state, "pending");
    assert_eq!(action.get_version_num(), 7);
    let sql = "select concat_ws(' ', retry_key, event_id, proposal_id, workflow_id, left(traceparent, 6))
        from outbox.action where action_id = $1";
    let ids: String = db.one(sql, &[&action]).await;
    assert_eq!(ids, "key-1 evt-9 prop-3 flow-4 00-0af");
}

#[tokio::test]
async fn r2_the_same_event_twice_is_one_action_and_retry_key_defaults_to_event_id() {
    let db = Database::new().await;
    let by_event = "select * from outbox.enqueue('note.publish', '{}', event_id => 'evt-1')";
    let (first, created, _) = enqueue(&db.client, by_event).await;
    let (again, created_again, _) = enqueue(&db.client, by_event).await;
    assert!(created && !created_again);
    assert_eq!(first, again);
    let key: String = db.one("select retry_key from outbox.action where action_id = $1", &[&first]).await;
    assert_eq!(key, "evt-1");
}

#[tokio::test]
async fn r2_one_event_makes_an_action_for_each_operation_and_retry_key() {
    let db = Database::new().await;
    for (operation, key) in [("note.publish", "a"), ("note.publish", "b"), ("mail.send", "a")] {
        let sql = "select created from outbox.enqueue($1, '{}', $2, event_id => 'evt-1')";
        assert!(db.one::<bool>(sql, &[&operation, &key]).await, "{operation} {key}");
    }
    assert_eq!(db.count("select count(*) from outbox.action where event_id = 'evt-1'").await, 3);
}

#[tokio::test]
async fn r3_two_tenants_and_two_principals_with_the_same_key_never_meet() {
    let db = Database::new().await;
    for (tenant, principal) in [("acme", ""), ("bolt", ""), ("acme", "bot"), ("", "")] {
        let sql = "select created from outbox.enqueue('note.publish', json_build_object('for', $1::text), 'key',
            tenant => $1, principal => $2)";
        assert!(db.one::<bool>(sql, &[&tenant, &principal]).await, "{tenant} {principal}");
    }
    let found = "select count(distinct action_id) from outbox.status where retry_key = 'key'";
    assert_eq!(db.count(found).await, 4);
}

#[tokio::test]
async fn r4_same_key_with_the_same_input_is_the_first_action_and_not_created() {
    let db = Database::new().await;
    let (first, created, _) = enqueue(&db.client, NOTE_17).await;
    db.run("update outbox.delivery set state = 'dispatching', worker = 'w', attempt_id = gen_random_uuid(), fence = 1")
        .await;
    let (again, created_again, state) = enqueue(&db.client, NOTE_17).await;
    assert!(created && !created_again);
    assert_eq!((first, state.as_str()), (again, "dispatching"));
    assert_eq!(db.count("select count(*) from outbox.action").await, 1);
}

#[tokio::test]
async fn r4_same_key_with_other_input_is_ob409_and_changes_nothing() {
    let db = Database::new().await;
    enqueue(&db.client, "select * from outbox.enqueue('note.publish', '{\"a\":1}', 'k', params => '{\"p\":1}')").await;
    let before: String =
        db.one("select string_agg(a::text || d::text, '') from outbox.action a, outbox.delivery d", &[]).await;
    for other in [
        "'{\"a\":2}', 'k', params => '{\"p\":1}'",
        "'{\"a\": 1}', 'k', params => '{\"p\":1}'",
        "null, 'k', params => '{\"p\":1}'",
        "'{\"a\":1}', 'k', params => '{\"p\":2}'",
        "'{\"a\":1}', 'k'",
        "'{\"a\":1}', 'k', params => '{\"p\":1}', headers => '{\"x-a\":\"b\"}'",
        "'{\"a\":1}', 'k', params => '{}', headers => '{\"p\":\"1\"}'",
    ] {
        let (state, message) = db.refused(&format!("select outbox.enqueue('note.publish', {other})"), &[]).await;
        assert_eq!(state, "OB409", "{other}: {message}");
    }
    let after: String =
        db.one("select string_agg(a::text || d::text, '') from outbox.action a, outbox.delivery d", &[]).await;
    assert_eq!(before, after);
}

#[tokio::test]
async fn r4_times_and_trace_ids_are_not_part_of_the_input() {
    let db = Database::new().await;
    enqueue(&db.client, NOTE_17).await;
    let (_, created, _) = enqueue(
        &db.client,
        "select * from outbox.enqueue('note.publish', '{\"text\":\"v1.2 is out\"}', 'note-17', tenant => 'acme',
           event_id => 'redelivered', requested_at => now(), expires_at => now() + interval '1 h',
           traceparent => '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01')",
    )
    .await;
    assert!(!created);
}

#[tokio::test]
async fn r4_a_concurrent_enqueue_of_the_same_key_waits_for_the_first_to_commit() {
    let db = Database::new().await;
    let (one, two) = (db.session().await, db.session().await);
    one.batch_execute("begin").await.unwrap();
    let (first, ..) = enqueue(&one, NOTE_17).await;
    let waiting = pid(&two).await;
    let second = tokio::spawn(async move { enqueue(&two, NOTE_17).await });
    db.until_blocked(waiting).await;
    one.batch_execute("commit").await.unwrap();
    assert_eq!(second.await.unwrap(), (first, false, "pending".into()));
}

#[tokio::test]
async fn r4_a_concurrent_enqueue_of_the_same_key_creates_when_the_first_rolls_back() {
    let db = Database::new().await;
    let (one, two) = (db.session().await, db.session().await);
    one.batch_execute("begin").await.unwrap();
    let (first, ..) = enqueue(&one, NOTE_17).await;
    let waiting = pid(&two).await;
    let second = tokio::spawn(async move { enqueue(&two, NOTE_17).await });
    db.until_blocked(waiting).await;
    one.batch_execute("rollback").await.unwrap();
    let (action, created, _) = second.await.unwrap();
    assert!(created && action != first);
    assert_eq!(db.count("select count(*) from outbox.status").await, 1);
}

#[tokio::test]
async fn r4_repeatable_read_gets_40001_for_what_its_snapshot_cannot_see() {
    let db = Database::new().await;
    let old = db.session().await;
    old.batch_execute("begin isolation level repeatable read; select 1").await.unwrap();
    old.query("select count(*) from outbox.action", &[]).await.unwrap();
    let (first, ..) = enqueue(&db.client, NOTE_17).await;
    let error = old.query(NOTE_17, &[]).await.expect_err("a conflict with what it cannot see");
    assert_eq!(sqlstate(&error), "40001");
    old.batch_execute("rollback").await.unwrap();
    assert_eq!(enqueue(&old, NOTE_17).await, (first, false, "pending".into()));
}

#[tokio::test]
async fn r8_action_and_state_change_commit_or_roll_back_together() {
    let db = Database::new().await;
    db.run("create table note (id text primary key)").await;
    let enqueue_it = format!("insert into note values ('n'); {NOTE_17};");
    db.run(&format!("begin; {enqueue_it} rollback")).await;
    let rows = "select (select count(*) from note) + (select count(*) from outbox.action)
        + (select count(*) from outbox.delivery)";
    assert_eq!(db.count(rows).await, 0);
    db.run(&format!("begin; {enqueue_it} commit")).await;
    assert_eq!(db.count(rows).await, 3);
}

#[tokio::test]
async fn b24_a_json_body_is_stored_byte_for_byte() {
    let db = Database::new().await;
    for payload in [
        r#"{"id":9223372036854775808,"x":1.10,"y":1e400,"b":1,"a":2,"s":"\u00e9"}"#,
        "{ \"a\" : 1,\n\t\"a\":2 }",
        r#""just text""#,
        "\"\u{20ac} \u{1f980}\"",
    ] {
        let action = db.enqueue("note.publish", payload, payload).await;
        let stored: Vec<u8> = db.one("select body from outbox.action where action_id = $1", &[&action]).await;
        assert_eq!(stored, payload.as_bytes());
    }
}

#[tokio::test]
async fn b26_a_nul_escape_in_a_payload_is_stored_as_it_was_given() {
    let db = Database::new().await;
    let payload = r#"{"text":"a\u0000b"}"#;
    let action = db.enqueue("note.publish", payload, "nul").await;
    let stored: Vec<u8> = db.one("select body from outbox.action where action_id = $1", &[&action]).await;
    assert_eq!(stored, payload.as_bytes());
}

#[tokio::test]
async fn r8_enqueue_bytes_takes_any_bytes_and_their_content_type() {
    let db = Database::new().await;
    let sql = "select * from outbox.enqueue_bytes(operation => 'file.put', body => '\\x00ff0d0a',
        content_type => 'application/octet-stream', retry_key => 'f')";
    let (action, created, _) = enqueue(&db.client, sql).await;
    assert!(created);
    let sql_stored = "select body, content_type from outbox.action where action_id = $1";
    let row = db.client.query_one(sql_stored, &[&action]).await.unwrap();
    assert_eq!(row.get::<_, Vec<u8>>(0), [0, 255, 13, 10]);
    assert_eq!(row.get::<_, &str>(1), "application/octet-stream");
    assert!(!enqueue(&db.client, sql).await.1);
}

#[tokio::test]
async fn r22_not_before_says_when_it_is_due_and_expires_at_is_kept() {
    let db = Database::new().await;
    db.run(
        "select outbox.enqueue('note.publish', '{}', 'later',
           not_before => '2999-01-01 UTC', expires_at => '2999-01-02 UTC')",
    )
    .await;
    let sql =
        "select d.due_at = '2999-01-01 UTC' and d.budget_from = '2999-01-01 UTC' and a.expires_at = '2999-01-02 UTC'
        from outbox.delivery d join outbox.action a using (action_id)";
    assert!(db.one::<bool>(sql, &[]).await);
}

#[tokio::test]
async fn b54_a_large_payload_commits_whether_or_not_somebody_listens() {
    let db = Database::new().await;
    let keeper = db.session().await;
    keeper.batch_execute("listen outbox; select pg_advisory_lock(7813402954201167431)").await.unwrap();
    let sql = "select created from outbox.enqueue('note.publish', to_json(repeat('x', 1000000)), 'big')";
    assert!(db.one::<bool>(sql, &[]).await);
}

#[tokio::test]
async fn r6_a_message_is_new_once_and_only_if_its_transaction_commits() {
    let db = Database::new().await;
    let receive = "select outbox.receive('billing', 'msg-1')";
    let session = db.session().await;
    session.batch_execute("begin").await.unwrap();
    assert!(session.query_one(receive, &[]).await.unwrap().get::<_, bool>(0));
    session.batch_execute("rollback").await.unwrap();
    assert!(db.one::<bool>(receive, &[]).await);
    assert!(!db.one::<bool>(receive, &[]).await);
    assert!(db.one::<bool>("select outbox.receive('orders', 'msg-1')", &[]).await);
}

#[tokio::test]
async fn r6_two_consumers_of_one_message_wait_for_each_other() {
    let db = Database::new().await;
    let (one, two) = (db.session().await, db.session().await);
    one.batch_execute("begin; select outbox.receive('billing', 'msg-1')").await.unwrap();
    let waiting = pid(&two).await;
    let second = tokio::spawn(async move {
        two.query_one("select outbox.receive('billing', 'msg-1')", &[]).await.unwrap().get::<_, bool>(0)
    });
    db.until_blocked(waiting).await;
    one.batch_execute("commit").await.unwrap();
    assert!(!second.await.unwrap());
}

#[tokio::test]
async fn r6_a_message_without_an_id_is_ob422() {
    let db = Database::new().await;
    for call in ["null, 'm'", "'s', null", "'', 'm'", "'s', ''", "'s', repeat('m', 501)", "repeat('s', 201), 'm'"] {
        assert_eq!(db.refused(&format!("select outbox.receive({call})"), &[]).await.0, "OB422", "{call}");
    }
}
