//! B47: a connection pooler in transaction mode, a real one, between the daemons and the database.

use std::time::Duration;

use outboxd::clock::stopwatch;
use outboxd::core::target::Secret;
use outboxd::ledger::{self, LedgerError};
use outboxd::proving::fake::Behaviour;
use outboxd::proving::session;

use crate::support::ledger::{NOTE, want};
use crate::support::world::{NOTHING_PROMISED, SOON, keyed, lines_of};
use crate::support::{Pooler, World};
use crate::timeline::ELSEWHERE;

/// Writes down under which settings deliveries are changed.
const SPY: &str = "
    create table public.seen_under (setting text, value text, unique (setting, value));
    grant insert, select on public.seen_under to public;
    create function public.spy() returns trigger language plpgsql as $$
    begin
      insert into public.seen_under select s, pg_catalog.current_setting(s) from pg_catalog.unnest(array[
        'synchronous_commit', 'enable_seqscan', 'enable_hashjoin', 'enable_mergejoin', 'plan_cache_mode', 'search_path',
        'lock_timeout', 'statement_timeout', 'transaction_isolation']) s
      on conflict do nothing;
      return null;
    end $$;
    create trigger spy after update on outbox.delivery for each row execute function public.spy()";

/// What a session of this database has, unless it says otherwise.
const OTHERWISE: &str = "
    do $$ begin
      execute format('alter database %I set synchronous_commit = off', current_database());
      execute format('alter database %I set lock_timeout = ''7s''', current_database());
    end $$";

#[tokio::test(flavor = "multi_thread")]
async fn b47_two_daemons_deliver_two_thousand_through_a_transaction_pooler() {
    let mut world = World::new().await;
    world.db.run(OTHERWISE).await;
    world.db.run(SPY).await;
    let Some(pooler) = Pooler::start(&world.db.url, "transaction", 2).await else { return };
    world.database = format!("direct_url = \"{}\"", world.db.url);
    world.url = pooler.url.clone();
    world.dispatcher = "lease_margin = \"10s\"\npoll_interval = \"1s\"\nmax_in_flight = 64".into();
    world.operation = keyed("10s", "");
    world.fake.behave(|_, n| if n % 50 == 7 { Behaviour::refuse(503) } else { Behaviour::accept() });
    world.enqueue_many("n", 2000).await;
    let daemons = [world.daemon().await, world.daemon().await];
    world.until_count("select count(*) from outbox.status where state = 'succeeded'", 2000).await;

    assert_eq!((world.fake.effects().len(), world.fake.duplicates()), (2000, 0));
    for daemon in &daemons {
        let log = daemon.log();
        assert!(lines_of(&log, "ledger lost").is_empty() && !log.contains("prepared statement"), "{log}");
    }
    let under = "select string_agg(setting || '=' || value, ' ' order by setting, value) from public.seen_under";
    assert_eq!(
        world.db.one::<String>(under, &[]).await,
        "enable_hashjoin=off enable_mergejoin=off enable_seqscan=off lock_timeout=250ms plan_cache_mode=force_generic_plan \
         search_path=pg_catalog, pg_temp statement_timeout=30s synchronous_commit=on transaction_isolation=read committed",
        "the settings of every claim and settle"
    );
    // Nothing of it stays in sessions that others use.
    let other = session::connect(&pooler.url).await.expect("a session");
    for _ in 0..4 {
        let sql = "select current_setting('enable_seqscan') || ' ' || current_setting('lock_timeout')";
        let found: String = other.query_typed_one(sql, &[]).await.expect("settings").get(0);
        assert_eq!(found, "on 7s");
    }
    assert!(!pooler.log().contains("prepared statement"), "{}", pooler.log());
}

/// A world whose ledger is reached through a pooler in transaction mode; `[database]` gets these lines.
async fn pooled(lines: impl FnOnce(&Pooler, &World) -> String) -> Option<(World, Pooler)> {
    let mut world = World::new().await;
    let pooler = Pooler::start(&world.db.url, "transaction", 2).await?;
    world.database = lines(&pooler, &world);
    world.url = pooler.url.clone();
    Some((world, pooler))
}

/// `run` and `check` refuse this world's configuration with a line that holds `advice`, and nothing is claimed.
async fn refuses(world: &World, advice: &str) {
    let action = world.enqueue("n").await;
    let mut daemon = world.start();
    let status = daemon.ended(SOON).await.expect("it ends");
    assert_eq!(status.code(), Some(78), "{}", daemon.log());
    let refused = lines_of(&daemon.log(), "sessions refused");
    assert!(
        refused.len() == 1 && refused[0]["error"].as_str().is_some_and(|text| text.contains(advice)),
        "{refused:?}"
    );
    let checked = world.command("check", &world.config()).await;
    let said = String::from_utf8_lossy(&checked.stderr);
    assert!(checked.status.code() == Some(78) && said.contains(advice), "{said}");
    let standing = world.standing(action).await;
    assert_eq!((standing.state.as_str(), standing.fence, world.fake.seen().len()), ("pending", 0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn b47_without_a_direct_session_the_start_is_refused_with_the_setting_to_change() {
    let Some((world, _pooler)) = pooled(|_, _| String::new()).await else { return };
    refuses(&world, "add `direct_url` with the address of the server itself, or write `notify = false`").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b47_a_direct_url_that_leads_through_the_pooler_too_is_refused() {
    let Some((world, _pooler)) = pooled(|pooler, _| format!("direct_url = \"{}\"", pooler.url)).await else { return };
    refuses(&world, "what is notified at `url` of [database] is not heard at its `direct_url`").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b47_a_direct_url_of_another_database_is_refused() {
    let mut world = World::new().await;
    let other = World::new().await;
    world.database = format!("direct_url = \"{}\"", other.db.url);
    refuses(&world, "that must lead to the same database").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b47_without_notify_a_pooler_alone_is_enough() {
    let Some((mut world, _pooler)) = pooled(|_, _| String::new()).await else { return };
    world.dispatcher.push_str("\nnotify = false");
    let checked = world.command("check", &world.config()).await;
    let said = String::from_utf8_lossy(&checked.stdout);
    assert!(checked.status.success() && said.contains("leads through a connection pooler"), "{said}");
    let mut daemon = world.daemon().await;
    for n in 0..5 {
        let action = world.enqueue(&format!("n-{n}")).await;
        world.until(action, "succeeded").await;
    }
    assert_eq!(daemon.terminate(SOON).await.expect("it drains").code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn r11_behind_a_pooler_every_transaction_is_with_the_cluster_that_was_recognised() {
    let Some((mut world, _pooler)) = pooled(|_, _| String::new()).await else { return };
    world.dispatcher.push_str("\nnotify = false");
    let mut daemon = world.daemon().await;
    let before = world.enqueue("before").await;
    world.until(before, "succeeded").await;
    // A pooler goes over to another server without a word; no session of ours ends.
    world.db.run(ELSEWHERE).await;
    let ended = daemon.ended(SOON).await;
    assert_eq!(ended.ok().and_then(|status| status.code()), Some(76), "{}", daemon.log());
    let refused = lines_of(&daemon.log(), "ledger refused");
    assert!(
        refused.len() == 1 && refused[0]["error"].as_str().is_some_and(|e| e.contains("another cluster")),
        "{refused:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn r11_behind_a_pooler_nothing_is_claimed_on_another_cluster() {
    let Some((world, _pooler)) = pooled(|_, _| String::new()).await else { return };
    let ledger = ledger::connect(&Secret::new(&world.url), 2, "w").expect("a ledger");
    ledger.recognise().await.expect("remembered");
    world.db.run(ELSEWHERE).await;
    let action = world.enqueue("after").await;
    let refused = ledger.claim(&[want(NOTE)]).await.expect_err("another cluster");
    assert!(matches!(refused, LedgerError::OtherCluster(_)), "{refused}");
    assert_eq!(world.standing(action).await.fence, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn b47_behind_a_pooler_an_enqueue_wakes_a_sleeping_daemon() {
    let Some((mut world, _pooler)) = pooled(|_, world| format!("direct_url = \"{}\"", world.db.url)).await else {
        return;
    };
    world.dispatcher = "lease_margin = \"500ms\"\npoll_interval = \"30s\"".into();
    let _daemon = world.daemon().await;
    for n in 0..3 {
        world.until_true(DOOR_IS_KEPT).await;
        let asked = stopwatch();
        let action = world.enqueue(&format!("n-{n}")).await;
        world.until(action, "succeeded").await;
        assert!(asked.elapsed() < Duration::from_secs(10), "{:?} with a poll interval of 30 s", asked.elapsed());
    }
}

const DOOR_IS_KEPT: &str = "exists (select from pg_locks l join pg_database d on d.oid = l.database
    where d.datname = current_database() and l.locktype = 'advisory' and l.granted)";

#[tokio::test(flavor = "multi_thread")]
async fn b47_a_pooler_in_session_mode_may_be_the_direct_session() {
    let mut world = World::new().await;
    let Some(pooler) = Pooler::start(&world.db.url, "session", 20).await else { return };
    (world.url, world.database) = (pooler.url.clone(), format!("direct_url = \"{}\"", pooler.url));
    let _daemon = world.daemon().await;
    let action = world.enqueue("n").await;
    world.until(action, "succeeded").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b47_a_migration_through_a_pooler_is_refused_and_goes_by_the_direct_url() {
    let Some((mut world, _pooler)) = pooled(|_, _| String::new()).await else { return };
    let refused = world.command("migrate", &world.config()).await;
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(78) && said.contains("give `direct_url` of [database]"), "{said}");
    world.database = format!("direct_url = \"{}\"", world.db.url);
    let done = world.command("migrate", &world.config()).await;
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// Every statement has its parameters' types right without asking the server: those that the other tests don't come by.
#[tokio::test(flavor = "multi_thread")]
async fn b47_people_and_late_answers_get_through_too() {
    let Some((mut world, _pooler)) = pooled(|_, world| format!("direct_url = \"{}\"", world.db.url)).await else {
        return;
    };
    world.contract = NOTHING_PROMISED.into();
    world.operation = "effect = \"unreconcilable\"\ntimeout = \"300ms\"".into();
    world.fake.behave(|_, _| Behaviour::accept().withholding());
    let _daemon = world.daemon().await;
    let held = [world.enqueue("a").await, world.enqueue("b").await];
    for action in held {
        world.until(action, "awaiting_review").await;
    }
    let config = world.dir.path().join("outboxd.toml");
    std::fs::write(&config, world.config()).expect("a file");
    let (a, b) = (held[0].to_string(), held[1].to_string());
    for words in [
        vec!["status"],
        vec!["list"],
        vec!["review"],
        vec!["show", &a],
        vec!["show", &a, "--body"],
        vec!["resolve", &a, "--happened", "--receipt", "r-1", "--by", "me", "--reason", "seen"],
        vec!["resolve", &b, "--did-not-happen", "--by", "me", "--reason", "not seen"],
        vec!["retry", &b, "--by", "me", "--reason", "again"],
        vec!["cancel", &b, "--by", "me", "--reason", "no"],
        vec!["prune", "--dry-run"],
        vec!["prune"],
    ] {
        let ran =
            tokio::process::Command::new(World::binary()).args(&words).arg("--config").arg(&config).output().await;
        let ran = ran.expect("output");
        assert!(ran.status.success(), "{words:?}: {}", String::from_utf8_lossy(&ran.stderr));
    }
}
