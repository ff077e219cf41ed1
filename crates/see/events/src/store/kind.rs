//! A table apart from the type of its rows, and what Parquet is told of it.

use std::sync::Arc;

use parquet::basic::{Compression, Encoding, Repetition};
use parquet::errors::Result as ParquetResult;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::{ColumnPath, Type, TypePtr};

use super::cell::Column;
use super::has_column_since;

/// Columns of offsets in streams: a dictionary of their many values would be as long as the column.
const OFFSETS: [&str; 2] = ["first_byte", "ack"];

/// Whether a column stands there as the differences of its values.
pub(crate) fn is_of_differences(column: &str) -> bool {
    column.ends_with("_ns") || OFFSETS.contains(&column)
}

/// A table, whatever the type of its rows. Code that needs no more than this is compiled once and not for each table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableKind {
    /// The table's name.
    pub(crate) name: &'static str,
    /// The column by which it is sorted.
    pub(crate) time: &'static str,
    /// Its columns, in the order of the fields.
    pub(crate) columns: fn() -> Vec<Column>,
}

impl TableKind {
    /// The columns that the table has in files of a schema version.
    pub(crate) fn columns_in(&self, version: u32) -> Vec<Column> {
        let mut columns = (self.columns)();
        columns.retain(|column| version >= has_column_since(self.name, column.name));
        columns
    }

    /// The Parquet schema of the table.
    pub(crate) fn schema(&self) -> ParquetResult<TypePtr> {
        let fields = (self.columns)()
            .into_iter()
            .map(|column| {
                Type::primitive_type_builder(column.name, column.physical_type)
                    .with_repetition(Repetition::REQUIRED)
                    .with_logical_type(column.logical_type)
                    .build()
                    .map(Arc::new)
            })
            .collect::<ParquetResult<_>>()?;
        Ok(Arc::new(Type::group_type_builder(self.name).with_fields(fields).build()?))
    }

    /// How the table is encoded: times and offsets as differences, which shrink to a few bits; the rest, which repeats,
    /// by dictionary. No general compression on top: it would cost the recorder more than it saves.
    pub(crate) fn properties(&self) -> WriterProperties {
        let mut builder = WriterProperties::builder()
            .set_created_by(concat!("luc ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_compression(Compression::UNCOMPRESSED)
            .set_statistics_enabled(EnabledStatistics::None)
            .set_offset_index_disabled(true);
        for column in (self.columns)() {
            let path = ColumnPath::from(column.name);
            if is_of_differences(column.name) {
                builder = builder
                    .set_column_dictionary_enabled(path.clone(), false)
                    .set_column_encoding(path.clone(), Encoding::DELTA_BINARY_PACKED);
            }
            if column.name == self.time {
                builder = builder.set_column_statistics_enabled(path, EnabledStatistics::Chunk);
            }
        }
        builder.build()
    }
}
