//! Parameters that know their SQL type: a statement that is not prepared asks the server for nothing before it runs.

use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

use crate::core::time::Timestamp;

/// A value whose SQL type is known without asking the server.
pub(super) trait Param: ToSql + Sync {
    /// Its type; the statements cast nothing else.
    fn sql_type(&self) -> Type;
}

/// A Rust type with one SQL type, and that of arrays of it.
trait Scalar {
    const ONE: Type;
    const MANY: Type;
}

macro_rules! scalars {
    ($($rust:ty => $one:ident, $many:ident;)*) => {
        $(impl Scalar for $rust {
            const ONE: Type = Type::$one;
            const MANY: Type = Type::$many;
        })*
    };
}

scalars! {
    bool => BOOL, BOOL_ARRAY;
    i32 => INT4, INT4_ARRAY;
    i64 => INT8, INT8_ARRAY;
    &str => TEXT, TEXT_ARRAY;
    String => TEXT, TEXT_ARRAY;
    &[u8] => BYTEA, BYTEA_ARRAY;
    Uuid => UUID, UUID_ARRAY;
    Timestamp => TIMESTAMPTZ, TIMESTAMPTZ_ARRAY;
}

impl<T: Scalar + ToSql + Sync> Param for T {
    fn sql_type(&self) -> Type {
        T::ONE
    }
}

impl<T: Scalar + ToSql + Sync> Param for Option<T> {
    fn sql_type(&self) -> Type {
        T::ONE
    }
}

impl<T: Scalar + ToSql + Sync> Param for Vec<T> {
    fn sql_type(&self) -> Type {
        T::MANY
    }
}

impl<T: Scalar + ToSql + Sync> Param for Vec<Option<T>> {
    fn sql_type(&self) -> Type {
        T::MANY
    }
}

impl<T: Scalar + ToSql + Sync> Param for Option<Vec<T>> {
    fn sql_type(&self) -> Type {
        T::MANY
    }
}
