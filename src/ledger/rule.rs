//! What a person decides about an action: the functions of the schema that say so, and their refusals as values.

use super::param::Param;
use super::trust::QueryError;
use super::{Ledger, LedgerError};
use crate::core::action::ActionId;

const RESOLVE: &str = include_str!("../../sql/resolve.sql");
const RETRY: &str = include_str!("../../sql/retry.sql");
const CANCEL: &str = include_str!("../../sql/cancel.sql");
const RELEASE: &str = include_str!("../../sql/release.sql");
const STANDING: &str = include_str!("../../sql/standing.sql");

/// What is decided.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Decision {
    /// It took effect.
    Happened {
        /// The destination's own reference, where there is one.
        receipt: Option<String>,
    },
    /// It did not.
    DidNotHappen {
        /// It is sent anew instead of given up.
        retry: bool,
    },
    /// It is sent again, whatever happened.
    SendAgain,
    /// What was closed as not done is tried again.
    Retry,
    /// It is not sent any more.
    Cancel,
    /// The next of the serial queue that it holds goes on.
    Release,
}

/// Who decides what, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Decided {
    /// About which action.
    pub action: ActionId,
    /// What.
    pub decision: Decision,
    /// Who; not empty.
    pub by: String,
    /// Why; not empty.
    pub reason: String,
}

/// What became of a decision.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ruling {
    /// It is recorded.
    Recorded {
        /// What the function answered.
        answer: String,
        /// Where the action stands now.
        state: String,
        /// The state, or what kind of unknown it is.
        label: String,
        /// What a reader may say about it.
        sentence: String,
    },
    /// Nothing was changed.
    Refused(Refusal),
}

/// Why the ledger refused a decision, in its own words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// `OB412`: evidence does not allow it. `OB422`: something is missing.
    pub sqlstate: String,
    /// Why.
    pub message: String,
    /// More about it.
    pub detail: Option<String>,
    /// What to do instead.
    pub hint: Option<String>,
}

impl Ledger {
    /// Records a decision and says where the action stands then, in one transaction.
    pub async fn rule(&self, decided: &Decided) -> Result<Ruling, LedgerError> {
        let mut session = self.session().await?;
        let transaction = session.transaction().await?;
        let Decided { action, decision, by, reason } = decided;
        let resolve = |decision: &'static str, receipt: Option<String>| {
            (RESOLVE, vec![boxed(action.0), boxed(decision), boxed(by.clone()), boxed(reason.clone()), boxed(receipt)])
        };
        let plain = |statement| (statement, vec![boxed(action.0), boxed(by.clone()), boxed(reason.clone())]);
        let steps = match decision {
            Decision::Happened { receipt } => vec![resolve("happened", receipt.clone())],
            Decision::DidNotHappen { retry: false } => vec![resolve("did_not_happen", None)],
            Decision::DidNotHappen { retry: true } => vec![resolve("did_not_happen", None), plain(RETRY)],
            Decision::SendAgain => vec![resolve("send_again", None)],
            Decision::Retry => vec![plain(RETRY)],
            Decision::Cancel => vec![plain(CANCEL)],
            Decision::Release => vec![plain(RELEASE)],
        };
        let mut answer = String::new();
        for (statement, params) in steps {
            let params: Vec<&dyn Param> = params.iter().map(|param| &**param as _).collect();
            match transaction.query_opt(statement, &params).await {
                Ok(None) => {}
                Ok(Some(row)) => answer = row.try_get::<_, Option<String>>("answer")?.unwrap_or_default(),
                Err(error) => return refusal(error).map(Ruling::Refused),
            }
        }
        let ruling = match transaction.query_opt(STANDING, &[&action.0]).await? {
            Some(row) => Ruling::Recorded {
                answer,
                state: row.try_get("state")?,
                label: row.try_get("label")?,
                sentence: row.try_get("sentence")?,
            },
            None => return Err(LedgerError::Unreadable { what: "outbox.status" }),
        };
        transaction.commit().await?;
        Ok(ruling)
    }
}

fn boxed(param: impl Param + Send + 'static) -> Box<dyn Param + Send> {
    Box::new(param)
}

/// A refusal of the schema's own (class `OB`) is an answer; everything else is an error.
fn refusal(error: QueryError) -> Result<Refusal, LedgerError> {
    let ours = match &error {
        QueryError::Said(error) => error.as_db_error().filter(|db| db.code().code().starts_with("OB")),
        QueryError::Silence(_) => None,
    };
    match ours {
        Some(db) => Ok(Refusal {
            sqlstate: db.code().code().to_owned(),
            message: db.message().to_owned(),
            detail: db.detail().map(ToOwned::to_owned),
            hint: db.hint().map(ToOwned::to_owned),
        }),
        None => Err(error.into()),
    }
}
