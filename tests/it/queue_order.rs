//! Serial queues (R27) under load: producers that serialise on their own rows, four dispatchers, and nothing out of
//! order.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outboxd::core::evidence::Evidence;
use outboxd::ledger::{Claimed, Ledger, Want};
use tokio_postgres::Client;
use uuid::Uuid;

use crate::support::Database;
use crate::support::ledger::{NOTE, accepted, claim, finding, settlement, want};
use crate::support::world::SOON;

const ACCOUNTS: usize = 12;
const PRODUCERS: usize = 6;
const EACH: usize = 40;

/// One transaction: two accounts, in the order that the application itself needs, an action of each.
async fn produce(session: &mut Client, number: usize, n: usize) -> bool {
    let (one, other) = ((number * 7 + n * 5) % ACCOUNTS, (number * 3 + n * 11 + 1) % ACCOUNTS);
    let transaction = session.transaction().await.unwrap();
    for account in [one.min(other), one.max(other)] {
        let account = i32::try_from(account).unwrap();
        let sql = "update account set version = version + 1 where id = $1 returning version";
        let version: i64 = transaction.query_one(sql, &[&account]).await.unwrap().get(0);
        let sql = "select outbox.enqueue($1, json_build_object('account', $2::int, 'version', $3::bigint), $4, ordering_key => $5)";
        let key = format!("{number}-{n}-{account}-{version}");
        transaction.query(sql, &[&NOTE, &account, &version, &key, &account.to_string()]).await.unwrap();
    }
    // Some change their minds.
    let commits = n % 7 != 3;
    if commits {
        transaction.commit().await.unwrap();
    } else {
        transaction.rollback().await.unwrap();
    }
    commits
}

/// What the destinations have seen.
#[derive(Default)]
struct Seen {
    /// Of each account, whose action is being sent.
    active: Mutex<HashMap<i64, Uuid>>,
    /// Of each account, the versions in the order of their first sends.
    order: Mutex<HashMap<i64, Vec<i64>>>,
    done: AtomicUsize,
}

impl Seen {
    fn begin(&self, claimed: &Claimed) -> (i64, i64) {
        let body: serde_json::Value = serde_json::from_slice(&claimed.intent.body).unwrap();
        let (account, version) = (body["account"].as_i64().unwrap(), body["version"].as_i64().unwrap());
        let other = self.active.lock().unwrap().insert(account, claimed.intent.id.0);
        assert!(other.is_none(), "two actions of account {account} at the same time");
        let mut order = self.order.lock().unwrap();
        let versions = order.entry(account).or_default();
        if versions.last() != Some(&version) {
            versions.push(version);
        }
        (account, version)
    }

    fn end(&self, account: i64) {
        self.active.lock().unwrap().remove(&account);
    }
}

async fn dispatch(ledger: Ledger, seen: Arc<Seen>, left: Arc<AtomicI64>, seed: usize) {
    let want = Want { free: 3, ..want(NOTE) };
    let mut turn = seed;
    while left.load(Ordering::Acquire) > 0 {
        let claims = ledger.claim(std::slice::from_ref(&want)).await.expect("a claim");
        let mut batch = Vec::new();
        for claimed in &claims.claimed {
            let (account, _) = seen.begin(claimed);
            turn += 1;
            tokio::time::sleep(Duration::from_micros(u64::try_from(turn * 37 % 1500).unwrap())).await;
            // Some are throttled at first: they hold their queue, and go on after a while.
            let throttled = turn.is_multiple_of(9) && claimed.row.attempts == 0;
            batch.push(if throttled { settlement(claimed, &finding(Evidence::Deferred)) } else { accepted(claimed) });
            seen.end(account);
        }
        if !batch.is_empty() {
            assert_eq!(ledger.settle(&batch).await.expect("a settle").len(), batch.len());
            let done = batch.iter().filter(|settled| settled.leaves_queue()).count();
            seen.done.fetch_add(done, Ordering::AcqRel);
            left.fetch_sub(i64::try_from(done).unwrap(), Ordering::AcqRel);
        }
        if claims.unplaced {
            ledger.promote().await.expect("turns");
        } else if batch.is_empty() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn r27_transactions_that_serialise_on_their_own_rows_take_effect_in_the_order_of_their_commits() {
    let db = Database::new().await;
    db.run(&format!(
        "create table account (id int primary key, version bigint not null default 0);
         insert into account select n, 0 from generate_series(0, {}) n",
        ACCOUNTS - 1
    ))
    .await;
    let seen = Arc::new(Seen::default());
    // Those that are rolled back are taken off when they are.
    let left = Arc::new(AtomicI64::new(i64::try_from(PRODUCERS * EACH * 2).unwrap()));
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..PRODUCERS {
        let (mut session, left) = (db.session().await, Arc::clone(&left));
        tasks.spawn(async move {
            for n in 0..EACH {
                if !produce(&mut session, number, n).await {
                    left.fetch_sub(2, Ordering::AcqRel);
                }
            }
        });
    }
    for number in 0..4 {
        let ledger = db.ledger(&format!("w{number}"));
        tasks.spawn(dispatch(ledger, Arc::clone(&seen), Arc::clone(&left), number * 13));
    }
    let all = async {
        while let Some(ended) = tasks.join_next().await {
            ended.expect("no deadlock, no overlap");
        }
    };
    tokio::time::timeout(3 * SOON, all).await.expect("no queue is stuck");
    let order = seen.order.lock().unwrap().clone();
    assert_eq!(order.len(), ACCOUNTS);
    for (account, versions) in &order {
        let expected: Vec<i64> = (1..=i64::try_from(versions.len()).unwrap()).collect();
        assert_eq!(*versions, expected, "account {account}");
    }
    assert_eq!(
        db.count("select sum(version)::bigint from account").await,
        i64::try_from(seen.done.load(Ordering::Acquire)).unwrap()
    );
    assert_eq!(db.count("select count(*) from outbox.delivery where state <> 'succeeded'").await, 0);
    assert_eq!(db.count("select deadlocks from pg_stat_database where datname = current_database()").await, 0);
    assert!(claim(&db.ledger("w"), &want(NOTE)).await.is_empty());
    assert_eq!(db.ledger("w").mend_queues(None).await.unwrap().queues, 0);
}
