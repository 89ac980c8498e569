//! The parts: a private PostgreSQL, four destinations, two daemons.

use std::path::Path;

use tempfile::TempDir;
use tokio_postgres::Client;

use super::Fault;
use crate::core::target::Secret;
use crate::ledger;
use crate::proving::cluster::{Cluster, ClusterOptions, StopMode};
use crate::proving::daemon::Daemon;
use crate::proving::fake::{Behaviour, Fake, RetryAfter};
use crate::proving::session;

/// How a destination behaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// It answers.
    Healthy,
    /// It takes requests and never answers.
    Hanging,
    /// Nobody listens.
    Refusing,
    /// It asks everybody to come back in a second.
    Throttling,
}

impl Kind {
    /// All, the good one first.
    pub const ALL: [Self; 4] = [Self::Healthy, Self::Hanging, Self::Refusing, Self::Throttling];
    /// All but the good one.
    pub const BAD: [Self; 3] = [Self::Hanging, Self::Refusing, Self::Throttling];

    /// Its name, in the configuration too.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Hanging => "hanging",
            Self::Refusing => "refusing",
            Self::Throttling => "throttling",
        }
    }

    /// The operation that leads to it.
    pub fn operation(self) -> String {
        format!("flow.{}", self.name())
    }

    const fn number(self) -> usize {
        match self {
            Self::Healthy => 0,
            Self::Hanging => 1,
            Self::Refusing => 2,
            Self::Throttling => 3,
        }
    }
}

/// All parts, running.
pub struct Scene {
    /// The database.
    pub cluster: Cluster,
    /// The daemons.
    pub daemons: Vec<Daemon>,
    url: String,
    fakes: Vec<Fake>,
    _dir: TempDir,
}

impl Scene {
    /// Starts everything.
    pub async fn start(binary: &Path) -> Result<Self, Fault> {
        let cluster = Cluster::start(ClusterOptions::default())?;
        let url = cluster.url(cluster.superuser(), "postgres");
        ledger::migrate(&Secret::new(url.clone())).await?;
        let mut fakes = Vec::new();
        for kind in Kind::ALL {
            let fake = Fake::start().await?;
            match kind {
                Kind::Healthy => {}
                Kind::Hanging => fake.behave(|_, _| Behaviour::ignore()),
                Kind::Refusing => fake.stop().await,
                Kind::Throttling => fake.behave(|_, _| Behaviour::throttle(&RetryAfter::Seconds(1))),
            }
            fakes.push(fake);
        }
        let dir = tempfile::tempdir()?;
        let config = config(&url, &fakes);
        let daemons = ["one", "two"].map(|name| Daemon::start(binary, dir.path(), name, &config));
        let daemons = daemons.into_iter().collect::<Result<Vec<_>, _>>()?;
        for daemon in &daemons {
            daemon.logged("outboxd started", super::PATIENCE).await?;
        }
        Ok(Self { cluster, daemons, url, fakes, _dir: dir })
    }

    /// A destination.
    pub fn fake(&self, kind: Kind) -> &Fake {
        &self.fakes[kind.number()]
    }

    /// A session with the database.
    pub async fn session(&self) -> Result<Client, Fault> {
        Ok(session::connect(&self.url).await?)
    }

    /// Commits so many actions, in one transaction.
    pub async fn enqueue(&self, kind: Kind, actions: i64) -> Result<(), Fault> {
        let sql = "select outbox.enqueue($1, json_build_object('n', n), gen_random_uuid()::text)
            from generate_series(1, $2::bigint) n";
        self.session().await?.execute(sql, &[&kind.operation(), &actions]).await?;
        Ok(())
    }

    /// How many actions of it are not closed.
    pub async fn open(&self, kind: Kind) -> Result<i64, Fault> {
        let sql = "select count(*) from outbox.delivery where operation = $1 and closed_at is null";
        Ok(self.session().await?.query_one(sql, &[&kind.operation()]).await?.get(0))
    }

    /// From now on every destination behaves well.
    pub async fn mend(&self) -> Result<(), Fault> {
        for fake in &self.fakes {
            fake.behave(|_, _| Behaviour::accept());
        }
        Ok(self.fake(Kind::Refusing).resume().await?)
    }

    /// Stops and starts the database, as in a crash.
    pub fn restart_database(&mut self) -> Result<(), Fault> {
        Ok(self.cluster.restart(StopMode::Immediate)?)
    }

    /// Ends the daemons' sessions with the database.
    pub async fn kill_sessions(&self) -> Result<(), Fault> {
        let sql = "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'outboxd'";
        self.session().await?.query(sql, &[]).await?;
        Ok(())
    }

    /// What the daemons have said.
    pub fn logs(&self) -> String {
        self.daemons.iter().map(Daemon::log).collect()
    }
}

fn config(url: &str, fakes: &[Fake]) -> String {
    let mut config = format!(
        r#"
[database]
url = "{url}"
[dispatcher]
max_in_flight = 128
lease_margin = "1s"
[log]
stats_interval = "5s"
[contract.flow]
reconcile = ["resend", "review"]
key = {{ mode = "dedupe", place = "header:Idempotency-Key", window = "24h", margin = "1h" }}
receipt = {{ id = "json:/id" }}
"#
    );
    for kind in Kind::ALL {
        let (name, url) = (kind.name(), fakes[kind.number()].base_url());
        config.push_str(&format!(
            r#"
[destination.{name}]
base_url = "{url}"
max_in_flight = 32
[operation."flow.{name}"]
destination = "{name}"
request = {{ method = "POST", path = "/effects" }}
contract = "flow"
effect = "keyed"
meaning = "Measure what neighbours cost"
owner = "bench"
timeout = "2s"
attempts_max = 1000
backoff = {{ max = "10s" }}
"#
        ));
    }
    config
}
