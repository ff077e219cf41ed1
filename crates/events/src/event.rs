//! Any row of any table.

use crate::tables::{
    BriefWait, Call, ClockSample, Commit, Connection, Data, FileSystem, Handle, Lost, Message,
    Packet, Request, Row, Stack, Summary, Sync, Task, Trace, Wait,
};

/// Defines [`Event`] with one variant per table.
macro_rules! events {
    ($($table:ident),+) => {
        /// A row of any table.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Event {
            $(
                #[doc = concat!("A row of [`", stringify!($table), "`].")]
                $table($table),
            )+
        }

        impl Event {
            /// When the event was complete, in nanoseconds.
            pub fn time_ns(&self) -> u64 {
                match self {
                    $(Self::$table(row) => row.time_ns(),)+
                }
            }

            /// The name of its table.
            pub fn table(&self) -> &'static str {
                match self {
                    $(Self::$table(_) => $table::TABLE,)+
                }
            }
        }

        $(
            impl From<$table> for Event {
                fn from(row: $table) -> Self {
                    Self::$table(row)
                }
            }
        )+
    };
}

events!(
    Sync,
    Commit,
    Handle,
    Wait,
    BriefWait,
    Call,
    Request,
    Data,
    Task,
    FileSystem,
    Stack,
    Lost,
    Summary,
    Connection,
    Message,
    Packet,
    ClockSample,
    Trace
);
