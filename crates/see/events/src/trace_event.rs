//! Any row of any table.

use crate::tables::{self, TableRow};

/// An operation for every table, by [`visit_tables`].
pub trait TableVisitor {
    /// Visits the table with rows of type `T`.
    fn visit<T: TableRow + Into<TraceEvent>>(&mut self);
}

/// Defines [`TraceEvent`] with one variant per table, and [`visit_tables`].
macro_rules! events {
    ($($table:ident),+) => {
        /// A row of any table.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum TraceEvent {
            $(
                #[doc = concat!("A row of [`tables::", stringify!($table), "`].")]
                $table(tables::$table),
            )+
        }

        impl TraceEvent {
            /// Returns the time when the event was complete, in nanoseconds.
            pub fn time_ns(&self) -> u64 {
                match self {
                    $(Self::$table(row) => row.time_ns(),)+
                }
            }

            /// Returns the name of its table.
            pub fn table(&self) -> &'static str {
                match self {
                    $(Self::$table(_) => tables::$table::TABLE,)+
                }
            }
        }

        $(
            impl From<tables::$table> for TraceEvent {
                fn from(row: tables::$table) -> Self {
                    Self::$table(row)
                }
            }
        )+

        /// Visits every table, in the order of the page that describes them.
        pub fn visit_tables(visitor: &mut impl TableVisitor) {
            $(visitor.visit::<tables::$table>();)+
        }
    };
}

// The only list of all tables.
events!(
    FsyncCall,
    JournalCommit,
    JournalHandle,
    OffCpuWait,
    BriefWait,
    AsleepThread,
    FileCall,
    BlockRequest,
    FileData,
    ThreadInfo,
    ThreadStart,
    ProcessProgram,
    HardwareCount,
    MountedFileSystem,
    KernelStack,
    LostEvents,
    SummaryCount,
    SocketConnection,
    ConnectionMessage,
    TcpPacket,
    RequestToken,
    ExchangeSum,
    ClockSample,
    TraceDescription
);
