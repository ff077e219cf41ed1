//! Tables of a trace, one struct each. A field is a column of the same name. Tables are sorted by the time when a row
//! was complete: the last of its times.

mod block;
mod hardware_count;
mod journal;
mod network;
mod thread;
mod trace_context;

pub use crate::store::TableRow;
pub use block::{BlockRequest, FileData};
pub use hardware_count::HardwareCount;
pub use journal::{FsyncCall, JournalCommit, JournalHandle};
pub use network::{
    ClockSample, ConnectionMessage, ExchangeSum, RequestToken, SocketConnection, TcpPacket,
};
pub use thread::{
    AsleepThread, BriefWait, FileCall, NO_CALL, OffCpuWait, ProcessProgram, ThreadInfo, ThreadStart,
};
pub use trace_context::{
    KernelStack, LostEvents, MountedFileSystem, SummaryCount, TraceDescription,
};

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

        impl $crate::store::TableRow for $name {
            const TABLE: &'static str = $table;
            const TIME: &'static str = stringify!($time);
            const DOCUMENTATION: &'static [&'static str] = &[$($doc),*];

            fn time_ns(&self) -> u64 {
                self.$time
            }

            fn columns() -> Vec<$crate::store::ParquetColumn> {
                vec![$($crate::store::ParquetColumn::of::<$type>(
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
