//! The operator: looks through what is held for a person, asks the destination's own record, and decides as it says.
//! That nothing happened is said only once no request can arrive any more.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error};
use uuid::Uuid;

use super::kinds::ABSENCE;
use super::outside::{Plant, Record};
use super::plan::{Order, Plan};
use super::records::Office;
use crate::proving::session;

/// Between two looks at what is held.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How long one look may take: a database that stops may not answer for a while.
const ONE_LOOK: Duration = Duration::from_secs(15);

/// What waits for a person. `settled`: whatever was sent about it, a cancel by key too, has arrived or is lost.
const HELD: &str = "
    select d.action_id, a.retry_key, coalesce(d.reason, '') as reason, d.cancel_sent_at is not null as cancel_sent,
      clock_timestamp() > greatest(d.last_sent_at, d.updated_at) + $1::float8 * interval '1 second' as settled
    from outbox.delivery d join outbox.action a using (action_id)
    where d.state = 'outcome_unknown' and d.step = 'review' and d.due_at is null
    order by d.updated_at";

/// What holds its serial queue since it failed, for so long that others have had the time to go wrong.
const HEADS: &str = "
    select d.action_id, a.retry_key from outbox.delivery d join outbox.action a using (action_id)
    where d.holds and d.updated_at < clock_timestamp() - interval '2 seconds' order by d.updated_at";

/// What an operator says.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Decision {
    /// It took effect; the destination's reference.
    Happened(String),
    /// It did not.
    DidNotHappen,
    /// It did not, and is to be tried as at the beginning.
    Retry,
    /// It is sent once more.
    SendAgain,
    /// It failed, and those behind it may go.
    Release,
    /// It failed, and is tried again at the head of its queue.
    RetryHead,
}

/// One action that is held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Held {
    /// Its order.
    order: u32,
    /// Nothing can arrive any more.
    settled: bool,
    /// A cancel by its key has been sent.
    cancel_sent: bool,
    /// It may be sent again: nothing has stopped it, and it was not decided upon before.
    free: bool,
}

/// The operator at work.
pub struct Operator {
    task: JoinHandle<()>,
    office: Arc<Mutex<Office>>,
}

/// What the operator knows besides.
struct Desk {
    record: Record,
    /// Orders that something stops: whoever was told to stop does not send again.
    stopped: HashSet<u32>,
    plant: Option<Plant>,
    office: Arc<Mutex<Office>>,
    /// What something was decided about.
    decided: HashSet<Uuid>,
}

impl Operator {
    /// Starts. The database may go away meanwhile.
    pub fn begin(url: &str, record: Record, plan: &Plan, plant: Option<Plant>) -> Self {
        let is_stopped = |order: &&Order| {
            order.cancelled.is_some() || order.expires.is_some() || order.grant.is_some() || order.undoes.is_some()
        };
        let stopped = plan.orders.iter().filter(is_stopped).map(|order| order.number).collect();
        let office = Arc::<Mutex<Office>>::default();
        let desk = Desk { record, stopped, plant, office: Arc::clone(&office), decided: HashSet::new() };
        Self { task: tokio::spawn(desk.sit(url.to_owned())), office }
    }

    /// Ends. Returns what was found.
    pub fn end(self) -> Office {
        self.task.abort();
        locked(&self.office).clone()
    }
}

impl Desk {
    async fn sit(mut self, url: String) {
        let mut client = None;
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            if client.is_none() {
                client = session::connect(&url).await.ok();
            }
            let Some(connected) = &client else { continue };
            // Whatever it was: a new session, and another look. What was decided is not held any more.
            if !matches!(tokio::time::timeout(ONE_LOOK, self.look(connected)).await, Ok(Ok(()))) {
                client = None;
            }
        }
    }

    async fn look(&mut self, client: &Client) -> Result<(), Error> {
        for row in client.query(HELD, &[&ABSENCE.as_secs_f64()]).await? {
            let (action, retry_key, reason): (Uuid, String, String) =
                (row.try_get("action_id")?, row.try_get("retry_key")?, row.try_get("reason")?);
            let order = order_of(&retry_key);
            locked(&self.office).held.entry(action).or_insert(reason);
            let held = Held {
                order,
                settled: row.try_get("settled")?,
                cancel_sent: row.try_get("cancel_sent")?,
                free: !self.stopped.contains(&order) && !self.decided.contains(&action),
            };
            let live = match self.record.live(action) {
                live if self.plant != Some(Plant::Contrary) => live,
                Some(_) => None,
                None => Some("r-0".to_owned()),
            };
            let Some(decision) = decide(held, live) else { continue };
            self.carry_out(client, action, &decision).await?;
        }
        for row in client.query(HEADS, &[]).await? {
            let (action, retry_key): (Uuid, String) = (row.try_get("action_id")?, row.try_get("retry_key")?);
            let order = order_of(&retry_key);
            let free = !self.stopped.contains(&order) && !self.decided.contains(&action);
            let decision = if free && order.is_multiple_of(2) { Decision::RetryHead } else { Decision::Release };
            self.carry_out(client, action, &decision).await?;
        }
        Ok(())
    }

    async fn carry_out(&mut self, client: &Client, action: Uuid, decision: &Decision) -> Result<(), Error> {
        match carry_out(client, action, decision).await {
            Ok(()) => drop(self.decided.insert(action)),
            // What may not be tried again now is let go the next time.
            Err(error) if is_refusal(&error) => {
                locked(&self.office).refused += 1;
                if *decision == Decision::RetryHead {
                    self.decided.insert(action);
                }
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

fn order_of(retry_key: &str) -> u32 {
    retry_key.strip_prefix("order-").and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// What to say of it; `None` = it is too early. `live` is the receipt that the destination has.
fn decide(held: Held, live: Option<String>) -> Option<Decision> {
    match live {
        // A cancel that is still on its way may undo it yet.
        Some(_) if held.cancel_sent && !held.settled => None,
        Some(receipt) => Some(Decision::Happened(receipt)),
        None if !held.settled => None,
        None if held.cancel_sent || !held.free => Some(Decision::DidNotHappen),
        None => Some(match held.order % 3 {
            0 => Decision::DidNotHappen,
            1 => Decision::SendAgain,
            _ => Decision::Retry,
        }),
    }
}

async fn carry_out(client: &Client, action: Uuid, decision: &Decision) -> Result<(), Error> {
    let (word, receipt, why) = match decision {
        Decision::Release => {
            client.query_one("select outbox.release($1, 'operator', 'the next need it not')", &[&action]).await?;
            return Ok(());
        }
        Decision::RetryHead => return again(client, action).await,
        Decision::Happened(receipt) => ("happened", Some(receipt), "it is in their record"),
        Decision::DidNotHappen => ("did_not_happen", None, "it is not in their record"),
        Decision::Retry => ("did_not_happen", None, "it is not in their record; again, then"),
        Decision::SendAgain => ("send_again", None, "nothing is there, and nothing can come"),
    };
    client.query_one("select outbox.resolve($1, $2, 'operator', $3, $4)", &[&action, &word, &why, &receipt]).await?;
    if *decision == Decision::Retry {
        again(client, action).await?;
    }
    Ok(())
}

async fn again(client: &Client, action: Uuid) -> Result<(), Error> {
    client.query_one("select outbox.retry($1, 'operator', 'once more')", &[&action]).await.map(drop)
}

/// Whether the ledger has answered, and said no: the evidence does not allow it, or somebody has the row.
fn is_refusal(error: &Error) -> bool {
    [SqlState::from_code("OB412"), SqlState::LOCK_NOT_AVAILABLE].iter().any(|state| error.code() == Some(state))
}

fn locked(office: &Mutex<Office>) -> std::sync::MutexGuard<'_, Office> {
    office.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r21_an_operator_says_what_the_destination_has_and_no_sooner_than_it_is_certain() {
        let held = Held { order: 3, settled: true, cancel_sent: false, free: true };
        let early = Held { settled: false, ..held };
        let receipt = || Some("r-1".to_owned());
        let happened = Some(Decision::Happened("r-1".to_owned()));
        assert_eq!((decide(early, receipt()), decide(held, receipt())), (happened.clone(), happened.clone()));
        assert_eq!((decide(early, None), decide(held, None)), (None, Some(Decision::DidNotHappen)));
        assert_eq!(decide(Held { order: 4, ..held }, None), Some(Decision::SendAgain));
        assert_eq!(decide(Held { order: 5, ..held }, None), Some(Decision::Retry));
        for bound in [Held { free: false, order: 4, ..held }, Held { cancel_sent: true, order: 4, ..held }] {
            assert_eq!(decide(bound, None), Some(Decision::DidNotHappen));
        }
        assert_eq!(decide(Held { cancel_sent: true, ..early }, receipt()), None, "the cancel may arrive yet");
        assert_eq!(decide(Held { cancel_sent: true, ..held }, receipt()), happened);
    }
}
