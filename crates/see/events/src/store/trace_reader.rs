//! Reading a trace: a table's rows in the order of their times.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Once;

use parquet::errors::{ParquetError, Result as ParquetResult};

use super::row_group::{GroupDecoder, kind};
use super::table_file::{FileRowGroup, OpenTableFile};
use super::table_kind::TableKind;
use super::{StoreError, file_names};
use crate::tables::{TableRow, TraceDescription};

/// A trace on disk.
#[derive(Debug)]
pub struct TraceReader {
    /// Several, where it is of several traces that follow each other.
    directories: Vec<PathBuf>,
    trace: TraceDescription,
}

impl TraceReader {
    /// Opens the trace in `directory`, which may still be being written: what is there when a table is
    /// opened is read.
    ///
    /// # Errors
    /// When there is no trace, or its description is damaged or of another version.
    pub fn open(directory: &Path) -> Result<Self, StoreError> {
        let none = |reason| StoreError::NoTrace { path: directory.to_path_buf(), reason };
        if !directory.is_dir() {
            return Err(none("it is not a directory"));
        }
        let directories = vec![directory.to_path_buf()];
        let last = TableRows::<TraceDescription>::open(&directories, &[])?.last();
        let trace = last.ok_or_else(|| none("it has no file trace-*.parquet"))??;
        Ok(Self { directories, trace })
    }

    /// Opens consecutive traces as one, which `trace` describes.
    pub(crate) fn of_parts(directories: Vec<PathBuf>, trace: TraceDescription) -> Self {
        Self { directories, trace }
    }

    /// Returns whether a part of it has been removed, as the recorder of a ring does with its oldest segments.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.directories.iter().any(|directory| !directory.exists())
    }

    /// Returns the description of the trace.
    pub fn trace(&self) -> &TraceDescription {
        &self.trace
    }

    /// Returns the rows of a table in the order of their times; a table without files has none.
    ///
    /// # Errors
    /// When a file cannot be opened, its footer is damaged, or one is missing.
    pub fn rows<T: TableRow>(&self) -> Result<TableRows<T>, StoreError> {
        TableRows::open(&self.directories, &[])
    }

    /// Returns the rows of a table without some columns, which costs less: their fields have default values.
    ///
    /// # Errors
    /// When a file cannot be opened, its footer is damaged, or one is missing.
    pub fn rows_without<T: TableRow>(
        &self,
        columns: &'static [&'static str],
    ) -> Result<TableRows<T>, StoreError> {
        TableRows::open(&self.directories, columns)
    }

    /// Returns the files of a table after checking all checksums, for engines that read Parquet themselves. Rows of a
    /// file are in the order of their times; the files' times may overlap.
    ///
    /// # Errors
    /// When a file cannot be read, is damaged, or is missing.
    pub fn files<T: TableRow>(&self) -> Result<Vec<TableFile>, StoreError> {
        let of_directories = self.directories.iter();
        let files: Result<Vec<Vec<TableFile>>, StoreError> =
            of_directories.map(|directory| files(kind::<T>(), directory)).collect();
        Ok(files?.concat())
    }
}

/// A file of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableFile {
    /// Path of the file.
    pub path: PathBuf,
    /// Length of the file.
    pub bytes: u64,
    /// Number of rows in the file.
    pub rows: u64,
    /// The schema version that it was written in.
    pub version: u32,
}

fn files(kind: TableKind, directory: &Path) -> Result<Vec<TableFile>, StoreError> {
    let parts = file_names::parts(kind.name, directory)?;
    let file = |part: file_names::TableFileName| {
        let mut segment = OpenTableFile::open(kind, &part.path)?;
        for group in 0..segment.groups.len() {
            segment.group_bytes(group)?;
        }
        Ok(TableFile {
            bytes: segment.length()?,
            rows: segment.groups.iter().map(|group| group.rows).sum(),
            version: segment.version,
            path: part.path,
        })
    };
    parts.into_iter().map(file).collect()
}

/// Rows of a table in the order of their times. They are given one by one, or lent: [`TableRows::advance`] goes to the
/// next row and [`TableRows::current`] is that row. One row group is read at a time, or as many as overlap. The rows
/// end after an error.
pub struct TableRows<T> {
    waiting: Waiting,
    /// Groups that are being read.
    active: Vec<Cursor<T>>,
    /// Group in `active` whose next row is the current one; `None` before the first row and after the last.
    current: Option<usize>,
    /// Batch of a finished group: the next group reads into its memory.
    spare: Vec<T>,
    rows_in_all: u64,
}

/// A group that is being read. Its next rows are those of `batch` from `next` on.
struct Cursor<T> {
    source: Source,
    batch: Vec<T>,
    next: usize,
}

impl<T> fmt::Debug for TableRows<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows")
            .field("groups_waiting", &self.waiting.groups.len())
            .field("groups_active", &self.active.len())
            .finish_non_exhaustive()
    }
}

impl<T: TableRow> TableRows<T> {
    fn open(
        directories: &[PathBuf],
        left_out: &'static [&'static str],
    ) -> Result<Self, StoreError> {
        let waiting = Waiting::open(kind::<T>(), directories, left_out)?;
        Ok(Self {
            rows_in_all: waiting.rows(),
            waiting,
            active: Vec::new(),
            current: None,
            spare: Vec::new(),
        })
    }

    /// Returns the number of rows in the table.
    pub fn rows_in_all(&self) -> u64 {
        self.rows_in_all
    }

    /// Begins the next group.
    fn activate(&mut self) -> Result<(), StoreError> {
        let Some(source) = self.waiting.begin()? else {
            return Ok(());
        };
        let mut cursor = Cursor { source, batch: std::mem::take(&mut self.spare), next: 0 };
        if cursor.fill()? {
            self.active.push(cursor);
        }
        Ok(())
    }

    /// Returns the current row; `None` before the first [`TableRows::advance`], and at the end.
    pub fn current(&self) -> Option<&T> {
        self.active[self.current?].head()
    }

    /// Goes to the next row.
    ///
    /// # Errors
    /// When a row group cannot be read or is damaged.
    #[inline]
    pub fn advance(&mut self) -> Result<(), StoreError> {
        if self.advanced_in_batch() {
            return Ok(());
        }
        self.advance_anywhere()
    }

    /// Apart, so that the short way stays short where it is inlined.
    #[inline(never)]
    fn advance_anywhere(&mut self) -> Result<(), StoreError> {
        let next = self.try_advance();
        if next.is_err() {
            self.waiting.groups.clear();
            self.active.clear();
        }
        self.current = *next.as_ref().unwrap_or(&None);
        next.map(|_| ())
    }

    /// Goes to the next row where that is the next of its batch for sure: one group is being read and no other begins
    /// before.
    #[inline]
    fn advanced_in_batch(&mut self) -> bool {
        let ([cursor], Some(0)) = (&mut self.active[..], self.current) else {
            return false;
        };
        let next = cursor.next + 1;
        let is_next = cursor.batch.get(next).is_some_and(|row| {
            let other_ns = self.waiting.next_ns();
            other_ns.is_none_or(|first_ns| first_ns >= row.time_ns())
        });
        if is_next {
            cursor.next = next;
        }
        is_next
    }

    /// Leaves the current row, and finds the group with the next.
    fn try_advance(&mut self) -> Result<Option<usize>, StoreError> {
        if let Some(index) = self.current {
            let cursor = &mut self.active[index];
            cursor.next += 1;
            if cursor.next == cursor.batch.len() && !cursor.fill()? {
                self.spare = self.active.remove(index).batch;
            }
        }
        loop {
            match (self.earliest(), self.waiting.next_ns()) {
                (None, None) => return Ok(None),
                (Some((row_ns, _)), Some(group_ns)) if group_ns < row_ns => self.activate()?,
                (None, Some(_)) => self.activate()?,
                (Some((_, index)), _) => return Ok(Some(index)),
            }
        }
    }

    /// Returns the time of the earliest of the groups' next rows, and the index of its group; the first one among equal
    /// times.
    fn earliest(&self) -> Option<(u64, usize)> {
        let mut earliest: Option<(u64, usize)> = None;
        for (index, cursor) in self.active.iter().enumerate() {
            let Some(row) = cursor.head() else {
                continue;
            };
            let time_ns = row.time_ns();
            if earliest.is_none_or(|(earliest_ns, _)| time_ns < earliest_ns) {
                earliest = Some((time_ns, index));
            }
        }
        earliest
    }
}

impl<T: TableRow> Cursor<T> {
    fn head(&self) -> Option<&T> {
        self.batch.get(self.next)
    }

    /// Reads the next batch; false at the group's end.
    fn fill(&mut self) -> Result<bool, StoreError> {
        let batch = &mut self.batch;
        self.source.decode(&mut |decoder| decoder.next_batch(batch))?;
        self.next = 0;
        Ok(!self.batch.is_empty())
    }
}

impl<T: TableRow> Iterator for TableRows<T> {
    type Item = Result<T, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.advance() {
            Ok(()) => self.current().cloned().map(Ok),
            Err(error) => Some(Err(error)),
        }
    }
}

/// Row groups of a table that are not yet begun.
struct Waiting {
    kind: TableKind,
    /// Sorted by their first time, last first.
    groups: Vec<(Rc<RefCell<OpenTableFile>>, usize, FileRowGroup)>,
    left_out: &'static [&'static str],
}

impl Waiting {
    fn open(
        kind: TableKind,
        directories: &[PathBuf],
        left_out: &'static [&'static str],
    ) -> Result<Self, StoreError> {
        let mut waiting = Vec::new();
        let mut parts = Vec::new();
        for directory in directories {
            parts.extend(file_names::parts(kind.name, directory)?);
        }
        for part in parts {
            let segment = OpenTableFile::open(kind, &part.path)?;
            let groups = segment.groups.clone();
            let segment = Rc::new(RefCell::new(segment));
            for (index, group) in groups.into_iter().enumerate() {
                waiting.push((Rc::clone(&segment), index, group));
            }
        }
        // Of equal times the earlier written comes first.
        waiting.sort_by_key(|(_, _, group)| group.first_ns);
        waiting.reverse();
        Ok(Self { kind, groups: waiting, left_out })
    }

    /// Returns the number of rows in the groups.
    fn rows(&self) -> u64 {
        self.groups.iter().map(|(_, _, group)| group.rows).sum()
    }

    /// Returns the time of the next group's first row; `None` if no group is left.
    #[inline]
    fn next_ns(&self) -> Option<u64> {
        self.groups.last().map(|(_, _, group)| group.first_ns)
    }

    /// Begins the next group; `None` if no group is left.
    fn begin(&mut self) -> Result<Option<Source>, StoreError> {
        let Some((segment, index, group)) = self.groups.pop() else {
            return Ok(None);
        };
        let mut segment = segment.borrow_mut();
        let bytes = segment.group_bytes(index)?;
        let metadata = segment.metadata.row_group(index);
        let columns = self.kind.columns_in(segment.version);
        let decoder = contained(|| GroupDecoder::new(&columns, bytes, metadata, self.left_out))
            .map_err(|reason| StoreError::damaged(&segment.path, group.offset, reason))?;
        Ok(Some(Source { path: segment.path.clone(), offset: group.offset, decoder }))
    }
}

/// A group's columns and their place in the file.
struct Source {
    path: PathBuf,
    offset: u64,
    decoder: GroupDecoder,
}

impl Source {
    /// Decodes rows of any type. An error has the place.
    fn decode(
        &mut self,
        rows: &mut dyn FnMut(&mut GroupDecoder) -> ParquetResult<()>,
    ) -> Result<(), StoreError> {
        contained(|| rows(&mut self.decoder))
            .map_err(|reason| StoreError::damaged(&self.path, self.offset, reason))
    }
}

/// Silences contained panics: the error reports them.
static QUIET_HOOK: Once = Once::new();

thread_local! {
    static IS_CONTAINED: Cell<bool> = const { Cell::new(false) };
}

/// Decodes, and makes an error of a panic: on a file that was forged, with checksums that are right, the Parquet
/// library's own assertions can fail. What was being decoded is not used any more then.
fn contained<R>(decode: impl FnOnce() -> ParquetResult<R>) -> ParquetResult<R> {
    QUIET_HOOK.call_once(|| {
        let told = panic::take_hook();
        panic::set_hook(Box::new(move |panicked| {
            if !IS_CONTAINED.get() {
                told(panicked);
            }
        }));
    });
    let was = IS_CONTAINED.replace(true);
    let outcome = panic::catch_unwind(AssertUnwindSafe(decode));
    IS_CONTAINED.set(was);
    outcome.unwrap_or_else(|_| {
        Err(ParquetError::General("the Parquet library cannot make sense of it".to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use super::super::{SEGMENT_ROWS, table_file};
    use super::*;
    use crate::tables::FsyncCall;

    #[test]
    fn more_rows_than_luc_writes_are_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        for (rows, is_read) in [(SEGMENT_ROWS, true), (SEGMENT_ROWS + 1, false)] {
            let encoded = table_file::encode(&vec![FsyncCall::default(); rows]).expect("encoded");
            let path = file_names::path(FsyncCall::TABLE, directory.path(), 1, 1);
            std::fs::write(path, encoded).expect("written");
            let found = TableRows::<FsyncCall>::open(&[directory.path().to_owned()], &[]);
            let read: Result<Vec<FsyncCall>, StoreError> = found.and_then(Iterator::collect);
            match read {
                Ok(read) => assert!(is_read && read.len() == rows),
                Err(error) => {
                    assert!(!is_read && error.to_string().contains("65537 rows"), "{error}")
                }
            }
        }
    }

    #[test]
    fn contained_panics_are_silent_and_others_are_not() {
        let error = contained(|| -> ParquetResult<()> { panic!("inside") }).expect_err("contained");
        assert!(error.to_string().contains("cannot make sense"), "{error}");
        assert!(!IS_CONTAINED.get());
    }
}
