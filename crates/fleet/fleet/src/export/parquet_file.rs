//! One derived table in a Parquet file.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::Arc;

use luc_host::interrupt_flag;
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::Result as ParquetResult;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;
use serde::Serialize;

use super::derived_table::{DerivedCell, DerivedColumn, DerivedTable, HostNames};
use super::error::ExportError;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExportedTable {
    pub name: &'static str,
    pub rows: u64,
    pub bytes: u64,
}

/// Rows of a row group: several threads or executors share the work.
const GROUP_ROWS: usize = 1 << 16;

/// Writes the rows to `directory/NAME.parquet`, unless Ctrl-C has come.
pub(super) fn write_table<R>(
    table: &DerivedTable<R>,
    rows: &[R],
    hosts: &HostNames,
    directory: &Path,
) -> Result<ExportedTable, ExportError> {
    if interrupt_flag::interrupted() {
        return Err(ExportError::Interrupted);
    }
    let path = directory.join(format!("{}.parquet", table.name));
    let written = || -> io::Result<u64> {
        let file = File::create_new(&path)?;
        write_rows(table, rows, hosts, file).map_err(io::Error::other)?;
        Ok(fs::metadata(&path)?.len())
    };
    let bytes = written().map_err(|reason| ExportError::Output { path: path.clone(), reason })?;
    Ok(ExportedTable { name: table.name, rows: rows.len() as u64, bytes })
}

fn write_rows<R>(
    table: &DerivedTable<R>,
    rows: &[R],
    hosts: &HostNames,
    file: File,
) -> ParquetResult<()> {
    let columns = (table.columns)();
    let fields = columns.iter().map(field).collect::<ParquetResult<_>>()?;
    let schema = Type::group_type_builder(table.name).with_fields(fields).build()?;
    let properties = WriterProperties::builder()
        .set_created_by(concat!("luc ", env!("CARGO_PKG_VERSION")).to_owned());
    let mut writer =
        SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties.build()))?;
    for group in rows.chunks(GROUP_ROWS) {
        let mut out = writer.next_row_group()?;
        for column in &columns {
            let Some(cells) = out.next_column()? else { break };
            write_column(column, group, hosts, cells)?;
        }
        out.close()?;
    }
    writer.close()?;
    Ok(())
}

fn field<R>(column: &DerivedColumn<R>) -> ParquetResult<Arc<Type>> {
    let (physical, logical) = match column.cell {
        DerivedCell::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        DerivedCell::U32(_) | DerivedCell::I64(_) => (Physical::INT64, None),
        DerivedCell::F64(_) => (Physical::DOUBLE, None),
        DerivedCell::Flag(_) => (Physical::BOOLEAN, None),
    };
    let repetition = if column.nullable { Repetition::OPTIONAL } else { Repetition::REQUIRED };
    Type::primitive_type_builder(column.name, physical)
        .with_repetition(repetition)
        .with_logical_type(logical)
        .build()
        .map(Arc::new)
}

fn write_column<R>(
    column: &DerivedColumn<R>,
    rows: &[R],
    hosts: &HostNames,
    mut out: SerializedColumnWriter<'_>,
) -> ParquetResult<()> {
    let is_nullable = column.nullable;
    match (&column.cell, out.untyped()) {
        (DerivedCell::Text(cell), ColumnWriter::ByteArrayColumnWriter(writer)) => {
            let cells = rows.iter().map(|row| cell(row, hosts).map(ByteArray::from));
            let (levels, values) = split(cells, is_nullable);
            writer.write_batch(&values, levels.as_deref(), None)?;
        }
        (DerivedCell::U32(cell), ColumnWriter::Int64ColumnWriter(writer)) => {
            let (levels, values) =
                split(rows.iter().map(|row| cell(row).map(i64::from)), is_nullable);
            writer.write_batch(&values, levels.as_deref(), None)?;
        }
        (DerivedCell::I64(cell), ColumnWriter::Int64ColumnWriter(writer)) => {
            let (levels, values) = split(rows.iter().map(cell), is_nullable);
            writer.write_batch(&values, levels.as_deref(), None)?;
        }
        (DerivedCell::F64(cell), ColumnWriter::DoubleColumnWriter(writer)) => {
            let (levels, values) = split(rows.iter().map(cell), is_nullable);
            writer.write_batch(&values, levels.as_deref(), None)?;
        }
        (DerivedCell::Flag(cell), ColumnWriter::BoolColumnWriter(writer)) => {
            let (levels, values) = split(rows.iter().map(cell), is_nullable);
            writer.write_batch(&values, levels.as_deref(), None)?;
        }
        _ => unreachable!("`field` has given the column its type"),
    }
    out.close()
}

/// Definition levels of a nullable column, and the values that are not null.
///
/// A column that may not be null has a value in each row: a missing one is the type's default.
fn split<T: Default>(
    cells: impl Iterator<Item = Option<T>>,
    is_nullable: bool,
) -> (Option<Vec<i16>>, Vec<T>) {
    if !is_nullable {
        return (None, cells.map(Option::unwrap_or_default).collect());
    }
    let (mut levels, mut values) = (Vec::new(), Vec::new());
    for cell in cells {
        levels.push(i16::from(cell.is_some()));
        values.extend(cell);
    }
    (Some(levels), values)
}
