//! The schema: eight at once, a newer one, one that another tool installed (B55, B46).

use std::process::Command;

use outboxd::core::target::Secret;
use outboxd::ledger::{self, LedgerError, Migrated, SCHEMA_VERSION, schema_sql};

use crate::support::{Database, World};

fn url(db: &Database) -> Secret {
    Secret::new(db.url.clone())
}

async fn history(db: &Database) -> i64 {
    // Each is there once: its number is the key.
    db.count("select max(version)::bigint from outbox.schema_history").await
}

const NEWER: &str = "create or replace function outbox.schema_version() returns int language sql as 'select 1000'";

#[tokio::test]
async fn b55_eight_at_once_on_an_empty_database_all_succeed_and_one_of_them_does_it() {
    for _ in 0..5 {
        let db = Database::empty().await;
        let racers: Vec<_> = (0..8)
            .map(|_| {
                tokio::spawn({
                    let url = url(&db);
                    async move { ledger::migrate(&url).await }
                })
            })
            .collect();
        let mut from_nothing = 0;
        for racer in racers {
            let done = racer.await.unwrap().expect("migrated");
            assert_eq!(done.to, SCHEMA_VERSION);
            from_nothing += u32::from(done.from == 0);
        }
        assert_eq!(from_nothing, 1);
        assert_eq!(history(&db).await, i64::from(SCHEMA_VERSION));
    }
}

#[tokio::test]
async fn b55_a_migration_that_ended_halfway_is_finished_by_the_next() {
    let db = Database::new().await;
    db.run(
        "drop table outbox.ledger; drop function outbox.schema_version, outbox.recognise, outbox.accept_cluster,
          outbox.same_cluster, outbox.cluster_in_words, outbox.cluster;
        delete from outbox.schema_history where version = (select max(version) from outbox.schema_history)",
    )
    .await;
    assert_eq!(ledger::migrate(&url(&db)).await.unwrap().to, SCHEMA_VERSION);
    assert_eq!(history(&db).await, i64::from(SCHEMA_VERSION));
    db.client.query("select * from outbox.status, outbox.ledger", &[]).await.unwrap();
}

#[tokio::test]
async fn b46_a_newer_schema_is_left_alone_and_refused() {
    let db = Database::new().await;
    db.run(NEWER).await;
    let newer = |error| matches!(error, Err(LedgerError::Newer { has: 1000, knows: SCHEMA_VERSION }));
    assert!(newer(ledger::migrate(&url(&db)).await.map(|_| ())));
    assert!(newer(db.ledger("w").check_schema().await));
    assert_eq!(history(&db).await, i64::from(SCHEMA_VERSION));
}

#[tokio::test]
async fn b46_an_older_or_missing_schema_is_named() {
    let db = Database::new().await;
    db.run(&NEWER.replace("1000", "1")).await;
    assert!(matches!(db.ledger("w").check_schema().await, Err(LedgerError::Older { has: 1, needs: SCHEMA_VERSION })));
    let db = Database::empty().await;
    assert!(matches!(db.ledger("w").check_schema().await, Err(LedgerError::NoSchema)));
}

/// A cached statement of a long-lived session survives a column that somebody adds.
#[tokio::test]
async fn b46_an_older_daemon_goes_on_beside_a_migration_that_adds_a_column() {
    use crate::support::ledger::{NOTE, claim_one, settle, want};
    let db = Database::new().await;
    let ledger = db.ledger("w");
    for n in 0..3 {
        db.enqueue(NOTE, "{}", &n.to_string()).await;
        let claimed = claim_one(&ledger, &want(NOTE)).await;
        db.run(&format!(
            "alter table outbox.delivery add extra{n} text; alter table outbox.action add extra{n} text;
            alter table outbox.attempt add extra{n} text"
        ))
        .await;
        assert!(settle(&ledger, &claimed, outboxd::core::evidence::Evidence::Accepted).await);
    }
}

#[tokio::test]
async fn b55_a_schema_that_another_tool_installed_is_taken_as_it_is() {
    let db = Database::empty().await;
    db.run(&format!("begin; {} commit", schema_sql())).await;
    let done = ledger::migrate(&url(&db)).await.unwrap();
    assert_eq!(done, Migrated { from: SCHEMA_VERSION, to: SCHEMA_VERSION });
    assert_eq!(history(&db).await, i64::from(SCHEMA_VERSION));
    db.ledger("w").check_schema().await.unwrap();
    db.enqueue("op", "{}", "k").await;
}

#[tokio::test]
async fn b55_twice_is_nothing_to_do() {
    let db = Database::new().await;
    assert_eq!(ledger::migrate(&url(&db)).await.unwrap(), Migrated { from: SCHEMA_VERSION, to: SCHEMA_VERSION });
}

#[tokio::test]
async fn b55_who_may_create_a_schema_may_migrate_and_then_use_it() {
    let db = Database::empty().await;
    let owner = format!("owner_of_{}", db.name);
    db.run(&format!("create role {owner} login; grant create on database {} to {owner}", db.name)).await;
    // A search_path that leads elsewhere changes nothing.
    db.run(&format!("create schema elsewhere authorization {owner}; alter role {owner} set search_path = elsewhere"))
        .await;
    let as_owner = Secret::new(db.url_as(&owner));
    assert_eq!(ledger::migrate(&as_owner).await.unwrap(), Migrated { from: 0, to: SCHEMA_VERSION });
    assert_eq!(db.count("select count(*) from pg_class where relnamespace = 'elsewhere'::regnamespace").await, 0);
    let session = outboxd::proving::session::connect(&db.url_as(&owner)).await.unwrap();
    session
        .batch_execute("select outbox.enqueue('note.publish', '{}', 'k'); select * from outbox.status")
        .await
        .unwrap();
    let ledger = ledger::connect(&as_owner, 1, "w").unwrap();
    let want = crate::support::ledger::want("note.publish");
    assert_eq!(crate::support::ledger::claim(&ledger, &want).await.len(), 1);
}

#[tokio::test]
async fn b55_who_may_not_create_a_schema_is_told_so() {
    let db = Database::empty().await;
    let nobody = format!("nobody_of_{}", db.name);
    db.run(&format!("create role {nobody} login")).await;
    let error = ledger::migrate(&Secret::new(db.url_as(&nobody))).await.expect_err("no right");
    assert!(error.to_string().contains("permission denied for database"), "{error}");
}

#[tokio::test]
async fn b46_the_command_says_what_it_did_and_exits_69_where_the_schema_is_newer() {
    let world = World::new().await;
    let file = world.dir.path().join("outboxd.toml");
    std::fs::write(&file, world.config()).unwrap();
    let migrate = || {
        let mut command = Command::new(World::binary());
        command.arg("migrate").arg("--config").arg(&file).output().expect("outboxd migrate")
    };
    let done = migrate();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert!(String::from_utf8_lossy(&done.stdout).contains("nothing to do"));
    world.db.run(NEWER).await;
    let refused = migrate();
    assert_eq!(refused.status.code(), Some(69));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("1000"));
}
