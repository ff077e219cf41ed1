//! All tables of a trace as one stream in the order of time.

use luc_events::store::{Reader, Rows, StoreError};
use luc_events::tables::{
    BriefWait, Call, Commit, Data, FileSystem, Handle, Lost, Request, Row, Summary, Sync, Task,
    Wait,
};

use crate::analysis::Analysis;

/// Rows between two words about the progress: some milliseconds.
const PROGRESS_ROWS: u64 = 1 << 14;

/// A table's rows, at the next to be fed.
struct Source<T> {
    rows: Rows<T>,
    /// That row's time; `u64::MAX` at the end.
    at_ns: u64,
}

impl<T: Row> Source<T> {
    fn open(reader: &Reader, left_out: &'static [&'static str]) -> Result<Self, StoreError> {
        let mut source = Self {
            rows: reader.rows_without(left_out)?,
            at_ns: 0,
        };
        source.advance()?;
        Ok(source)
    }

    fn advance(&mut self) -> Result<(), StoreError> {
        self.rows.advance()?;
        self.at_ns = self.rows.current().map_or(u64::MAX, Row::time_ns);
        Ok(())
    }
}

macro_rules! sources {
    ($($field:ident: $table:ident without $left_out:expr),+ $(,)?) => {
        /// All tables that the analysis takes in.
        struct Sources {
            $($field: Source<$table>,)+
        }

        impl Sources {
            fn open(reader: &Reader) -> Result<Self, StoreError> {
                Ok(Self { $($field: Source::open(reader, $left_out)?,)+ })
            }

            /// Feeds the earliest row; of equal ones that of the first table. False at the end.
            fn feed(&mut self, analysis: &mut Analysis<'_>) -> Result<bool, StoreError> {
                let earliest_ns = u64::MAX $(.min(self.$field.at_ns))+;
                $(
                    if self.$field.at_ns == earliest_ns
                        && let Some(row) = self.$field.rows.current()
                    {
                        analysis.$field(row);
                        self.$field.advance()?;
                        return Ok(true);
                    }
                )+
                Ok(false)
            }

            /// How many rows there are to read.
            fn rows_in_all(&self) -> u64 {
                0 $(+ self.$field.rows.rows_in_all())+
            }
        }

        /// The columns of each table, and those of them that are left out.
        #[cfg(test)]
        fn columns() -> Vec<(Vec<luc_events::store::Column>, &'static [&'static str])> {
            vec![$(($table::columns(), $left_out)),+]
        }
    };
}

// What explains other rows comes before them. Columns are left out that neither the analysis nor an observer looks at.
sources! {
    wait: Wait without &["stack", "dev", "transaction"],
    brief_wait: BriefWait without &["count"],
    file_system: FileSystem without &[],
    task: Task without &[],
    handle: Handle without &["thread", "kind", "line", "requested"],
    data: Data without &["thread"],
    commit: Commit without &[],
    request: Request without &["sector", "flags", "issuer", "issuer_process"],
    call: Call without &[],
    sync: Sync without &["file_system_enter_ns", "file_system_exit_ns", "cpu_enter"],
    lost: Lost without &[],
    summary: Summary without &[],
}

/// Feeds the whole trace.
pub(crate) fn feed(reader: &Reader, analysis: &mut Analysis<'_>) -> Result<(), StoreError> {
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
