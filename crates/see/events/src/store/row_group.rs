//! Rows to columns and back: one row group.

use std::fmt;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use parquet::column::reader::{ColumnReader, get_column_reader};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::file::writer::SerializedRowGroupWriter;
use parquet::schema::types::{ColumnDescPtr, SchemaDescriptor};

use super::SEGMENT_ROWS;
use super::column_value::{BadCell, ColumnValue, ParquetColumn, PhysicalType};
use super::dictionary_column::DictionaryChunk;
use super::table_kind::{TableKind, is_of_differences};

/// A row of some table.
pub trait TableRow: Clone + Default + Sized + 'static {
    /// The table's name.
    const TABLE: &'static str;
    /// Column by which it is sorted.
    const TIME: &'static str;
    /// Documentation of a row, in lines.
    const DOCUMENTATION: &'static [&'static str];

    /// Returns the time when the row was complete, in nanoseconds: the key by which the table is sorted.
    fn time_ns(&self) -> u64;

    /// Returns the table's columns, in the order of the fields.
    fn columns() -> Vec<ParquetColumn>;

    /// Writes the rows column by column.
    ///
    /// # Errors
    /// When the Parquet library refuses.
    fn encode(rows: &[Self], out: &mut GroupEncoder<'_, '_>) -> Result<(), ParquetError>;

    /// Fills the rows column by column.
    ///
    /// # Errors
    /// When the columns cannot be decoded.
    fn decode(input: &mut GroupDecoder, rows: &mut [Self]) -> Result<(), ParquetError>;
}

/// Rows that are decoded at a time: few enough to stay in the processor's cache.
const BATCH_ROWS: usize = 2048;

/// Returns the table of rows of type `T`.
pub(crate) fn kind<T: TableRow>() -> TableKind {
    TableKind { name: T::TABLE, time: T::TIME, columns: T::columns }
}

/// Takes a group's columns in the order of the fields.
pub struct GroupEncoder<'a, 'b> {
    group: &'a mut SerializedRowGroupWriter<'b, Vec<u8>>,
    schema: &'a SchemaDescriptor,
    next_column: usize,
}

impl fmt::Debug for GroupEncoder<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupEncoder").finish_non_exhaustive()
    }
}

impl<'a, 'b> GroupEncoder<'a, 'b> {
    pub(crate) fn new(
        group: &'a mut SerializedRowGroupWriter<'b, Vec<u8>>,
        schema: &'a SchemaDescriptor,
    ) -> Self {
        Self { group, schema, next_column: 0 }
    }

    /// Writes the next column: a cell of each row.
    ///
    /// # Errors
    /// When the table's schema and its rows disagree.
    pub fn column<R, C: ColumnValue>(
        &mut self,
        rows: &[R],
        cell: impl Fn(&R) -> &C,
    ) -> ParquetResult<()> {
        let descriptor = self.next_descriptor()?;
        if let Some(key) = C::KEY
            && !is_of_differences(descriptor.name())
        {
            let mut chunk = DictionaryChunk::with_capacity(rows.len());
            for row in rows {
                let value = cell(row);
                chunk.add(value, key(value));
            }
            return self.append(chunk, descriptor);
        }
        let mut values = Vec::with_capacity(rows.len());
        for row in rows {
            values.push(cell(row).store());
        }
        self.write::<C::Physical>(&values)
    }

    fn next_descriptor(&mut self) -> ParquetResult<ColumnDescPtr> {
        let descriptor = self.schema.columns().get(self.next_column);
        self.next_column += 1;
        descriptor.cloned().ok_or_else(too_many_columns)
    }

    fn append(&mut self, chunk: DictionaryChunk, descriptor: ColumnDescPtr) -> ParquetResult<()> {
        let (bytes, close) = chunk.finish(descriptor)?;
        self.group.append_column(&bytes, close)
    }

    /// Apart from `column`, so that it is compiled once for a Parquet type and not for each field.
    fn write<P: PhysicalType>(&mut self, values: &[P::T]) -> ParquetResult<()> {
        let mut column = self.group.next_column()?.ok_or_else(too_many_columns)?;
        column.typed::<P>().write_batch(values, None, None)?;
        column.close()
    }
}

fn too_many_columns() -> ParquetError {
    ParquetError::General("more columns than in the schema".to_owned())
}

/// Bytes of a row group, at `offset` in their file.
#[derive(Clone, Debug)]
pub(crate) struct GroupBytes {
    pub(crate) offset: u64,
    pub(crate) bytes: Bytes,
}

impl GroupBytes {
    fn index(&self, start: u64) -> ParquetResult<usize> {
        start
            .checked_sub(self.offset)
            .and_then(|index| usize::try_from(index).ok())
            .filter(|&index| index <= self.bytes.len())
            .ok_or_else(|| ParquetError::EOF(format!("offset {start} is outside its row group")))
    }
}

impl Length for GroupBytes {
    fn len(&self) -> u64 {
        self.offset + self.bytes.len() as u64
    }
}

impl ChunkReader for GroupBytes {
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        Ok(self.bytes.slice(self.index(start)?..).reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        let index = self.index(start)?;
        let end =
            index.checked_add(length).filter(|&end| end <= self.bytes.len()).ok_or_else(|| {
                ParquetError::EOF(format!("{length} bytes at {start} leave their row group"))
            })?;
        Ok(self.bytes.slice(index..end))
    }
}

/// Gives back a group's rows, a batch at a time.
pub struct GroupDecoder {
    /// A reader per column; `None` for omitted columns.
    columns: Vec<Option<ColumnReader>>,
    rows_left: usize,
    next_column: usize,
}

impl fmt::Debug for GroupDecoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupDecoder").field("rows_left", &self.rows_left).finish_non_exhaustive()
    }
}

impl GroupDecoder {
    /// Opens the group that `metadata` describes, of a table with these columns. Columns of some names are left out.
    pub(crate) fn new(
        found: &[ParquetColumn],
        bytes: GroupBytes,
        metadata: &RowGroupMetaData,
        left_out: &[&str],
    ) -> ParquetResult<Self> {
        let rows = usize::try_from(metadata.num_rows())
            .map_err(|_| ParquetError::General("a negative number of rows".to_owned()))?;
        // Repeated values take no room: a few bytes could stand for hours of work.
        if rows > SEGMENT_ROWS {
            return Err(ParquetError::General(format!(
                "{rows} rows in a row group, and luc writes at most {SEGMENT_ROWS}"
            )));
        }
        check_columns(metadata, found)?;
        let bytes = Arc::new(bytes);
        let columns = metadata
            .columns()
            .iter()
            .map(|column| {
                if left_out.contains(&column.column_descr().name()) {
                    return Ok(None);
                }
                check_range(column, &bytes)?;
                let pages = SerializedPageReader::new(Arc::clone(&bytes), column, rows, None)?;
                let reader = get_column_reader(column.column_descr_ptr(), Box::new(pages));
                Ok(Some(reader))
            })
            .collect::<ParquetResult<_>>()?;
        Ok(Self { columns, rows_left: rows, next_column: 0 })
    }

    /// Replaces `rows` by the next ones, in the order of the file; by none at the group's end. What they were before
    /// shows in columns that are left out: these must have their default values.
    ///
    /// # Errors
    /// When the columns cannot be decoded.
    pub(crate) fn next_batch<T: TableRow>(&mut self, rows: &mut Vec<T>) -> ParquetResult<()> {
        let count = self.rows_left.min(BATCH_ROWS);
        rows.resize(count, T::default());
        self.next_column = 0;
        T::decode(self, rows)?;
        self.rows_left -= count;
        Ok(())
    }

    /// Reads the next column: a cell into each row. A column that is left out keeps its default.
    ///
    /// # Errors
    /// When the column cannot be decoded, is too short, or has a value without a meaning.
    pub fn column<T, C: ColumnValue>(
        &mut self,
        rows: &mut [T],
        mut set: impl FnMut(&mut T, C),
    ) -> ParquetResult<()> {
        let Some(values) = self.read::<C::Physical>(rows.len())? else {
            return Ok(());
        };
        let mut known = C::Known::default();
        for (row, value) in rows.iter_mut().zip(&values) {
            match C::load(value, &mut known) {
                Ok(cell) => set(row, cell),
                Err(BadCell) => return Err(self.without_meaning()),
            }
        }
        Ok(())
    }

    /// Reads the next `count` values of the next column; `None` if it is left out. It is separate from `column`, so
    /// that it is compiled once for a Parquet type and not for each field.
    fn read<P: PhysicalType>(&mut self, count: usize) -> ParquetResult<Option<Vec<P::T>>> {
        let index = self.next_column;
        self.next_column += 1;
        match self.columns.get_mut(index) {
            Some(Some(column)) => read::<P>(column, index, count).map(Some),
            _ => Ok(None),
        }
    }

    /// Returns the error for a value without meaning in the last read column.
    fn without_meaning(&self) -> ParquetError {
        let index = self.next_column - 1;
        ParquetError::General(format!("column {index} has a value without a meaning"))
    }
}

/// Reads the next `count` values of the column with this index.
fn read<P: PhysicalType>(
    column: &mut ColumnReader,
    index: usize,
    count: usize,
) -> ParquetResult<Vec<P::T>> {
    let reader = P::reader(column)
        .ok_or_else(|| ParquetError::General("a column of another type".to_owned()))?;
    let mut values = Vec::with_capacity(count);
    while values.len() < count {
        let (read, _, _) = reader.read_records(count - values.len(), None, None, &mut values)?;
        if read == 0 {
            return Err(ParquetError::EOF(format!("column {index} is too short")));
        }
    }
    Ok(values)
}

fn check_columns(metadata: &RowGroupMetaData, wanted: &[ParquetColumn]) -> ParquetResult<()> {
    let same = metadata.num_columns() == wanted.len()
        && metadata.columns().iter().zip(wanted).all(|(found, wanted)| {
            let descriptor = found.column_descr();
            descriptor.name() == wanted.name
                && descriptor.physical_type() == wanted.physical_type
                && descriptor.max_def_level() == 0
                && descriptor.max_rep_level() == 0
        });
    if same {
        Ok(())
    } else {
        Err(ParquetError::General("columns differ from the schema".to_owned()))
    }
}

/// Parquet's own check of these numbers is an assertion.
fn check_range(column: &ColumnChunkMetaData, bytes: &GroupBytes) -> ParquetResult<()> {
    let start = column.dictionary_page_offset().unwrap_or_else(|| column.data_page_offset());
    let inside = u64::try_from(start).ok().zip(u64::try_from(column.compressed_size()).ok());
    match inside.and_then(|(start, length)| start.checked_add(length).map(|end| (start, end))) {
        Some((start, end)) if start >= bytes.offset && end <= bytes.len() => Ok(()),
        _ => Err(ParquetError::General("a column is outside its row group".to_owned())),
    }
}
