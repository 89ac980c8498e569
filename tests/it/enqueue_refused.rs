//! What `outbox.enqueue` refuses: what could never be sent, and what may have been sent and forgotten.

use crate::support::Database;

async fn is_refused(db: &Database, arguments: &str, sqlstate: &str) {
    let (state, message) = db.refused(&format!("select outbox.enqueue({arguments})"), &[]).await;
    assert_eq!(state, sqlstate, "{arguments}: {message}");
    assert!(!message.contains("Evil"), "the value is in the message: {message}");
    assert_eq!(db.count("select count(*) from outbox.action").await, 0, "{arguments}");
}

#[tokio::test]
async fn r4_input_that_can_never_be_sent_is_ob422() {
    let db = Database::new().await;
    for arguments in [
        "'', '{}', 'k'",
        "null, '{}', 'k'",
        "'op', '{}'",
        "'op', '{}', ''",
        "'op', '{}', event_id => ''",
        "'op', '{}', 'k', tenant => null",
        "'op', '{}', 'k', principal => null",
        "'op', '{}', 'k', params => '[1]'",
        "'op', '{}', 'k', params => 'null'",
        "'op', '{}', 'k', params => '\"p\"'",
        "'op', '{}', 'k', headers => '[]'",
        "'op', '{}', 'k', headers => '{\"x-a\":1}'",
        "'op', '{}', 'k', headers => '{\"x-a\":null}'",
        "'op', '{}', 'k', traceparent => 'not a trace'",
        "'op', '{}', 'k', traceparent => E'00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-\\r\\nX-Evil: 1'",
        "'op', '{}', 'k', ordering_key => ''",
        "'op', '{}', 'k', compensates => gen_random_uuid()",
        "'op', '{}', 'k', not_before => 'infinity'",
        "'op', '{}', 'k', not_before => '-infinity'",
    ] {
        is_refused(&db, arguments, "OB422").await;
    }
    let (state, _) = db.refused("select outbox.enqueue_bytes('op', '', E'text/x\\r\\nX-Evil: 1', 'k')", &[]).await;
    assert_eq!(state, "OB422");
}

#[tokio::test]
async fn b19_header_text_that_no_request_can_carry_is_ob422() {
    let db = Database::new().await;
    for headers in [
        r#"{"x-a":"a\r\nX-Evil: 1"}"#,
        r#"{"x-a":"a\u000d\u000aX-Evil: 1"}"#,
        r#"{"x-a":"a\u000D"}"#,
        r#"{"x-a":"\\\u0000"}"#,
        r#"{"x-a":"\u001f"}"#,
        r#"{"x-a":"\u007f"}"#,
        "{\"x-a\":\"raw \u{7f}\"}",
        r#"{"x-a":"\b"}"#,
        r#"{"":"v"}"#,
        r#"{"x a":"v"}"#,
        r#"{"x:Evil":"v"}"#,
        r#"{"x-a\u0000":"v"}"#,
        r#"{"x-a\ud800":"v"}"#,
        r#"{"x-a\r\nX-Evil":"v"}"#,
        r#"{"x-ä":"v"}"#,
        r#"{"fine":"v","x-a":"\n"}"#,
    ] {
        is_refused(&db, &format!("'op', '{{}}', 'k', headers => '{headers}'"), "OB422").await;
    }
}

#[tokio::test]
async fn b19_header_text_that_a_request_can_carry_is_taken() {
    let db = Database::new().await;
    for (key, headers) in [
        r#"{"x-a":""}"#,
        r#"{"x-a":"tab\there"}"#,
        r#"{"x-a":"tab\u0009here"}"#,
        r#"{"x-a":"back\\nslash"}"#,
        r#"{"x-a":"quo\"te \/"}"#,
        r#"{"X_a.!#$%&*+^`|~-9":"v"}"#,
        r"{}",
    ]
    .iter()
    .enumerate()
    {
        let sql = format!("select created from outbox.enqueue('op', '{{}}', 'k{key}', headers => '{headers}')");
        assert!(db.one::<bool>(&sql, &[]).await, "{headers}");
    }
}

#[tokio::test]
async fn b29_keys_params_and_headers_that_are_too_long_are_refused_by_name() {
    let db = Database::new().await;
    let long = "repeat(md5(random()::text), 320)";
    for argument in ["retry_key", "event_id", "tenant", "principal", "authority", "traceparent"] {
        let key = if ["retry_key", "event_id"].contains(&argument) { "" } else { "'k', " };
        is_refused(&db, &format!("'op', '{{}}', {key}{argument} => {long}"), "OB422").await;
    }
    is_refused(&db, &format!("{long}, '{{}}', 'k'"), "OB422").await;
    for argument in ["event_id", "proposal_id", "workflow_id"] {
        let sql = format!("select outbox.enqueue('op', '{{}}', 'k', {argument} => {long})");
        let error = db.client.query(&sql, &[]).await.expect_err("too long");
        assert_eq!(error.as_db_error().unwrap().constraint(), Some("ids_fit"), "{argument}");
    }
    for argument in ["params", "headers"] {
        let large = "json_build_object('p', repeat('x', 65536))";
        is_refused(&db, &format!("'op', '{{}}', 'k', {argument} => {large}"), "OB422").await;
    }
    // At their longest, together, they fit their index.
    let longest = "select created
        from (select string_agg(md5(random()::text), '') as r from generate_series(1, 40)) t,
          outbox.enqueue(substr(r, 1, 200), '{}', substr(r, 1, 500),
            tenant => substr(r, 201, 200), principal => substr(r, 401, 200), authority => substr(r, 1, 500))";
    assert!(db.one::<bool>(longest, &[]).await);
}

#[tokio::test]
async fn b29_even_the_owner_cannot_insert_a_key_that_no_index_holds() {
    let db = Database::new().await;
    let sql = "insert into outbox.action (action_id, operation, retry_key, input_hash, created_at)
        select gen_random_uuid(), 'op', string_agg(md5(random()::text), ''), sha256(''), now() from generate_series(1, 320)";
    let error = db.client.execute(sql, &[]).await.expect_err("10 kB");
    assert_eq!(error.as_db_error().unwrap().constraint(), Some("identity_fits"));
}

#[tokio::test]
async fn r5_a_request_older_than_the_memory_is_ob410_and_leaves_nothing() {
    let db = Database::new().await;
    db.run("insert into outbox.operation (operation, forgets_before) values ('op', now() - interval '10 days')").await;
    is_refused(&db, "'op', '{}', 'k', requested_at => now() - interval '12 days'", "OB410").await;
    is_refused(&db, "'op', '{}', 'k', requested_at => '-infinity'", "OB410").await;
    // Within the day that the requester's clock is given, by another operation, or where nobody says when.
    for arguments in [
        "'op', '{}', 'k1', requested_at => now() - interval '8 days'",
        "'op', '{}', 'k2'",
        "'other', '{}', 'k3', requested_at => now() - interval '1 year'",
    ] {
        assert!(db.one::<bool>(&format!("select created from outbox.enqueue({arguments})"), &[]).await, "{arguments}");
    }
}

#[tokio::test]
async fn r5_a_pruned_action_is_remembered_by_its_tombstone() {
    let db = Database::new().await;
    let action = db.enqueue("op", "{}", "k").await;
    db.run(
        "insert into outbox.tombstone
           select action_id, tenant, principal, operation, retry_key, input_hash, 'succeeded', 'r-1', created_at, now()
           from outbox.action;
         delete from outbox.delivery; delete from outbox.action;
         insert into outbox.operation (operation, forgets_before) values ('op', 'infinity')",
    )
    .await;
    let sql = "select action_id, created, state from outbox.enqueue('op', '{}', 'k', requested_at => now())";
    let row = db.client.query_one(sql, &[]).await.unwrap();
    assert_eq!((row.get(0), row.get(1), row.get(2)), (action, false, "succeeded"));
    is_refused(&db, "'op', '{\"other\":1}', 'k'", "OB409").await;
    assert_eq!(db.count("select count(*) from outbox.delivery").await, 0);
}

#[tokio::test]
async fn r8_an_application_may_have_any_settings() {
    let db = Database::new().await;
    db.run(
        "set standard_conforming_strings = off; set bytea_output = escape; set escape_string_warning = off;
         set search_path = nowhere; set backslash_quote = off; set timezone = 'Asia/Kathmandu'; set datestyle = 'german'",
    )
    .await;
    let headers = r#"'{"x-a":"b"}'"#;
    let sql = format!("select created from outbox.enqueue('op', '{{}}', 'k', headers => {headers})");
    assert!(db.one::<bool>(&sql, &[]).await);
    let control = r#"select outbox.enqueue('op', '{}', 'l', headers => E'{"x-a":"a\\nX"}')"#;
    assert_eq!(db.refused(control, &[]).await.0, "OB422");
    db.run("reset all").await;
    assert!(!db.one::<bool>(&sql, &[]).await, "the hash depends on a setting");
}

#[tokio::test]
async fn r8_temporary_and_public_objects_never_reach_a_definer_function() {
    let db = Database::new().await;
    db.run(
        "create temp table action (like outbox.action); create temp table delivery (like outbox.delivery);
         create function pg_temp.clock_timestamp() returns timestamptz language sql as 'select timestamptz ''1999-01-01''';
         create function public.octet_length(json) returns int language sql as 'select 0';
         set search_path = pg_temp, public, pg_catalog",
    )
    .await;
    let action = db.enqueue("op", "{}", "k").await;
    let sql = "select count(*) from outbox.action where created_at > '2020-01-01' and action_id = $1";
    assert_eq!(db.one::<i64>(sql, &[&action]).await, 1);
    let definers = "select count(*) from pg_proc p where pronamespace = 'outbox'::regnamespace and prosecdef
        and not coalesce(proconfig @> array['search_path=pg_catalog, outbox, pg_temp'], false)";
    assert_eq!(db.count(definers).await, 0, "a SECURITY DEFINER function without a safe search_path");
}
