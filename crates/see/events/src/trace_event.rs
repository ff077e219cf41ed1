//! Any row of any table.

use crate::tables::{self, Row};

/// An operation for every table, by [`visit_tables`].
pub trait TableVisitor {
    /// Visits the table with rows of type `T`.
    fn visit<T: Row + Into<Event>>(&mut self);
}

/// Defines [`Event`] with one variant per table, and [`visit_tables`].
macro_rules! events {
    ($($table:ident),+) => {
        /// A row of any table.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Event {
            $(
                #[doc = concat!("A row of [`tables::", stringify!($table), "`].")]
                $table(tables::$table),
            )+
        }

        impl Event {
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
            impl From<tables::$table> for Event {
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
    Sync,
    Commit,
    Handle,
    Wait,
    BriefWait,
    Asleep,
    Call,
    Request,
    Data,
    Task,
    ThreadStart,
    Program,
    Counter,
    FileSystem,
    Stack,
    Lost,
    Summary,
    Connection,
    Message,
    Packet,
    Token,
    ExchangeSum,
    ClockSample,
    Trace
);
