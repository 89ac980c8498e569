//! A database, a destination that misbehaves, and daemons between them.

use std::path::Path;
use std::time::Duration;

use outboxd::proving::daemon::Daemon;
use outboxd::proving::fake::Fake;
use tempfile::TempDir;
use uuid::Uuid;

use super::Database;

/// How long a test waits for what must happen.
pub const SOON: Duration = Duration::from_secs(20);

/// The whole, on loopback. `World::new().await`, then `enqueue`, `daemon`, `until`.
pub struct World {
    pub db: Database,
    pub fake: Fake,
    pub dir: TempDir,
    /// Lines for `[dispatcher]`.
    pub dispatcher: String,
    /// Lines for `[destination.fake]`.
    pub destination: String,
    /// Lines for `[operation."note.publish"]`, after the required ones.
    pub operation: String,
    /// The `[contract."test"]` table and what belongs to it.
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

/// A destination that promises nothing.
pub const NOTHING_PROMISED: &str = r#"
[contract."test"]
reconcile = ["review"]
key = { mode = "none" }
"#;

impl World {
    /// A keyed operation `note.publish` with fast retries and a short lease.
    pub async fn new() -> Self {
        Self {
            db: Database::new().await,
            fake: Fake::start().await.expect("a destination"),
            dir: tempfile::tempdir().expect("a directory"),
            dispatcher: "lease_margin = \"500ms\"\npoll_interval = \"200ms\"".into(),
            destination: String::new(),
            operation: "effect = \"keyed\"\ntimeout = \"1s\"\nbackoff = { initial = \"50ms\", max = \"1s\" }".into(),
            contract: KEYED.into(),
            daemons: std::cell::Cell::new(0),
        }
    }

    /// The configuration as it stands.
    pub fn config(&self) -> String {
        format!(
            "[database]\nurl = \"{}\"\n[dispatcher]\n{}\n[log]\nformat = \"json\"\nlevel = \"debug\"\nstats_interval = \"1s\"\n\
             [destination.fake]\nbase_url = \"{}\"\n{}\n\
             [operation.\"note.publish\"]\ndestination = \"fake\"\nrequest = {{ method = \"POST\", path = \"/notes\" }}\n\
             contract = \"test\"\nmeaning = \"Publish a note\"\nowner = \"tests\"\n{}\n{}",
            self.db.url,
            self.dispatcher,
            self.fake.base_url(),
            self.destination,
            self.operation,
            self.contract,
        )
    }

    /// The binary under test.
    pub fn binary() -> &'static Path {
        Path::new(env!("CARGO_BIN_EXE_outboxd"))
    }

    /// Starts a daemon and waits until it claims.
    pub async fn daemon(&self) -> Daemon {
        let number = self.daemons.get();
        self.daemons.set(number + 1);
        let daemon = Daemon::start(Self::binary(), self.dir.path(), &format!("daemon{number}"), &self.config())
            .expect("a daemon");
        daemon.logged("outboxd started", SOON).await.expect("started");
        daemon
    }

    /// Enqueues one note; returns its action id.
    pub async fn enqueue(&self, retry_key: &str) -> Uuid {
        self.db.enqueue("note.publish", &format!("{{\"note\":\"{retry_key}\"}}"), retry_key).await
    }

    /// Waits until an action has this label in `outbox.status`.
    pub async fn until(&self, action: Uuid, label: &str) {
        let wait = async {
            while self.db.label(action).await != label {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        if tokio::time::timeout(SOON, wait).await.is_err() {
            panic!("{action} is {}, not {label}", self.db.label(action).await);
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
            panic!("{sql} gives {}, not {n}", self.db.count(sql).await);
        }
    }
}
