//! Claims, findings and settlements, made as the dispatcher makes them.

use std::time::Duration;

use outboxd::core::action::Step;
use outboxd::core::contract::{
    Absence, Asking, By, Contract, Effect, Key, KeyMode, Lookup, Place, Question, Rung, When, Window,
};
use outboxd::core::decide::{Moment, decide};
use outboxd::core::evidence::{Evidence, Finding};
use outboxd::core::late::Testimony;
use outboxd::core::queue::queue_after;
use outboxd::core::reason::Reason;
use outboxd::core::request::RequestTemplate;
use outboxd::core::retry::{Backoff, Dice};
use outboxd::core::terms::{Pins, Policy, Terms};
use outboxd::ledger::{Claimed, History, LateTestimony, Ledger, Settlement, Standing, Want};

use super::Database;

pub const NOTE: &str = "note.publish";
pub const PINS: Pins = Pins([1; 16]);
pub const OTHER_PINS: Pins = Pins([2; 16]);

/// Ten slots and a lease that outlives the test.
pub fn want(operation: &str) -> Want {
    Want {
        operation: operation.into(),
        asks: false,
        free: 10,
        timeout: Duration::from_secs(60),
        margin: Duration::from_secs(60),
        after: String::new(),
        pins: PINS,
        marks: false,
        tenants: None,
        since: None,
    }
}

/// The same, of the rows that ask the destination.
pub fn asking(want: Want) -> Want {
    Want { asks: true, ..want }
}

/// With a lease that has lapsed by the time anybody looks.
pub fn lapsing(want: Want) -> Want {
    Want { timeout: Duration::from_millis(1), margin: Duration::ZERO, ..want }
}

/// What one claim brings, of rows that send and of rows that ask.
pub async fn claim(ledger: &Ledger, want: &Want) -> Vec<Claimed> {
    ledger.claim(&[want.clone(), asking(want.clone())]).await.expect("a claim").claimed
}

/// The one row that is due, or will be in a moment.
pub async fn claim_one(ledger: &Ledger, want: &Want) -> Claimed {
    let wait = async {
        loop {
            let mut claimed = claim(ledger, want).await;
            assert!(claimed.len() <= 1, "more than one row is due");
            if let Some(claimed) = claimed.pop() {
                return claimed;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(super::world::SOON, wait).await.expect("a due row")
}

/// A destination that remembers keys for a day and can be asked a minute later.
pub fn terms() -> Terms {
    let second = Duration::from_secs(1);
    Terms {
        policy: Policy {
            effect: Effect::Keyed,
            timeout: 10 * second,
            attempts_max: 5,
            affordable: None,
            elapsed_max: 86_400 * second,
            backoff: Backoff { initial: second, multiplier: 2.0, max: 60 * second },
            retry_after_max: 3600 * second,
            review_after: 86_400 * second,
            resend_within: 3600 * second,
        },
        contract: Contract {
            key: Some(Key {
                window: Some(Window::For(86_400 * second)),
                margin: 3600 * second,
                ..Key::new(KeyMode::Dedupe, Place::Header("idempotency-key".into()))
            }),
            reconcile: vec![Rung::Resend, Rung::Lookup, Rung::Review],
            lookup: Some(Lookup::new(
                By::Key,
                Question { request: RequestTemplate::bare("GET"), body: None },
                When::default(),
                Asking { first_after: 5 * second, repeat: vec![30 * second], absence: Absence::After(60 * second) },
            )),
            ..Contract::silent("test")
        },
        pins: PINS,
    }
}

/// A bare finding; of an answer that never came, where nothing better is known.
pub fn finding(evidence: Evidence) -> Finding {
    Finding::because(evidence, Reason::Timeout)
}

/// How the history has a finding of a send.
pub fn history(evidence: Evidence) -> History {
    History {
        kind: Step::Send,
        idempotency_key: Some("the-key".into()),
        started_ago: Duration::from_millis(20),
        deadline_in: Duration::from_secs(10),
        evidence: evidence.as_str(),
        status: None,
        detail: None,
    }
}

/// What the core decides about a claim that learnt this.
pub fn settlement(claimed: &Claimed, finding: &Finding) -> Settlement {
    let moment = Moment { now: claimed.database_now(), paused: Duration::ZERO, probed: false, dice: Dice::new(0.5) };
    let transition = decide(&claimed.row, finding, &terms(), moment);
    Settlement {
        action: claimed.intent.id,
        fence: claimed.fence,
        row: claimed.row.clone(),
        queue: queue_after(&transition, false),
        transition,
        history: Some(History { status: finding.status, ..history(finding.evidence) }),
        lane: claimed.lane,
    }
}

/// Settles one claim; whether it was written.
pub async fn settle(ledger: &Ledger, claimed: &Claimed, evidence: Evidence) -> bool {
    let settlement = settlement(claimed, &finding(evidence));
    ledger.settle(&[settlement]).await.expect("a settle").contains(&claimed.row.attempt)
}

/// Late testimony of a claim; what becomes of it.
pub async fn testify(ledger: &Ledger, claimed: &Claimed, evidence: Evidence) -> Testimony {
    let finding = Finding { receipt: Some("late-receipt".into()), ..finding(evidence) };
    let history = history(evidence);
    ledger.testify(LateTestimony::of(claimed, &finding, PINS, &history)).await.expect("a testimony").expect("a row")
}

/// One action, claimed.
pub async fn held(db: &Database) -> (Ledger, Claimed) {
    db.enqueue(NOTE, "{}", "k").await;
    let ledger = db.ledger("w");
    let claimed = claim_one(&ledger, &want(NOTE)).await;
    (ledger, claimed)
}

/// What a confirmed send becomes.
pub fn accepted(claimed: &Claimed) -> Settlement {
    settlement(claimed, &finding(Evidence::Accepted))
}

/// What became of a settlement that was not written.
pub async fn standing(ledger: &Ledger, settlement: &Settlement) -> Standing {
    ledger.standing(&[settlement]).await.unwrap().remove(&settlement.row.attempt).expect("a row")
}

/// The settings of the ledger's own sessions, as statements.
pub fn session_settings() -> String {
    let source = include_str!("../../../src/ledger/session.rs");
    let (_, rest) = source.split_once("const SETTINGS: ").expect("the settings");
    let (table, _) = rest.split_once("];").expect("their end");
    let pair = regex::Regex::new(r#"\("([a-z_]+)", "([^"]+)"\)"#).expect("a pattern");
    let settings: Vec<String> =
        pair.captures_iter(table).map(|found| format!("set {} = {}", &found[1], &found[2])).collect();
    assert!(settings.len() > 5, "{settings:?}");
    settings.join("; ")
}
