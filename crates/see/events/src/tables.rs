//! Tables of a trace, one struct each. A field is a column of the same name. Tables are sorted by the time when a row was
//! complete: the last of its times.

mod block;
mod counter;
mod frame;
mod journal;
mod net;
mod thread;

pub use crate::store::Row;
pub use block::{Data, Request};
pub use counter::Counter;
pub use frame::{FileSystem, Lost, Stack, Summary, Trace};
pub use journal::{Commit, Handle, Sync};
pub use net::{ClockSample, Connection, ExchangeSum, Message, Packet, Token};
pub use thread::{Asleep, BriefWait, Call, NO_CALL, Program, Task, ThreadStart, Wait};

/// Defines a table: a struct, its name, and the column by which its rows are sorted.
macro_rules! table {
    (
        $(#[doc = $doc:literal])*
        pub struct $name:ident in $table:literal by $time:ident {
            $($(#[doc = $field_doc:literal])* pub $field:ident: $type:ty,)+
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct $name {
            $($(#[doc = $field_doc])* pub $field: $type,)+
        }

        impl $crate::store::Row for $name {
            const TABLE: &'static str = $table;
            const TIME: &'static str = stringify!($time);
            const DOCUMENTATION: &'static [&'static str] = &[$($doc),*];

            fn time_ns(&self) -> u64 {
                self.$time
            }

            fn columns() -> Vec<$crate::store::Column> {
                vec![$($crate::store::Column::of::<$type>(
                    stringify!($field),
                    &[$($field_doc),*],
                )),+]
            }

            fn encode(
                rows: &[Self],
                out: &mut $crate::store::GroupEncoder<'_, '_>,
            ) -> Result<(), parquet::errors::ParquetError> {
                $(out.column(rows, |row| &row.$field)?;)+
                Ok(())
            }

            fn decode(
                input: &mut $crate::store::GroupDecoder,
                rows: &mut [Self],
            ) -> Result<(), parquet::errors::ParquetError> {
                $(input.column(rows, |row, cell| row.$field = cell)?;)+
                Ok(())
            }
        }
    };
}
use table;
