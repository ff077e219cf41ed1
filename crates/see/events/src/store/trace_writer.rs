//! The writer of a trace.

use std::fmt;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use parquet::errors::Result as ParquetResult;

use super::file_names::{self, TableFileName};
use super::row_group::kind;
use super::table_kind::TableKind;
use super::{FLUSH_INTERVAL, SEGMENT_ROWS, StoreError, merge_files, table_file};
use crate::TraceEvent;
use crate::tables::{
    AsleepThread, BlockRequest, BriefWait, ClockSample, ConnectionMessage, ExchangeSum, FileCall,
    FileData, FsyncCall, HardwareCount, JournalCommit, JournalHandle, KernelStack, LostEvents,
    MountedFileSystem, OffCpuWait, ProcessProgram, RequestToken, SocketConnection, SummaryCount,
    TableRow, TcpPacket, ThreadInfo, ThreadStart, TraceDescription,
};

/// Number of a table's small files that are merged.
const MERGE_FILES: usize = 32;
/// A file of this length is not merged again.
const FINAL_BYTES: u64 = 64 << 20;

/// Writes a trace into a new directory.
///
/// Rows may come in roughly the order of their times. Rows within a segment are sorted, and the reader puts rows of
/// neighbouring segments in order.
#[derive(Debug)]
pub struct TraceWriter {
    directory: PathBuf,
    tables: Tables,
    last_flush: Instant,
}

impl TraceWriter {
    /// Creates `directory` if needed and writes down what the trace is about (`trace.end_ns` should be 0).
    ///
    /// # Errors
    /// When the directory cannot be made or written to, or has a trace already.
    pub fn create(directory: &Path, trace: TraceDescription) -> Result<Self, StoreError> {
        make(directory).map_err(StoreError::io(directory, "create it"))?;
        is_free(directory)?;
        let mut writer = Self {
            directory: directory.to_path_buf(),
            tables: Tables::default(),
            last_flush: Instant::now(),
        };
        writer.add(trace)?;
        writer.flush()?;
        Ok(writer)
    }

    /// Takes one row of any table. It is in the files when [`SEGMENT_ROWS`] rows of its table have come. If that
    /// takes long, the first [`tick`](Self::tick) after [`FLUSH_INTERVAL`] writes it.
    ///
    /// # Errors
    /// When a segment was full and could not be written; its rows are then lost.
    pub fn add(&mut self, event: impl Into<TraceEvent>) -> Result<(), StoreError> {
        self.tables.add(&self.directory, event.into())
    }

    /// Adds a row of a table with many rows. It saves the copy into an [`TraceEvent`], which has room for any row.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn add_message(&mut self, row: ConnectionMessage) -> Result<(), StoreError> {
        self.tables.message.add(&self.directory, row)
    }

    /// Adds a row of a table with many rows, as [`add_message`](Self::add_message) does.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn add_wait(&mut self, row: OffCpuWait) -> Result<(), StoreError> {
        self.tables.wait.add(&self.directory, row)
    }

    /// Writes out what has been in memory for [`FLUSH_INTERVAL`]. To be called a few times a second.
    ///
    /// # Errors
    /// When a segment cannot be written; its rows are then lost.
    pub fn tick(&mut self) -> Result<(), StoreError> {
        if self.last_flush.elapsed() >= FLUSH_INTERVAL {
            self.flush()?;
        }
        Ok(())
    }

    /// Writes out all rows in memory.
    ///
    /// # Errors
    /// When a segment cannot be written; its rows are then lost.
    pub fn flush(&mut self) -> Result<(), StoreError> {
        self.last_flush = Instant::now();
        self.tables.flush(&self.directory)
    }

    /// Writes out all rows and the trace's final description, and merges each table's small files.
    ///
    /// # Errors
    /// When a segment cannot be written or merged; a trace that could not be merged is complete nevertheless.
    pub fn finish(mut self, trace: TraceDescription) -> Result<(), StoreError> {
        self.add(trace)?;
        self.flush()?;
        self.tables.merge(&self.directory)
    }
}

/// Refuses a directory with the files of a trace.
pub(crate) fn is_free(directory: &Path) -> Result<(), StoreError> {
    let entries = fs::read_dir(directory).map_err(StoreError::io(directory, "list it"))?;
    for entry in entries {
        let entry = entry.map_err(StoreError::io(directory, "list it"))?;
        let path = entry.path();
        if path.extension().is_some_and(|extension| extension == "parquet") {
            return Err(StoreError::Exists { path: directory.to_path_buf() });
        }
    }
    Ok(())
}

/// Makes the directory. A trace of root is about all users' programs, so nobody else may read it.
pub(crate) fn make(directory: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    if rustix::process::geteuid().is_root() {
        builder.mode(0o700);
    }
    if let Some(parent) = directory.parent() {
        fs::create_dir_all(parent)?;
    }
    // One that is there has the mode that its owner gave it.
    builder.recursive(true).create(directory)
}

/// Rows in memory and files so far of one table.
struct Table<T> {
    rows: Vec<T>,
    files: Files,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { rows: Vec::new(), files: Files::default() }
    }
}

impl<T> fmt::Debug for Table<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table")
            .field("rows", &self.rows.len())
            .field("next", &self.files.next)
            .finish_non_exhaustive()
    }
}

impl<T: TableRow> Table<T> {
    fn add(&mut self, directory: &Path, row: T) -> Result<(), StoreError> {
        self.rows.push(row);
        if self.rows.len() >= SEGMENT_ROWS {
            self.flush(directory)?;
        }
        Ok(())
    }

    fn flush(&mut self, directory: &Path) -> Result<(), StoreError> {
        if self.rows.is_empty() {
            return Ok(());
        }
        sort(&mut self.rows);
        let encoded = table_file::encode(&self.rows);
        self.rows.clear();
        self.files.add(kind::<T>(), directory, encoded)
    }

    fn merge(&mut self, directory: &Path) -> Result<(), StoreError> {
        self.files.merge(kind::<T>(), directory)
    }
}

/// Sorts rows by time; rows of equal times keep their order. Sorting their numbers and then moving each row once costs
/// less than moving rows while sorting.
fn sort<T: TableRow>(rows: &mut Vec<T>) {
    const PLACE_BITS: u32 = SEGMENT_ROWS.ilog2();
    if rows.is_sorted_by_key(TableRow::time_ns) {
        return;
    }
    let first_ns = rows.iter().map(TableRow::time_ns).min().unwrap_or(0);
    let last_ns = rows.iter().map(TableRow::time_ns).max().unwrap_or(0);
    if rows.len() > SEGMENT_ROWS || (last_ns - first_ns) >> (u64::BITS - PLACE_BITS) > 0 {
        rows.sort_by_key(TableRow::time_ns);
        return;
    }
    let places = rows.iter().enumerate();
    let mut numbers: Vec<u64> = places
        .map(|(place, row)| (row.time_ns() - first_ns) << PLACE_BITS | place as u64)
        .collect();
    numbers.sort_unstable();
    let place_of = |number: u64| (number & ((1 << PLACE_BITS) - 1)) as usize;
    *rows = numbers.iter().map(|&number| std::mem::take(&mut rows[place_of(number)])).collect();
}

/// A table's files so far.
struct Files {
    /// Number of the next segment.
    next: u32,
    /// Files that may still be merged, in order.
    small: Vec<TableFileName>,
}

impl Default for Files {
    fn default() -> Self {
        Self { next: 1, small: Vec::new() }
    }
}

impl Files {
    /// Writes the next segment of table `kind`.
    fn add(
        &mut self,
        kind: TableKind,
        directory: &Path,
        encoded: ParquetResult<Vec<u8>>,
    ) -> Result<(), StoreError> {
        let bytes = encoded.map_err(|reason| StoreError::Encode {
            path: directory.to_path_buf(),
            table: kind.name,
            reason,
        })?;
        let path = file_names::path(kind.name, directory, self.next, self.next);
        let temporary = file_names::temporary(&path);
        fs::write(&temporary, &bytes).map_err(StoreError::io(&temporary, "write it"))?;
        fs::rename(&temporary, &path).map_err(StoreError::io(&path, "rename it into place"))?;
        self.small.push(TableFileName { first: self.next, last: self.next, path });
        self.next += 1;
        if self.small.len() >= MERGE_FILES {
            self.merge(kind, directory)?;
        }
        Ok(())
    }

    /// Merges the small files of table `kind`.
    fn merge(&mut self, kind: TableKind, directory: &Path) -> Result<(), StoreError> {
        if self.small.len() < 2 {
            return Ok(());
        }
        let (merged, length) = merge_files::merge(kind, directory, &self.small)?;
        self.small.clear();
        if length < FINAL_BYTES {
            self.small.push(merged);
        }
        Ok(())
    }
}

/// Defines [`Tables`], which has a [`Table`] of each kind.
macro_rules! tables {
    ($($field:ident: $table:ident),+ $(,)?) => {
        #[derive(Debug, Default)]
        struct Tables {
            $($field: Table<$table>,)+
        }

        impl Tables {
            fn add(&mut self, directory: &Path, event: TraceEvent) -> Result<(), StoreError> {
                match event {
                    $(TraceEvent::$table(row) => self.$field.add(directory, row),)+
                }
            }

            fn flush(&mut self, directory: &Path) -> Result<(), StoreError> {
                $(self.$field.flush(directory)?;)+
                Ok(())
            }

            fn merge(&mut self, directory: &Path) -> Result<(), StoreError> {
                $(self.$field.merge(directory)?;)+
                Ok(())
            }
        }
    };
}

// `trace` comes last, so that a trace whose end is written down has all of its rows.
tables! {
    sync: FsyncCall, commit: JournalCommit, handle: JournalHandle, wait: OffCpuWait, brief_wait: BriefWait, asleep: AsleepThread, call: FileCall, request: BlockRequest, data: FileData,
    task: ThreadInfo, thread_start: ThreadStart, program: ProcessProgram, counter: HardwareCount, file_system: MountedFileSystem, stack: KernelStack, lost: LostEvents, summary: SummaryCount, connection: SocketConnection,
    message: ConnectionMessage, packet: TcpPacket, token: RequestToken, exchange_sum: ExchangeSum, clock_sample: ClockSample, trace: TraceDescription,
}
