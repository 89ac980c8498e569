//! The application: a desk that writes release notes, and asks for an announcement in the same transaction.

use std::collections::BTreeMap;

use tokio::task::JoinSet;
use tokio_postgres::{Client, Error};
use uuid::Uuid;

use super::plan::{Ask, Ending, Plan};
use crate::clock::Uptime;
use crate::proving::session;

/// The application's own table. Nothing in it knows of outboxd.
const SCHEMA: &str = "
    create schema desk;
    create table desk.note (
      note         bigint      primary key,
      tenant       text        not null,
      channel      text        not null,
      title        text        not null,
      published_at timestamptz not null default clock_timestamp()
    )";

/// The state change. An event that is delivered twice finds its note there.
const WRITE: &str = "
    insert into desk.note (note, tenant, channel, title) values ($1, $2, $3, $4) on conflict do nothing";

/// The intent, in the same transaction.
const ASK: &str = "
    select action_id, created from outbox.enqueue(
      operation => 'announcement.deliver', payload => $1::text::json, retry_key => $2, tenant => $3,
      principal => $4, event_id => $5, params => $6::text::json)";

/// What `outbox.enqueue` has answered in a transaction that was committed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Answer {
    /// The action of this note.
    pub action: Uuid,
    /// False where an earlier transaction had asked for it.
    pub created: bool,
}

/// The answers to committed transactions, by note; two for a note that was asked for twice.
pub type Answers = BTreeMap<u32, Vec<Answer>>;

/// Makes the application's schema.
pub async fn open(client: &Client) -> Result<(), Error> {
    client.batch_execute(SCHEMA).await
}

/// Starts the sessions. Each works its asks off in their order, at their time after `begun`.
pub fn work(plan: &Plan, url: &str, begun: Uptime) -> JoinSet<Result<Vec<(u32, Answer)>, Error>> {
    plan.sessions.iter().map(|asks| sit(url.to_owned(), asks.clone(), begun)).collect()
}

async fn sit(url: String, asks: Vec<Ask>, begun: Uptime) -> Result<Vec<(u32, Answer)>, Error> {
    let mut client = session::connect(&url).await?;
    let mut answers = Vec::with_capacity(asks.len());
    for ask in asks {
        tokio::time::sleep(begun.plus(ask.at).left()).await;
        if let Some(answer) = publish(&mut client, &ask).await? {
            answers.push((ask.note, answer));
        }
    }
    Ok(answers)
}

/// One transaction: the note and what is to be done about it, or neither.
async fn publish(client: &mut Client, ask: &Ask) -> Result<Option<Answer>, Error> {
    let Text { tenant, principal, channel, title } = Text::of(ask.note);
    let key = format!("note-{}", ask.note);
    let payload = serde_json::json!({ "note": ask.note, "text": title }).to_string();
    let params = serde_json::json!({ "channel": channel }).to_string();
    let event = format!("evt-{}", ask.note);

    let transaction = client.transaction().await?;
    transaction.execute(WRITE, &[&i64::from(ask.note), &tenant, &channel, &title]).await?;
    let row = transaction.query_one(ASK, &[&payload, &key, &tenant, &principal, &event, &params]).await?;
    let answer = Answer { action: row.try_get("action_id")?, created: row.try_get("created")? };
    match ask.ending {
        Ending::Commit => transaction.commit().await.map(|()| Some(answer)),
        Ending::RollBack => transaction.rollback().await.map(|()| None),
    }
}

/// What a note says: a function of its number, so that an event delivered twice says the same twice.
struct Text {
    tenant: &'static str,
    principal: &'static str,
    channel: &'static str,
    title: String,
}

impl Text {
    fn of(note: u32) -> Self {
        let [tenant, principal] = match note % 3 {
            0 => ["acme", "release-bot"],
            1 => ["birch", "release-bot"],
            _ => ["cobalt", "dana"],
        };
        let channel = ["news", "status", "partners", "beta"][note as usize % 4];
        Self { tenant, principal, channel, title: format!("v1.{note} is out") }
    }
}
