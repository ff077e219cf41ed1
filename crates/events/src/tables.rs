//! One struct per table. A field is a column of the same name; a row's time, by which tables are
//! sorted, is the moment it was complete: the last of its times.

mod block;
mod frame;
mod journal;
mod thread;

pub use block::{Data, Request, RequestFlags};
pub use frame::{FileSystem, Lost, Stack, Summary, Trace};
pub use journal::{Commit, Handle, Sync};
pub use thread::{Call, Task, Wait};

/// Defines a table: a struct, its name, and the column by which its rows are sorted.
macro_rules! table {
    (
        $(#[$doc:meta])*
        pub struct $name:ident in $table:literal by $time:ident {
            $($(#[$field_doc:meta])* pub $field:ident: $type:ty,)+
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $type,)+
        }

        impl $crate::tables::Row for $name {
            const TABLE: &'static str = $table;

            fn time_ns(&self) -> u64 {
                self.$time
            }
        }
    };
}
use table;

/// A row of some table.
pub trait Row: Clone + Sized + 'static {
    /// The table's name.
    const TABLE: &'static str;

    /// When the row was complete, in nanoseconds: the key by which the table is sorted.
    fn time_ns(&self) -> u64;
}
