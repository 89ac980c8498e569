//! Giving back claims whose answers never came.

use std::time::Duration;

use uuid::Uuid;

use super::values::micros;
use super::{Ledger, LedgerError};

const GIVE_BACK: &str = include_str!("../../sql/give_back.sql");

/// A database and a worker don't read one clock: so much of a difference in how long something took is borne.
const CLOCKS: Duration = Duration::from_secs(60);

/// What the attempt ids of one claim begin with, and those of no other claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClaimMark([u8; 8]);

impl ClaimMark {
    /// A random one.
    pub fn new() -> Self {
        Self::of(Uuid::new_v4())
    }

    /// The mark that this attempt id begins with.
    pub fn of(attempt: Uuid) -> Self {
        let mut half = [0; 8];
        half.copy_from_slice(&attempt.into_bytes()[..8]);
        Self(half)
    }

    /// The first attempt id that begins so.
    pub fn first(self) -> Uuid {
        self.then(0)
    }

    /// As `sql/claim.sql` wants it.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The attempt id that begins so and goes on with these.
    fn then(self, rest: u8) -> Uuid {
        let mut bytes = [rest; 16];
        bytes[..8].copy_from_slice(&self.0);
        Uuid::from_bytes(bytes)
    }
}

impl Default for ClaimMark {
    fn default() -> Self {
        Self::new()
    }
}

impl Ledger {
    /// Gives back what `worker` has claimed under this mark, `asked` ago, and never heard of: nothing of it was sent.
    /// Returns how many rows. None may also mean that the claim is still being carried out. See `sql/give_back.sql`.
    pub async fn give_back(&self, worker: &str, mark: ClaimMark, asked: Duration) -> Result<usize, LedgerError> {
        let session = self.session().await?;
        let (first, last) = (mark.first(), mark.then(u8::MAX));
        let rows = session.query(GIVE_BACK, &[&worker, &first, &last, &micros(asked.saturating_add(CLOCKS))]).await?;
        Ok(rows.len())
    }
}
