//! A claim that is held up between its snapshot and its locks, so that a race has an outcome that a test chooses.

use tokio::task::JoinHandle;
use tokio_postgres::{Client, Row};

use super::Database;
use super::database::pid;
use super::ledger::{NOTE, PINS};

const CLAIM: &str = include_str!("../../../sql/claim.sql");
const GATE: &str = "where w.free > 0 and pg_advisory_lock_shared(42) is not null";

/// The statement of `sql/claim.sql`, waiting; its snapshot is taken.
pub struct GatedClaim {
    keeper: Client,
    claim: JoinHandle<Vec<Row>>,
}

impl GatedClaim {
    /// Starts it and waits until it waits.
    pub async fn start(db: &Database) -> Self {
        let keeper = db.session().await;
        keeper.batch_execute("select pg_advisory_lock(42)").await.expect("the gate");
        let claimer = db.session().await;
        let waiting = pid(&claimer).await;
        let sql = CLAIM.replacen("where w.free > 0", GATE, 1);
        assert!(sql.contains(GATE), "sql/claim.sql has no place for a gate");
        let claim = tokio::spawn(async move {
            let pins = vec![PINS.0.as_slice()];
            let (no, lease) = (vec![false], vec![60_000_000_i64]);
            claimer
                .query(
                    &sql,
                    &[
                        &vec![NOTE],
                        &no,
                        &vec![10],
                        &lease,
                        &vec![""],
                        &pins,
                        &no,
                        &"gated",
                        &b"gated".repeat(2)[..8].to_vec(),
                        &vec![None::<i32>],
                        &Vec::<&str>::new(),
                        &Vec::<bool>::new(),
                        &Vec::<&str>::new(),
                        &Vec::<i32>::new(),
                        &i64::MAX,
                        &i64::MAX,
                        &i64::MAX,
                        &vec![outboxd::core::time::Timestamp::EARLIEST],
                    ],
                )
                .await
                .expect("a claim")
        });
        db.until_blocked(waiting).await;
        Self { keeper, claim }
    }

    /// Lets it go on; the step of each row that it claimed.
    pub async fn open(self) -> Vec<String> {
        self.keeper.batch_execute("select pg_advisory_unlock(42)").await.expect("an open gate");
        let rows = self.claim.await.expect("a claim");
        rows.iter().filter_map(|row| row.get::<_, Option<String>>("step")).collect()
    }
}
