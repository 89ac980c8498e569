//! The application: orders in a table of its own, and in the same transaction what is to be done about them. The
//! database goes away under it now and then; it tries again, as applications do.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error};
use uuid::Uuid;

use super::plan::{GRANTS, Order, Plan, Revocation};
use super::records::{Answer, Cancel, Desk, Written};
use crate::clock::{Uptime, wall};
use crate::proving::session;

/// Sessions that place orders.
const SESSIONS: usize = 4;
/// Between two tries.
const AGAIN: Duration = Duration::from_millis(250);
/// How long one try may take: a database that stops may not answer for a while.
const ONE_TRY: Duration = Duration::from_secs(15);
/// The longest time without a database.
const PATIENCE: Duration = Duration::from_secs(60);

const SCHEMA: &str = r#"
    create schema desk;
    create table desk."order" (
      number     bigint      primary key,
      action     uuid        not null,
      written_at timestamptz not null default clock_timestamp()
    )"#;

/// The intent …
const ASK: &str = "
    select action_id, created from outbox.enqueue(
      operation => $1, payload => $2::text::json, retry_key => $3, tenant => $4, principal => 'desk',
      authority => $5, expires_at => clock_timestamp() + $6::float8 * interval '1 second', compensates => $7, ordering_key => $8)";

/// … and the state change. An order that is placed twice finds itself there.
const WRITE: &str = r#"insert into desk."order" (number, action) values ($1, $2) on conflict do nothing"#;

const ACTION_OF: &str = r#"select action from desk."order" where number = $1"#;

/// What the application has been told so far.
pub type Told = Arc<Mutex<Desk>>;

/// Makes the application's schema.
pub async fn open(client: &Client) -> Result<(), Error> {
    client.batch_execute(SCHEMA).await
}

/// What is done at one time.
#[derive(Clone, Debug)]
enum Deed {
    Place(Box<Order>),
    Cancel(u32),
    Revoke(Revocation),
}

/// Starts the sessions. Each does its deeds in their order, at their time after `begun`.
pub fn work(plan: &Plan, url: &str, begun: Uptime) -> (JoinSet<Result<(), Error>>, Told) {
    let told = Told::default();
    let mut queues: Vec<Vec<(Duration, Deed)>> = vec![Vec::new(); SESSIONS + 1];
    for order in &plan.orders {
        let session = order.number as usize % SESSIONS;
        queues[session].push((order.at, Deed::Place(Box::new(order.clone()))));
        if let Some(again) = order.again {
            queues[(session + 1) % SESSIONS].push((order.at + again, Deed::Place(Box::new(order.clone()))));
        }
        if let Some(cancelled) = order.cancelled {
            queues[SESSIONS].push((order.at + cancelled, Deed::Cancel(order.number)));
        }
    }
    queues[SESSIONS].extend(plan.revocations.iter().map(|revocation| (revocation.at, Deed::Revoke(*revocation))));
    let mut sessions = JoinSet::new();
    for mut queue in queues {
        queue.sort_by_key(|(at, _)| *at);
        sessions.spawn(sit(url.to_owned(), queue, begun, Arc::clone(&told)));
    }
    (sessions, told)
}

/// What the application knows in the end.
pub async fn read(client: &Client, told: &Told) -> Result<Desk, Error> {
    let mut desk = told.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let rows = client.query(r#"select number, action, written_at from desk."order" order by number"#, &[]).await?;
    for row in rows {
        let number: i64 = row.try_get(0)?;
        let order = u32::try_from(number).unwrap_or(0);
        desk.written.push(Written { order, action: row.try_get(1)?, at: row.try_get(2)? });
    }
    Ok(desk)
}

async fn sit(url: String, deeds: Vec<(Duration, Deed)>, begun: Uptime, told: Told) -> Result<(), Error> {
    let mut client = None;
    for (at, deed) in deeds {
        tokio::time::sleep(begun.plus(at).left()).await;
        let patience = Uptime::now().plus(PATIENCE);
        loop {
            let done = async {
                if client.is_none() {
                    client = Some(session::connect(&url).await?);
                }
                match &mut client {
                    Some(client) => do_it(client, &deed, &told).await,
                    None => Ok(false),
                }
            };
            match tokio::time::timeout(ONE_TRY, done).await {
                Ok(Ok(true)) => break,
                Ok(Ok(false)) => {}
                Ok(Err(error)) if patience.is_over() => return Err(error),
                // Whatever it was: a new session, and once more. What is asked for twice is asked for under one key.
                Ok(Err(_)) | Err(_) => client = None,
            }
            tokio::time::sleep(AGAIN).await;
        }
    }
    Ok(())
}

/// False where it is too early for it.
async fn do_it(client: &mut Client, deed: &Deed, told: &Told) -> Result<bool, Error> {
    match deed {
        Deed::Place(order) => place(client, order, told).await,
        Deed::Cancel(order) => cancel(client, *order, told).await,
        Deed::Revoke(revocation) => revoke(client, *revocation, told).await,
    }
}

async fn action_of(client: &Client, order: u32) -> Result<Option<Uuid>, Error> {
    let row = client.query_opt(ACTION_OF, &[&i64::from(order)]).await?;
    row.map(|row| row.try_get(0)).transpose()
}

/// One transaction: the order and what is to be done about it, or neither.
async fn place(client: &mut Client, order: &Order, told: &Told) -> Result<bool, Error> {
    let undone = match order.undoes {
        Some(undone) => match action_of(client, undone).await? {
            Some(action) => Some(action),
            None => return Ok(false),
        },
        None => None,
    };
    let (operation, key, tenant) = (order.kind.operation(), retry_key(order.number), order.tenant());
    let queue = order.queue.map(|queue| format!("queue-{queue}"));
    let payload = serde_json::json!({ "order": order.number, "text": format!("order {}", order.number) }).to_string();
    let (grant, expires) = (order.grant.map(grant_name), order.expires.map(|within| within.as_secs_f64()));
    locked(told).tried.entry(order.number).or_insert_with(wall);
    let transaction = client.transaction().await?;
    let asked: [&(dyn ToSql + Sync); 8] = [&operation, &payload, &key, &tenant, &grant, &expires, &undone, &queue];
    let row = transaction.query_one(ASK, &asked).await?;
    let answer = Answer { order: order.number, action: row.try_get(0)?, created: row.try_get(1)?, at: wall() };
    transaction.execute(WRITE, &[&i64::from(order.number), &answer.action]).await?;
    if order.committed {
        transaction.commit().await?;
        locked(told).answers.push(Answer { at: wall(), ..answer });
    } else {
        transaction.rollback().await?;
    }
    Ok(true)
}

async fn cancel(client: &Client, order: u32, told: &Told) -> Result<bool, Error> {
    let Some(action) = action_of(client, order).await? else { return Ok(false) };
    let asked =
        client.query_one("select outbox.cancel($1, 'desk', 'the customer changed their mind')", &[&action]).await;
    match asked {
        Ok(row) => {
            let certain = row.try_get::<_, &str>(0)? == "cancelled";
            locked(told).cancels.push(Cancel { order, certain, at: wall() });
            Ok(true)
        }
        // It is closed already.
        Err(error) if error.code() == Some(&SqlState::from_code("OB412")) => Ok(true),
        Err(error) => Err(error),
    }
}

async fn revoke(client: &Client, revocation: Revocation, told: &Told) -> Result<bool, Error> {
    let row = client
        .query_one(
            "select outbox.revoke('desk', 'the grant was withdrawn', authority => $1)",
            &[&grant_name(revocation.grant)],
        )
        .await?;
    let number: i64 = row.try_get(0)?;
    let from = wall();
    let lifted = match revocation.lifted {
        None => None,
        Some(after) => {
            tokio::time::sleep(after).await;
            let before = wall();
            // Where that fails the grant stays revoked, and the record says so.
            let restored = client.query_one("select outbox.restore($1, 'desk', 'given back')", &[&number]).await;
            restored.is_ok().then_some(before)
        }
    };
    // Not known to be lifted is not known to be in force either: the commit may have got through.
    if lifted.is_some() == revocation.lifted.is_some() {
        locked(told).revoked.push((revocation.grant, from, lifted));
    }
    Ok(true)
}

/// Where nobody has kept what the application was told.
pub fn nothing_told() -> Told {
    Told::default()
}

/// The retry key of an order.
fn retry_key(order: u32) -> String {
    format!("order-{order}")
}

fn grant_name(grant: u32) -> String {
    format!("grant-{}", grant % GRANTS)
}

fn locked(told: &Told) -> std::sync::MutexGuard<'_, Desk> {
    told.lock().unwrap_or_else(PoisonError::into_inner)
}
