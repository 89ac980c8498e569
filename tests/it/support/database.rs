//! One private cluster for the whole run, one database for each test.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use outboxd::core::target::Secret;
use outboxd::ledger;
use outboxd::proving::cluster::{Cluster, ClusterOptions};
use outboxd::proving::session;
use serde_json::Value;
use tokio_postgres::Client;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

/// Ends with the test process, whatever ends that.
static CLUSTER: OnceLock<Cluster> = OnceLock::new();
static TEMPLATE: tokio::sync::OnceCell<()> = tokio::sync::OnceCell::const_new();
static NUMBER: AtomicU32 = AtomicU32::new(0);

fn cluster() -> &'static Cluster {
    CLUSTER.get_or_init(|| {
        // Losing the throwaway cluster's last writes in a power cut is fine; crashes of processes lose nothing.
        let options = ClusterOptions::default().set("fsync", "off").set("max_connections", "300");
        Cluster::start(options).expect("a private PostgreSQL")
    })
}

/// A migrated database of its own, and a superuser's session with it.
pub struct Database {
    pub url: String,
    pub name: String,
    pub client: Client,
}

impl Database {
    /// With the outbox schema.
    pub async fn new() -> Self {
        TEMPLATE
            .get_or_init(|| async {
                let url = cluster().url("postgres", "postgres");
                let client = session::connect(&url).await.expect("a session");
                client.batch_execute("create database outbox_template").await.expect("a template");
                let url = cluster().url("postgres", "outbox_template");
                ledger::migrate(&Secret::new(url)).await.expect("a schema");
            })
            .await;
        Self::create("template outbox_template").await
    }

    /// Without it.
    pub async fn empty() -> Self {
        Self::create("").await
    }

    async fn create(how: &str) -> Self {
        let name = format!("t{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let admin = session::connect(&cluster().url("postgres", "postgres")).await.expect("a session");
        admin.batch_execute(&format!("create database {name} {how}")).await.expect("a database");
        let url = cluster().url("postgres", &name);
        let client = session::connect(&url).await.expect("a session");
        Self { url, name, client }
    }

    /// As another user of the same database.
    pub fn url_as(&self, user: &str) -> String {
        cluster().url(user, &self.name)
    }

    /// Another session.
    pub async fn session(&self) -> Client {
        session::connect(&self.url).await.expect("a session")
    }

    /// A session with another database of the same cluster.
    pub async fn elsewhere(&self) -> Client {
        session::connect(&cluster().url("postgres", "postgres")).await.expect("a session")
    }

    /// A ledger for the library's own verbs.
    pub fn ledger(&self, worker: &str) -> ledger::Ledger {
        ledger::connect(&Secret::new(&self.url), 4, worker).expect("a ledger")
    }

    /// Enqueues with operation, payload and retry key; returns the action id.
    pub async fn enqueue(&self, operation: &str, payload: &str, retry_key: &str) -> Uuid {
        let sql = "select action_id from outbox.enqueue($1, $2::text::json, $3)";
        self.one(sql, &[&operation, &payload, &retry_key]).await
    }

    /// One value of one row.
    pub async fn one<T>(&self, sql: &str, params: &[&(dyn ToSql + Sync)]) -> T
    where
        T: for<'a> tokio_postgres::types::FromSql<'a>,
    {
        self.client.query_one(sql, params).await.unwrap_or_else(|e| panic!("{sql}: {e:?}")).get(0)
    }

    /// How many rows a query gives as its one value.
    pub async fn count(&self, sql: &str) -> i64 {
        self.one(sql, &[]).await
    }

    /// The SQLSTATE and message of a statement that must be refused.
    pub async fn refused(&self, sql: &str, params: &[&(dyn ToSql + Sync)]) -> (String, String) {
        let error = self.client.query(sql, params).await.expect_err(sql);
        let db = error.as_db_error().unwrap_or_else(|| panic!("{sql}: {error:?}"));
        (db.code().code().to_owned(), db.message().to_owned())
    }

    /// The whole of a delivery's row.
    pub async fn delivery(&self, action: Uuid) -> Value {
        self.one("select to_jsonb(d) from outbox.delivery d where action_id = $1", &[&action]).await
    }

    /// The history of an action, oldest first.
    pub async fn attempts(&self, action: Uuid) -> Vec<Value> {
        let sql = "select to_jsonb(h) from outbox.attempt h where action_id = $1 order by finished_at";
        self.client.query(sql, &[&action]).await.expect("the history").iter().map(|row| row.get(0)).collect()
    }

    /// Runs what must not be refused.
    pub async fn run(&self, sql: &str) {
        self.client.batch_execute(sql).await.unwrap_or_else(|e| panic!("{sql}: {e:?}"));
    }

    /// Waits until that session waits for a lock that somebody else holds.
    pub async fn until_blocked(&self, pid: i32) {
        let wait = async {
            while !self.one::<bool>("select cardinality(pg_blocking_pids($1)) > 0", &[&pid]).await {
                tokio::time::sleep(std::time::Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(super::world::SOON, wait).await.expect("the session waits for a lock");
    }

    /// Where an action stands: its label in `outbox.status`.
    pub async fn label(&self, action: Uuid) -> String {
        self.one("select label from outbox.status where action_id = $1", &[&action]).await
    }
}

/// The process of a session.
pub async fn pid(session: &Client) -> i32 {
    session.query_one("select pg_backend_pid()", &[]).await.expect("a pid").get(0)
}

/// The SQLSTATE of an error.
pub fn sqlstate(error: &tokio_postgres::Error) -> String {
    error.code().unwrap_or_else(|| panic!("no SQLSTATE: {error:?}")).code().to_owned()
}
