//! A database, a destination that misbehaves, and daemons between them.

use std::path::Path;
use std::process::Output;
use std::time::Duration;

use outboxd::clock::Uptime;
use outboxd::proving::daemon::Daemon;
use outboxd::proving::fake::{Fake, Seen};
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::Command;
use uuid::Uuid;

use super::Database;

/// How long a test waits for what must happen.
pub const SOON: Duration = Duration::from_secs(20);

/// The whole, on loopback. `World::new().await`, then `enqueue`, `daemon`, `until`.
pub struct World {
    pub db: Database,
    pub fake: Fake,
    pub dir: TempDir,
    /// How the daemon reaches the database.
    pub url: String,
    /// Lines for `[database]`, after the URL.
    pub database: String,
    /// Lines for `[dispatcher]`.
    pub dispatcher: String,
    /// Lines for `[destination.fake]`.
    pub destination: String,
    /// Lines for `[operation."note.publish"]`, after the required ones.
    pub operation: String,
    /// The `[contract."test"]` table and what belongs to it; whole tables may follow it.
    pub contract: String,
    daemons: std::cell::Cell<u32>,
}

/// A destination that remembers keys for a day.
pub const KEYED: &str = r#"
[contract."test"]
reconcile = ["resend", "review"]
key = { mode = "dedupe", place = "header:Idempotency-Key", window = "24h", margin = "1h" }
receipt = { id = "json:/id" }
"#;

/// A destination that can be asked, by the reference that stands in the body.
pub const ASKED: &str = r#"
[contract."test"]
reconcile = ["lookup", "review"]
ref = { place = "json:/reference" }
[contract."test".lookup]
by = "ref"
request = { method = "GET", path = "/notes", query = { reference = "{ref}" } }
found = { status = "200", json = { "/items/0/id" = "*" } }
absent = { status = "200", json = { "/items" = "[]" } }
receipt = "json:/items/0/id"
first_after = "300ms"
repeat = ["100ms"]
absence = "after:200ms"
"#;

/// A destination that promises nothing.
pub const NOTHING_PROMISED: &str = r#"
[contract."test"]
reconcile = ["review"]
key = { mode = "none" }
"#;

/// Lines for an operation with fast retries, its timeout, and more.
pub fn keyed(timeout: &str, more: &str) -> String {
    format!("effect = \"keyed\"\ntimeout = \"{timeout}\"\nbackoff = {{ initial = \"50ms\", max = \"1s\" }}\n{more}")
}

/// Where an action stands.
#[derive(Debug)]
pub struct Standing {
    pub state: String,
    pub label: String,
    pub attempts: i32,
    pub fence: i64,
    pub reason: Option<String>,
    pub receipt: Option<String>,
    pub sentence: String,
    pub in_doubt: bool,
}

/// One line of an action's history.
#[derive(Debug)]
pub struct Attempt {
    pub number: i32,
    pub kind: String,
    pub fence: i64,
    pub worker: Option<String>,
    pub key: Option<String>,
    pub evidence: String,
    pub verdict: String,
    pub status: Option<i32>,
    pub detail: Option<String>,
}

impl World {
    /// A keyed operation `note.publish` with fast retries and a short lease.
    pub async fn new() -> Self {
        let db = Database::new().await;
        Self {
            url: db.url.clone(),
            db,
            fake: Fake::start().await.expect("a destination"),
            dir: tempfile::tempdir().expect("a directory"),
            database: String::new(),
            dispatcher: "lease_margin = \"500ms\"\npoll_interval = \"200ms\"".into(),
            destination: String::new(),
            operation: keyed("1s", ""),
            contract: KEYED.into(),
            daemons: std::cell::Cell::new(0),
        }
    }

    /// The configuration as it stands.
    pub fn config(&self) -> String {
        format!(
            "[database]\nurl = \"{}\"\n{}\n[dispatcher]\n{}\n[log]\nformat = \"json\"\nlevel = \"debug\"\nstats_interval = \"1s\"\n\
             [destination.fake]\nbase_url = \"{}\"\n{}\n\
             [operation.\"note.publish\"]\ndestination = \"fake\"\nrequest = {{ method = \"POST\", path = \"/notes\" }}\n\
             contract = \"test\"\nmeaning = \"Publish a note\"\nowner = \"tests\"\n{}\n{}",
            self.url,
            self.database,
            self.dispatcher,
            self.fake.base_url(),
            self.destination,
            self.operation,
            self.contract,
        )
    }

    /// Another operation under the same contract, with its own path and these lines.
    pub fn also(&mut self, operation: &str, path: &str, lines: &str) {
        self.contract.push_str(&format!(
            "\n[operation.{operation:?}]\ndestination = \"fake\"\nrequest = {{ method = \"POST\", path = {path:?} }}\n\
             contract = \"test\"\nmeaning = \"Another one\"\nowner = \"tests\"\n{lines}\n"
        ));
    }

    /// An operation `note.other` under the same contract, at a destination of its own.
    pub fn elsewhere(&mut self, other: &Fake) {
        self.contract.push_str(&format!(
            "\n[destination.other]\nbase_url = {:?}\n[operation.\"note.other\"]\ndestination = \"other\"\n\
             request = {{ method = \"POST\", path = \"/\" }}\ncontract = \"test\"\nmeaning = \"x\"\nowner = \"tests\"\n{}",
            other.base_url(),
            keyed("1s", "")
        ));
    }

    /// The binary under test.
    pub fn binary() -> &'static Path {
        Path::new(env!("CARGO_BIN_EXE_outboxd"))
    }

    /// Starts a daemon and waits until it claims.
    pub async fn daemon(&self) -> Daemon {
        let daemon = self.start();
        daemon.logged("outboxd started", SOON).await.expect("started");
        daemon
    }

    /// Starts a daemon without waiting for anything.
    pub fn start(&self) -> Daemon {
        self.start_with(&self.config())
    }

    /// Starts a daemon with another configuration, without waiting for anything.
    pub fn start_with(&self, config: &str) -> Daemon {
        let number = self.daemons.get();
        self.daemons.set(number + 1);
        Daemon::start(Self::binary(), self.dir.path(), &format!("daemon{number}"), config).expect("a daemon")
    }

    /// Runs another command with this configuration, to its end.
    pub async fn command(&self, name: &str, config: &str) -> Output {
        let file = self.dir.path().join("outboxd.toml");
        std::fs::write(&file, config).expect("a file");
        let output = Command::new(Self::binary()).args([name, "--config"]).arg(&file).kill_on_drop(true).output();
        tokio::time::timeout(SOON, output).await.expect("an end").expect("output")
    }

    /// Enqueues one note; returns its action id.
    pub async fn enqueue(&self, retry_key: &str) -> Uuid {
        self.db.enqueue("note.publish", &format!("{{\"note\":\"{retry_key}\"}}"), retry_key).await
    }

    /// Enqueues so many notes, in one transaction.
    pub async fn enqueue_many(&self, prefix: &str, n: i32) {
        self.db
            .client
            .execute(
                "select outbox.enqueue('note.publish', json_build_object('note', $1::text || i), $1::text || i)
                 from generate_series(1, $2::int) i",
                &[&prefix, &n],
            )
            .await
            .expect("enqueued");
    }

    /// Where an action stands.
    pub async fn standing(&self, action: Uuid) -> Standing {
        let sql =
            "select s.state, s.label, s.attempts, d.fence, s.reason, s.receipt, s.sentence, s.doubt_since is not null
            from outbox.status s join outbox.delivery d using (action_id) where action_id = $1";
        let row = self.db.client.query_one(sql, &[&action]).await.expect("an action");
        Standing {
            state: row.get(0),
            label: row.get(1),
            attempts: row.get(2),
            fence: row.get(3),
            reason: row.get(4),
            receipt: row.get(5),
            sentence: row.get(6),
            in_doubt: row.get(7),
        }
    }

    /// An action's history, in order.
    pub async fn history(&self, action: Uuid) -> Vec<Attempt> {
        let sql = "select number, kind, fence, worker, idempotency_key, evidence, verdict, http_status, detail
            from outbox.attempt where action_id = $1 order by fence, finished_at";
        let rows = self.db.client.query(sql, &[&action]).await.expect("a history");
        rows.iter()
            .map(|row| Attempt {
                number: row.get(0),
                kind: row.get(1),
                fence: row.get(2),
                worker: row.get(3),
                key: row.get(4),
                evidence: row.get(5),
                verdict: row.get(6),
                status: row.get(7),
                detail: row.get(8),
            })
            .collect()
    }

    /// What an action's history says was learnt, in order.
    pub async fn evidence(&self, action: Uuid) -> Vec<String> {
        self.history(action).await.into_iter().map(|attempt| attempt.evidence).collect()
    }

    /// The requests that one action has made.
    pub fn seen_of(&self, action: Uuid) -> Vec<Seen> {
        let id = action.to_string();
        self.fake.seen().into_iter().filter(|seen| seen.header("outbox-action") == Some(&id)).collect()
    }

    /// Waits until an action has this label in `outbox.status`.
    pub async fn until(&self, action: Uuid, label: &str) {
        let wait = async {
            while self.db.label(action).await != label {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        if tokio::time::timeout(SOON, wait).await.is_err() {
            panic!("{action} is not {label}: {:?} after {:?}", self.standing(action).await, self.history(action).await);
        }
    }

    /// Waits until a query's one value, a count, is `n`.
    pub async fn until_count(&self, sql: &str, n: i64) {
        let wait = async {
            while self.db.count(sql).await != n {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        if tokio::time::timeout(SOON, wait).await.is_err() {
            panic!(
                "{sql} gives {}, not {n}\n{}",
                self.db.count(sql).await,
                std::fs::read_to_string(self.dir.path().join("daemon0.log")).unwrap_or_default()
            );
        }
    }

    /// Waits until a condition on the database holds.
    pub async fn until_true(&self, condition: &str) {
        self.until_count(&format!("select ({condition})::int::bigint"), 1).await;
    }

    /// Transactions of this database in a second, while `time` passes.
    pub async fn transactions_per_second(&self, time: Duration) -> f64 {
        // From another database, so that looking is not counted; flushed, since the counts are a second late.
        let sql = "select (xact_commit + xact_rollback)::float8 from pg_stat_database where datname = $1";
        let postgres = self.db.elsewhere().await;
        let count = async || -> (f64, Uptime) {
            tokio::time::sleep(Duration::from_millis(1200)).await;
            // What the test itself has asked is told with its next transaction, or seconds later.
            self.db.run("select").await;
            (postgres.query_one(sql, &[&self.db.name]).await.expect("statistics").get(0), Uptime::now())
        };
        let (before, from) = count().await;
        tokio::time::sleep(time).await;
        let (after, to) = count().await;
        (after - before) / to.since(from).as_secs_f64()
    }
}

/// The lines of a log, each of which must be a JSON object.
pub fn lines(log: &str) -> Vec<Value> {
    log.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in the line {line:?}")))
        .collect()
}

/// The lines of a log with this message.
pub fn lines_of(log: &str, message: &str) -> Vec<Value> {
    lines(log).into_iter().filter(|line| line["message"] == message).collect()
}

/// Ends the daemons' sessions, and lets nobody connect until `open` is called.
pub async fn shut(world: &World) {
    let postgres = world.db.elsewhere().await;
    let sql = format!(
        "alter database {0} allow_connections false; select pg_terminate_backend(pid) from pg_stat_activity
           where application_name = 'outboxd' and datname = '{0}'",
        world.db.name
    );
    postgres.batch_execute(&sql).await.expect("shut");
}

pub async fn open(world: &World) {
    let postgres = world.db.elsewhere().await;
    postgres.batch_execute(&format!("alter database {} allow_connections true", world.db.name)).await.expect("open");
}
