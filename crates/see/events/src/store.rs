//! The trace store: a directory with Parquet files, some per table.
//!
//! # Layout
//!
//! `<table>-<first>-<last>.parquet` holds the table's segments `first` to `last`, numbered from 1 without
//! gaps. A segment is one row group, sorted by the row's time, of at most [`SEGMENT_ROWS`] rows. Any Parquet
//! tool reads `<directory>/<table>-*.parquet` as one table.
//!
//! A segment is written to a file of its own under a hidden temporary name, at least every
//! [`FLUSH_INTERVAL`], and renamed into place when complete, so after a `kill -9` everything up to the
//! last segment is there, with nothing half-written in between. From time to time, and at the end, small
//! files of a table are merged into one (their row groups copied as they are), again by renaming; where
//! both a merged file and its parts exist, because the recorder was killed between the rename and the
//! removal of the parts, the merged one counts. Nothing is synced to disk: a recorder that calls fsync
//! would disturb what it measures.
//!
//! # Integrity
//!
//! Behind Parquet's magic number each file has 20 bytes that Parquet tools skip: `LUC1`, the
//! footer's offset (u64), a CRC-32 of all from there to the end of the file, and a CRC-32 of these 16
//! bytes (little-endian all). The footer's key-value metadata has `luc.schema` (the version of the vocabulary),
//! `luc.table` and `luc.segments`: for each row group its offset, length, CRC-32, rows and first and
//! last time. So whatever the reader decodes was checked first: damage is an error that names the
//! file and the offset, never a wrong figure.

mod cell;
mod dictionary;
mod error;
mod group;
mod kind;
mod merge;
mod names;
mod reader;
mod segment;
mod writer;

use std::time::Duration;

pub use cell::{BadCell, Cell, Column, ColumnKind, KnownNames, Physical};
pub use error::StoreError;
pub use group::{GroupDecoder, GroupEncoder, Row};
pub(crate) use names::is_of_table;
pub use reader::{Reader, Rows, TableFile};
pub use writer::Writer;
pub(crate) use writer::{is_free, make};

/// The version of the vocabulary: the tables, their columns and their meaning. It grows with each change. Version 2
/// added the tables `connection`, `message`, `packet` and `clock_sample`, version 3 `asleep`, version 4 `thread_start` and
/// `program`, version 5 `wait`'s column `processor`, version 6 `exchange_sum`, version 7
/// `token`, and `connection`'s column `peer` and its families that are not of TCP, version 8 `counter`.
pub const SCHEMA_VERSION: u32 = 8;

/// The oldest version that is read. Versions from here on only added tables, and columns ([`has_column_since`]) whose
/// default value says that it is not known, so their traces mean the same to this version. Any other change raises this,
/// too.
pub const OLDEST_VERSION: u32 = 1;

/// Columns that were added at the end of a table: the version, the table and the column.
const ADDED: [(u32, &str, &str); 2] = [(5, "wait", "processor"), (7, "connection", "peer")];

/// The schema version from which on files of a table have a column.
#[must_use]
pub fn has_column_since(table: &str, column: &str) -> u32 {
    let added = ADDED.iter().find(|added| (added.1, added.2) == (table, column));
    added.map_or(OLDEST_VERSION, |added| added.0)
}

/// The most rows in one segment.
pub const SEGMENT_ROWS: usize = 1 << 16;

/// The longest that a row stays in memory, if [`Writer::tick`] is called often enough.
pub const FLUSH_INTERVAL: Duration = Duration::from_secs(2);
