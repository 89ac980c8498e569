//! Taking due rows.

use std::time::Duration;

use bytes::Bytes;
use tokio_postgres::Row as SqlRow;
use tokio_postgres::types::Json;
use uuid::Uuid;

use super::give_back::ClaimMark;
use super::param::Param;
use super::values::micros;
use super::{Ledger, LedgerError};
use crate::clock::Uptime;
use crate::core::action::{ActionId, AttemptId, Fence, Intent, Step, Stop};
use crate::core::row::{Doubt, Row, SentUnder};
use crate::core::terms::Pins;
use crate::core::time::Timestamp;
use crate::failpoint::{self, Point};

const CLAIM: &str = include_str!("../../sql/claim.sql");

/// What one operation could take now of one kind of its rows.
#[derive(Clone, Debug)]
pub struct Want {
    /// Its name.
    pub operation: String,
    /// Rows that ask its destination (lookups and cancels); otherwise those that send or conclude.
    pub asks: bool,
    /// Free slots.
    pub free: u32,
    /// How long the lease is; see [`Lease`].
    pub timeout: Duration,
    /// What the lease outlives the timeout by.
    pub margin: Duration,
    /// `next_after` of the last claim; empty at first.
    pub after: String,
    /// What its sends are bound to.
    pub pins: Pins,
    /// Whether it marks its sends.
    pub marks: bool,
    /// The most of one tenant at once, and what tenants have of it now; `None` = no such bound.
    pub tenants: Option<(u32, Vec<(String, u32)>)>,
    /// Rows that have been due since before this are not looked at.
    pub since: Option<Timestamp>,
}

/// How much may be in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Room {
    /// A body of so many bytes at most goes in any case.
    pub small: u64,
    /// Bytes of larger ones that may go now; one goes where there is any.
    pub large: u64,
    /// The most bytes that a body may have to be sent.
    pub body_max: u64,
}

impl Room {
    /// No limit.
    pub const ANY: Self = Self { small: u64::MAX, large: u64::MAX, body_max: u64::MAX };
}

/// Until when a claim may act, by this machine's uptime. Counted from before the claim was asked for, so it ends
/// before the database's lease does, by `margin` and the claim's own way.
#[derive(Clone, Copy, Debug)]
pub struct Lease {
    /// Read before the claim left; paired with the claim's database time.
    pub asked_at: Uptime,
    /// The end of the attempt: nothing leaves and nothing is waited for after it.
    pub deadline: Uptime,
    /// The operation's timeout, which the deadline was made from.
    pub timeout: Duration,
}

/// A row that this worker holds.
#[derive(Clone, Debug)]
pub struct Claimed {
    /// What was committed.
    pub intent: Intent,
    /// Which kind of want it was claimed for. It may have turned out that there is nothing to ask.
    pub asked: bool,
    /// With `row.attempt` it says who may settle.
    pub fence: Fence,
    /// Where it stood.
    pub row: Row,
    /// Until when.
    pub lease: Lease,
    /// The serial queue whose turn it has; `None` = it is in none.
    pub lane: Option<i64>,
    /// The length of its body where that is too large to be sent; then the body has not been read.
    pub oversize: Option<u32>,
}

impl Claimed {
    /// Database time now, or a little later: the claim's own time and what has passed since it was asked for.
    pub fn database_now(&self) -> Timestamp {
        self.row.claimed_at.plus(Uptime::now().since(self.lease.asked_at))
    }

    /// The uptime of a moment of database time, or a little earlier.
    pub fn uptime_of(&self, moment: Timestamp) -> Uptime {
        self.lease.asked_at.plus(moment.since(self.row.claimed_at))
    }
}

/// What a claim brought.
#[derive(Debug, Default)]
pub struct Claims {
    /// The rows, in no particular order.
    pub claimed: Vec<Claimed>,
    /// Of each want, where its next walk over the tenants starts.
    pub next_after: Vec<NextAfter>,
    /// In some serial queue a turn is to be given, or a row that has arrived to be parked; see [`Ledger::promote`].
    pub unplaced: bool,
    /// Some due rows wait until there is room for their bodies.
    pub heavy: bool,
}

/// Where the next walk of one want starts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NextAfter {
    /// As wanted.
    pub operation: String,
    /// As wanted.
    pub asks: bool,
    /// For [`Want::after`].
    pub after: String,
    /// How many due rows were put off: they wait for another action. They took slots of this claim, and none since.
    pub put_off: u32,
    /// Since when the oldest due row has been due that this claim has met.
    pub oldest: Option<Timestamp>,
}

impl Ledger {
    /// Claims due rows, durably. See `sql/claim.sql`.
    pub async fn claim(&self, wants: &[Want]) -> Result<Claims, LedgerError> {
        self.claim_as(ClaimMark::new(), wants, Room::ANY).await
    }

    /// The same, as far as there is room, under a mark by which it can be given back where its answer doesn't come.
    pub async fn claim_as(&self, mark: ClaimMark, wants: &[Want], room: Room) -> Result<Claims, LedgerError> {
        let session = self.session().await?;
        let statement = session.prepare(CLAIM).await?;
        let operations: Vec<&str> = wants.iter().map(|w| w.operation.as_str()).collect();
        let asks: Vec<bool> = wants.iter().map(|w| w.asks).collect();
        let free: Vec<i32> = wants.iter().map(|w| i32::try_from(w.free).unwrap_or(i32::MAX)).collect();
        let leases: Vec<i64> = wants.iter().map(|w| micros(w.timeout.saturating_add(w.margin))).collect();
        let after: Vec<&str> = wants.iter().map(|w| w.after.as_str()).collect();
        let pins: Vec<&[u8]> = wants.iter().map(|w| w.pins.0.as_slice()).collect();
        let marks: Vec<bool> = wants.iter().map(|w| w.marks).collect();
        let [small, large, body_max] =
            [room.small, room.large, room.body_max].map(|bytes| i64::try_from(bytes).unwrap_or(i64::MAX));
        let mark = mark.bytes();
        let since: Vec<Timestamp> = wants.iter().map(|w| w.since.unwrap_or(Timestamp::EARLIEST)).collect();
        let count = |n: u32| i32::try_from(n).unwrap_or(i32::MAX);
        let tenant_max: Vec<Option<i32>> =
            wants.iter().map(|w| w.tenants.as_ref().map(|(max, _)| count(*max))).collect();
        let mut busy: (Vec<&str>, Vec<bool>, Vec<&str>, Vec<i32>) = Default::default();
        for want in wants {
            for (tenant, used) in want.tenants.iter().flat_map(|(_, used)| used) {
                busy.0.push(&want.operation);
                busy.1.push(want.asks);
                busy.2.push(tenant);
                busy.3.push(count(*used));
            }
        }
        let params: [&dyn Param; 18] = [
            &operations,
            &asks,
            &free,
            &leases,
            &after,
            &pins,
            &marks,
            &self.worker,
            &mark,
            &tenant_max,
            &busy.0,
            &busy.1,
            &busy.2,
            &busy.3,
            &small,
            &large,
            &body_max,
            &since,
        ];
        let asked_at = Uptime::now();
        failpoint::reach(Point::BeforeClaim);
        let rows = failpoint::unheard(Point::ClaimUnheard, statement.query(&params)).await?;
        let mut claims = Claims::default();
        // One after the other is dropped, so that no body is in memory twice for longer than it takes to copy it.
        for row in rows {
            let row = &row;
            claims.heavy = row.try_get("heavy")?;
            let (operation, asks): (&str, bool) = (row.try_get("wanted")?, row.try_get("asked")?);
            claims.unplaced = row.try_get("unplaced")?;
            if claims.next_after.last().is_none_or(|last| last.operation != operation || last.asks != asks) {
                let after = row.try_get("next_after")?;
                let put_off = row.try_get::<_, i32>("put_off")?.unsigned_abs();
                claims.next_after.push(NextAfter {
                    operation: operation.to_owned(),
                    asks,
                    after,
                    put_off,
                    oldest: row.try_get("oldest")?,
                });
            }
            if row.try_get::<_, Option<Uuid>>("action_id")?.is_some() {
                let wanted = wants.iter().find(|w| w.operation == operation && w.asks == asks);
                let timeout = wanted.map_or(Duration::ZERO, |w| w.timeout);
                let lease = Lease { asked_at, deadline: asked_at.plus(timeout), timeout };
                claims.claimed.push(read(row, lease)?);
            }
        }
        if !claims.claimed.is_empty() {
            failpoint::reach(Point::AfterClaim);
        }
        Ok(claims)
    }
}

fn read(row: &SqlRow, lease: Lease) -> Result<Claimed, LedgerError> {
    let unreadable = |what| LedgerError::Unreadable { what };
    let doubt_since: Option<Timestamp> = row.try_get("doubt_since")?;
    let doubt_attempt: Option<Uuid> = row.try_get("doubt_attempt")?;
    let fence: i64 = row.try_get("fence")?;
    let text = |name| -> Result<Option<String>, LedgerError> {
        let json: Option<Json<Box<serde_json::value::RawValue>>> = row.try_get(name)?;
        Ok(json.map(|Json(raw)| raw.get().to_owned()))
    };
    Ok(Claimed {
        intent: Intent {
            id: ActionId(row.try_get("action_id")?),
            tenant: row.try_get("tenant")?,
            operation: row.try_get("operation")?,
            traceparent: row.try_get("traceparent")?,
            params: text("params")?,
            headers: text("headers")?,
            content_type: row.try_get("content_type")?,
            body: row.try_get::<_, Option<&[u8]>>("body")?.map_or_else(Bytes::new, Bytes::copy_from_slice),
        },
        asked: row.try_get("asked")?,
        fence: Fence(fence),
        row: Row {
            attempt: AttemptId(row.try_get("attempt_id")?),
            claimed_at: row.try_get("claimed_at")?,
            step: Step::parse(row.try_get("step")?).ok_or_else(|| unreadable("outbox.delivery.step"))?,
            attempts: u32::try_from(row.try_get::<_, i32>("attempts")?).unwrap_or(0),
            claims: u32::try_from(fence).unwrap_or(u32::MAX),
            committed_at: row.try_get("created_at")?,
            budget_from: row.try_get("budget_from")?,
            first_sent_at: row.try_get("first_before")?,
            last_sent_at: row.try_get("last_before")?,
            doubt: doubt_since.map(|since| Doubt { since, attempt: doubt_attempt.map(AttemptId) }),
            proof: row.try_get("proof")?,
            cancel_sent: row.try_get("cancel_sent")?,
            overridden: row.try_get("overridden")?,
            sent_under: SentUnder::from_digest(row.try_get("sent_digest")?),
            stop: match row.try_get::<_, Option<&str>>("stop")? {
                None => None,
                Some("cancelled") => Some(Stop::Cancelled),
                Some("deadline") => Some(Stop::Deadline),
                Some("authority_revoked") => Some(Stop::AuthorityRevoked),
                Some("nothing_to_compensate") => Some(Stop::NothingToCompensate),
                Some(_) => return Err(unreadable("the stops of sql/claim.sql")),
            },
        },
        lease,
        lane: row.try_get("lane")?,
        oversize: row.try_get::<_, Option<i32>>("oversize")?.map(i32::unsigned_abs),
    })
}
