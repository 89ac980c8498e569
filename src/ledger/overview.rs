//! Many actions at a glance: lists, and counts by operation.

use std::time::Duration;

use tokio_postgres::Row as SqlRow;
use uuid::Uuid;

use super::values::micros;
use super::{Ledger, LedgerError};
use crate::core::action::{ActionId, State, Step};
use crate::core::time::Timestamp;

const LIST: &str = include_str!("../../sql/list.sql");
const LIST_OPEN: &str = include_str!("../../sql/list_open.sql");
const LIST_HELD: &str = include_str!("../../sql/list_held.sql");
const LIST_BY_KEY: &str = include_str!("../../sql/list_by_key.sql");
const LIST_NOT_DONE: &str = include_str!("../../sql/list_not_done.sql");
const OVERVIEW: &str = include_str!("../../sql/overview.sql");
const NOW: &str = include_str!("../../sql/overview_now.sql");

/// The most rows counted of each index.
const COUNTED_AT_MOST: i64 = 1_000_000;

/// Which actions are listed. Everything that is given must hold.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Filter {
    /// In one of these states; `None` = any.
    pub state: Option<State>,
    /// With one of these steps; `None` = any.
    pub steps: Option<&'static [Step]>,
    /// Only what is held for a person, in the order of how long its outcome has been unknown.
    pub held: bool,
    /// Of this operation.
    pub operation: Option<String>,
    /// Of this tenant; the empty one is a tenant.
    pub tenant: Option<String>,
    /// Committed at least so long ago; of what is held, unknown for at least so long.
    pub older_than: Option<Duration>,
    /// What comes behind this action in the order of the list.
    pub after: Option<ActionId>,
}

impl Filter {
    /// The statement whose index has what is asked for.
    fn statement(&self) -> &'static str {
        match self.state {
            _ if self.held => LIST_HELD,
            Some(State::Pending | State::Dispatching | State::RetryableFailure | State::OutcomeUnknown) => LIST_OPEN,
            Some(State::TerminalFailure) => LIST_NOT_DONE,
            Some(State::Succeeded) | None => LIST,
        }
    }
}

/// One line of a list.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the columns of outbox.status")]
pub struct Listed {
    pub id: ActionId,
    pub operation: String,
    pub tenant: String,
    pub retry_key: String,
    pub state: String,
    pub label: String,
    pub reason: Option<String>,
    pub receipt: Option<String>,
    /// `None` where the history was pruned with the action.
    pub attempts: Option<i32>,
    pub worker: Option<String>,
    pub created_at: Timestamp,
    pub doubt_since: Option<Timestamp>,
    pub due_at: Option<Timestamp>,
    pub closed_at: Option<Timestamp>,
    /// The database's time; ages count to it.
    pub now: Timestamp,
}

/// A part of a list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Page {
    /// At most as many as were asked for.
    pub actions: Vec<Listed>,
    /// Whether there are more behind the last one.
    pub more: bool,
}

/// The open rows of one operation. Ages are `None` where there is no such row.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Its name.
    pub operation: String,
    /// Pending and due.
    pub due: i64,
    /// Pending, due later.
    pub scheduled: i64,
    /// Retryable failures.
    pub retrying: i64,
    /// Held by a worker, of any daemon.
    pub in_flight: i64,
    /// Unknown, to be sent again under the same key.
    pub resend: i64,
    /// Unknown, to be asked about, cancelled by its key or concluded.
    pub lookup: i64,
    /// Unknown, held for a person.
    pub review: i64,
    /// Waiting for its turn in a serial queue.
    pub parked: i64,
    /// How long the longest due row has been due.
    pub oldest_due: Option<Duration>,
    /// How long the oldest doubt has lasted.
    pub oldest_unknown: Option<Duration>,
}

impl Counts {
    /// All whose outcome is unknown and that nobody holds.
    pub fn unknown(&self) -> i64 {
        self.resend + self.lookup + self.review
    }
}

/// How the ledger stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Overview {
    /// The database's time.
    pub now: Timestamp,
    /// Workers whose lease has not ended; a daemon with nothing to do has none.
    pub workers: i64,
    /// Successes of the last minute, of the operations that a daemon has written down.
    pub delivered: i64,
    /// Operations with open rows, by name.
    pub operations: Vec<Counts>,
    /// False where there were more rows than are counted.
    pub all_counted: bool,
}

impl Ledger {
    /// The first `limit` actions that the filter lets through: the youngest first, or what is held the longest first.
    pub async fn list(&self, filter: &Filter, limit: u32) -> Result<Page, LedgerError> {
        let steps: Option<Vec<&str>> = filter.steps.map(|steps| steps.iter().map(|step| step.as_str()).collect());
        let after: Option<Uuid> = filter.after.map(|id| id.0);
        let session = self.session().await?;
        let rows = session
            .query(
                filter.statement(),
                &[
                    &filter.state.map(State::as_str),
                    &steps,
                    &filter.operation,
                    &filter.tenant,
                    &filter.older_than.map(micros),
                    &after,
                    &(i64::from(limit) + 1),
                ],
            )
            .await?;
        page(&rows, limit)
    }

    /// The first `limit` actions with this retry key, the youngest first: of that operation and tenant, or of any. Those
    /// that were pruned are among them.
    pub async fn list_by_key(&self, retry_key: &str, filter: &Filter, limit: u32) -> Result<Page, LedgerError> {
        let Filter { operation, tenant, after, state: _, steps: _, held: _, older_than: _ } = filter;
        let after: Option<Uuid> = after.map(|id| id.0);
        let session = self.session().await?;
        let rows =
            session.query(LIST_BY_KEY, &[&retry_key, operation, tenant, &after, &(i64::from(limit) + 1)]).await?;
        page(&rows, limit)
    }

    /// Counts open rows by operation; a very large backlog is counted up to a bound.
    pub async fn overview(&self) -> Result<Overview, LedgerError> {
        let session = self.session().await?;
        let now = session.query_one(NOW, &[&COUNTED_AT_MOST]).await?;
        let rows = session.query(OVERVIEW, &[&COUNTED_AT_MOST]).await?;
        let mut overview = Overview {
            now: now.try_get("now")?,
            workers: now.try_get("workers")?,
            delivered: now.try_get("delivered")?,
            operations: vec![],
            all_counted: true,
        };
        for row in &rows {
            overview.all_counted &= row.try_get::<_, bool>("all_counted")?;
            overview.operations.push(counts(row)?);
        }
        Ok(overview)
    }
}

/// One row more than were asked for says that there are more.
fn page(rows: &[SqlRow], limit: u32) -> Result<Page, LedgerError> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let actions = rows.iter().take(limit).map(listed).collect::<Result<_, _>>()?;
    Ok(Page { actions, more: rows.len() > limit })
}

fn listed(row: &SqlRow) -> Result<Listed, LedgerError> {
    Ok(Listed {
        id: ActionId(row.try_get("action_id")?),
        operation: row.try_get("operation")?,
        tenant: row.try_get("tenant")?,
        retry_key: row.try_get("retry_key")?,
        state: row.try_get("state")?,
        label: row.try_get("label")?,
        reason: row.try_get("reason")?,
        receipt: row.try_get("receipt")?,
        attempts: row.try_get("attempts")?,
        worker: row.try_get("worker")?,
        created_at: row.try_get("created_at")?,
        doubt_since: row.try_get("doubt_since")?,
        due_at: row.try_get("due_at")?,
        closed_at: row.try_get("closed_at")?,
        now: row.try_get("now")?,
    })
}

fn counts(row: &SqlRow) -> Result<Counts, LedgerError> {
    let age = |name| -> Result<Option<Duration>, LedgerError> {
        let micros: Option<i64> = row.try_get(name)?;
        Ok(micros.map(|micros| Duration::from_micros(u64::try_from(micros).unwrap_or(0))))
    };
    Ok(Counts {
        operation: row.try_get("operation")?,
        due: row.try_get("due")?,
        scheduled: row.try_get("scheduled")?,
        retrying: row.try_get("retrying")?,
        in_flight: row.try_get("in_flight")?,
        resend: row.try_get("resend")?,
        lookup: row.try_get("lookup")?,
        review: row.try_get("review")?,
        parked: row.try_get("parked")?,
        oldest_due: age("oldest_due")?,
        oldest_unknown: age("oldest_unknown")?,
    })
}
