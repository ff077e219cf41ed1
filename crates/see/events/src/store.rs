//! The trace store: a directory with Parquet files, some per table.
//!
//! # Layout
//!
//! `<table>-<first>-<last>.parquet` holds the table's segments `first` to `last`, numbered from 1 without gaps. A
//! segment is a row group of at most [`SEGMENT_ROWS`] rows, sorted by the row's time. Any Parquet tool reads
//! `<directory>/<table>-*.parquet` as one table.
//!
//! A segment is written to a separate file under a hidden temporary name, at least every [`FLUSH_INTERVAL`]. When
//! complete, it is renamed into place. So after a `kill -9` all segments up to the last are there, and none is
//! incomplete. From time to time, and at the end, small files of a table are merged into one, again by renaming;
//! their row groups are copied unchanged. A recorder that is killed between the rename and the removal of the parts
//! leaves both. Then the merged file counts. Nothing is synced to disk: a recorder that calls fsync would disturb
//! what it measures.
//!
//! # Integrity
//!
//! Behind Parquet's magic number each file has 20 bytes that Parquet tools skip. They are `LUC1`, the footer's offset
//! (u64) and two CRC-32, all little-endian. The first is of all bytes from the footer to the end of the file. The
//! second is of the 16 bytes before it. The footer's key-value metadata has `luc.schema` (the version of the
//! vocabulary), `luc.table` and `luc.segments`: for each row group its offset, length, CRC-32, rows and first and
//! last time. So the reader checks everything before it decodes it. Damage is an error that names the file and the
//! offset, never a wrong figure.

mod column_value;
mod dictionary_column;
mod error;
mod file_names;
mod merge_files;
mod row_group;
mod table_file;
mod table_kind;
mod trace_reader;
mod trace_writer;

use std::time::Duration;

pub use column_value::{BadCell, ColumnKind, ColumnValue, KnownNames, ParquetColumn, PhysicalType};
pub use error::StoreError;
pub(crate) use file_names::is_of_table;
pub use row_group::{GroupDecoder, GroupEncoder, TableRow};
pub use trace_reader::{TableFile, TableRows, TraceReader};
pub use trace_writer::TraceWriter;
pub(crate) use trace_writer::{is_free, make};

/// Version of the vocabulary: the tables, their columns and their meaning. It grows with each change. Version 2 added
/// the tables `connection`, `message`, `packet` and `clock_sample`. Version 3 added `asleep`, version 4 `thread_start`
/// and `program`, version 5 `wait`'s column `processor`, version 6 `exchange_sum`. Version 7 added `token`,
/// `connection`'s column `peer`, and its families other than TCP. Version 8 added `counter`.
pub const SCHEMA_VERSION: u32 = 8;

/// Oldest readable version. Later versions only added tables, and columns ([`has_column_since`]) with a default value
/// that means "unknown". So older traces mean the same to this version. Any other change must raise this, too.
pub const OLDEST_VERSION: u32 = 1;

/// Columns that were added at the end of a table: the version, the table and the column.
const ADDED: [(u32, &str, &str); 2] = [(5, "wait", "processor"), (7, "connection", "peer")];

/// Returns the first schema version whose files of a table have a column.
#[must_use]
pub fn has_column_since(table: &str, column: &str) -> u32 {
    let added = ADDED.iter().find(|added| (added.1, added.2) == (table, column));
    added.map_or(OLDEST_VERSION, |added| added.0)
}

/// Maximum number of rows in a segment.
pub const SEGMENT_ROWS: usize = 1 << 16;

/// Maximum time that a row stays in memory, if [`TraceWriter::tick`] is called often enough.
pub const FLUSH_INTERVAL: Duration = Duration::from_secs(2);
