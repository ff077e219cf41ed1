//! Merges all tables of a trace into one stream in the order of time.

use luc_events::store::{StoreError, TableRows, TraceReader};
use luc_events::tables::{
    AsleepThread, BlockRequest, BriefWait, ExchangeSum, FileCall, FileData, FsyncCall,
    JournalCommit, JournalHandle, LostEvents, MountedFileSystem, OffCpuWait, SummaryCount,
    TableRow, ThreadInfo,
};

use crate::analysis::Analysis;

/// Number of rows between two calls of [`AnalysisObserver::progress`](crate::AnalysisObserver::progress): some
/// milliseconds.
const PROGRESS_ROWS: u64 = 1 << 14;

/// Number of a key's bits that identify the table. The others are the time.
const TABLE_BITS: u32 = 4;
/// Key of a table that is at its end.
const END_KEY: u64 = u64::MAX;

/// Returns the rank of a table's next row: its time, then the table's index.
fn key<T: TableRow>(rows: &TableRows<T>, table: usize) -> u64 {
    // Later times are implausible, so their order does not matter.
    const LAST_NS: u64 = (u64::MAX >> TABLE_BITS) - 1;
    rows.current().map_or(END_KEY, |row| row.time_ns().min(LAST_NS) << TABLE_BITS | table as u64)
}

macro_rules! sources {
    ($($field:ident: $table:ident without $left_out:expr),+ $(,)?) => {
        #[expect(non_camel_case_types, reason = "they are the fields' names")]
        enum TableIndex {
            $($field),+
        }

        const TABLES: usize = [$(TableIndex::$field as usize),+].len();
        const _: () = assert!(TABLES <= 1 << TABLE_BITS);

        /// Tables that the analysis takes in, each at its next row.
        struct Sources {
            /// Key of each table's next row.
            keys: [u64; TABLES],
            $($field: TableRows<$table>,)+
        }

        impl Sources {
            fn open(reader: &TraceReader) -> Result<Self, StoreError> {
                $(
                    let mut $field = reader.rows_without::<$table>($left_out)?;
                    $field.advance()?;
                )+
                Ok(Self {
                    keys: [$(key(&$field, TableIndex::$field as usize)),+],
                    $($field,)+
                })
            }

            /// Feeds the earliest row; of equal ones the first table's. Returns false at the end.
            fn feed(&mut self, analysis: &mut Analysis<'_>) -> Result<bool, StoreError> {
                let earliest = self.keys.iter().copied().fold(END_KEY, u64::min);
                let place = (earliest & ((1 << TABLE_BITS) - 1)) as usize;
                $(
                    if place == TableIndex::$field as usize
                        && let Some(row) = self.$field.current()
                    {
                        analysis.take(row, Analysis::$field);
                        self.$field.advance()?;
                        self.keys[place] = key(&self.$field, place);
                        return Ok(true);
                    }
                )+
                Ok(false)
            }

            /// Returns the number of rows to read.
            fn rows_in_all(&self) -> u64 {
                0 $(+ self.$field.rows_in_all())+
            }
        }

        /// Returns all columns of each table, and the names of those that the merge does not read.
        #[cfg(test)]
        fn columns() -> Vec<(Vec<luc_events::store::ParquetColumn>, &'static [&'static str])> {
            vec![$(($table::columns(), $left_out)),+]
        }
    };
}

// Tables that explain others come before them. Columns that neither the analysis nor an observer uses are left out.
sources! {
    wait: OffCpuWait without &["stack", "transaction"],
    asleep: AsleepThread without &["call", "argument", "connection"],
    brief_wait: BriefWait without &["count"],
    file_system: MountedFileSystem without &[],
    task: ThreadInfo without &[],
    handle: JournalHandle without &["thread", "kind", "line", "requested"],
    data: FileData without &["thread"],
    commit: JournalCommit without &[],
    request: BlockRequest without &["flags"],
    call: FileCall without &[],
    sync: FsyncCall without &["file_system_enter_ns", "file_system_exit_ns", "cpu_enter"],
    lost: LostEvents without &[],
    summary: SummaryCount without &[],
    exchange_sum: ExchangeSum without &[],
}

/// Feeds the whole trace.
pub(crate) fn feed(reader: &TraceReader, analysis: &mut Analysis<'_>) -> Result<(), StoreError> {
    let mut sources = Sources::open(reader)?;
    let in_all = sources.rows_in_all();
    for read in 1_u64.. {
        if !sources.feed(analysis)?
            || (read.is_multiple_of(PROGRESS_ROWS) && analysis.progress(in_all).is_break())
        {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_columns_that_exist_are_left_out() {
        for (columns, left_out) in columns() {
            for name in left_out {
                assert!(columns.iter().any(|column| column.name == *name), "{name}");
            }
        }
    }
}
