//! How the core's values travel.

use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, accepts, private::BytesMut, to_sql_checked};

use crate::core::time::Timestamp;

/// From PostgreSQL's epoch, 2000-01-01, to the Unix epoch, in microseconds.
const EPOCH: i64 = 946_684_800_000_000;

type Fault = Box<dyn std::error::Error + Sync + Send>;

impl<'a> FromSql<'a> for Timestamp {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Fault> {
        let micros = i64::from_be_bytes(raw.try_into()?);
        Ok(Self::from_micros(micros.saturating_add(EPOCH)))
    }
    accepts!(TIMESTAMPTZ);
}

impl ToSql for Timestamp {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Fault> {
        out.extend_from_slice(&self.micros().saturating_sub(EPOCH).to_be_bytes());
        Ok(IsNull::No)
    }
    accepts!(TIMESTAMPTZ);
    to_sql_checked!();
}

/// A hundred years, in microseconds. Added to any clock it is still a timestamp that PostgreSQL can hold.
const LONGEST: i64 = 100 * 31_557_600 * 1_000_000;

/// Microseconds as PostgreSQL's bigint; saturates at a hundred years.
pub(super) fn micros(duration: std::time::Duration) -> i64 {
    i64::try_from(duration.as_micros()).map_or(LONGEST, |micros| micros.min(LONGEST))
}
