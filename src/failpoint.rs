//! Places in the life of an action where a test makes the daemon die or stand still. Only with the feature `test-hooks`;
//! otherwise there is nothing here.
//!
//! `OUTBOXD_FAILPOINT=after_answer=die` kills the process there (SIGKILL) the first time it comes by, and `=stop` stops
//! it (SIGSTOP) until somebody lets it go on (SIGCONT).

/// A place, in the order in which an action comes by them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Point {
    /// Nothing has been claimed.
    BeforeClaim,
    /// The claim has been committed, and its answer has not been read.
    ClaimUnheard,
    /// It has been read.
    AfterClaim,
    /// What had to be written down first has been; no byte has left.
    BeforeFirstByte,
    /// Every byte of the request has left.
    AfterLastByte,
    /// The answer has been judged.
    AfterAnswer,
    /// What it means has been decided, and is not written down.
    BeforeSettle,
    /// It has been committed, and the database's answer has not been read.
    SettleUnheard,
    /// It has been read.
    AfterSettle,
}

impl Point {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::BeforeClaim,
        Self::ClaimUnheard,
        Self::AfterClaim,
        Self::BeforeFirstByte,
        Self::AfterLastByte,
        Self::AfterAnswer,
        Self::BeforeSettle,
        Self::SettleUnheard,
        Self::AfterSettle,
    ];

    /// As the variable names it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::BeforeClaim => "before_claim",
            Self::ClaimUnheard => "claim_unheard",
            Self::AfterClaim => "after_claim",
            Self::BeforeFirstByte => "before_first_byte",
            Self::AfterLastByte => "after_last_byte",
            Self::AfterAnswer => "after_answer",
            Self::BeforeSettle => "before_settle",
            Self::SettleUnheard => "settle_unheard",
            Self::AfterSettle => "after_settle",
        }
    }
}

#[cfg(not(feature = "test-hooks"))]
mod nothing {
    use super::Point;

    /// Nothing.
    pub const fn reach(_: Point) {}

    /// The query as it is.
    pub async fn unheard<T>(_: Point, query: impl Future<Output = T>) -> T {
        query.await
    }
}

#[cfg(feature = "test-hooks")]
mod armed {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::task::Poll;
    use std::time::Duration;

    use rustix::process::{Signal, getpid, kill_process};

    use super::Point;

    /// Longer than a loopback database takes to commit one statement.
    const COMMITTED: Duration = Duration::from_millis(300);

    fn is_armed(point: Point) -> Option<Signal> {
        static SET: OnceLock<Option<(String, Signal)>> = OnceLock::new();
        let set = SET.get_or_init(|| {
            let text = std::env::var("OUTBOXD_FAILPOINT").ok()?;
            let (name, what) = text.split_once('=')?;
            Some((name.to_owned(), if what == "stop" { Signal::STOP } else { Signal::KILL }))
        });
        set.as_ref().filter(|(name, _)| name == point.name()).map(|(_, signal)| *signal)
    }

    /// Another thread may be the one that takes the signal: this one is held back until all of them stand still.
    const TAKES_EFFECT: Duration = Duration::from_millis(20);

    /// Dies or stands still here, where that has been asked for; once.
    pub fn reach(point: Point) {
        static REACHED: AtomicBool = AtomicBool::new(false);
        if let Some(signal) = is_armed(point)
            && !REACHED.swap(true, Ordering::AcqRel)
        {
            let _ = kill_process(getpid(), signal);
            std::thread::sleep(TAKES_EFFECT);
        }
    }

    /// Sends a query, and dies or stands still when it has been carried out, before its answer is looked at.
    pub async fn unheard<T>(point: Point, query: impl Future<Output = T>) -> T {
        if is_armed(point).is_none() {
            return query.await;
        }
        let mut query = std::pin::pin!(query);
        // The first poll sends it.
        let once = std::future::poll_fn(|cx| Poll::Ready(query.as_mut().poll(cx)));
        if let Poll::Ready(answer) = once.await {
            return answer;
        }
        tokio::time::sleep(COMMITTED).await;
        reach(point);
        query.await
    }
}

#[cfg(feature = "test-hooks")]
pub use armed::{reach, unheard};
#[cfg(not(feature = "test-hooks"))]
pub use nothing::{reach, unheard};
