//! A table without the type of its rows, and its Parquet properties.

use std::sync::Arc;

use parquet::basic::{Compression, Encoding, Repetition};
use parquet::errors::Result as ParquetResult;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::{ColumnPath, Type, TypePtr};

use super::column_value::ParquetColumn;
use super::has_column_since;

/// Columns of offsets in streams: a dictionary of their many values would be as long as the column.
const OFFSETS: [&str; 2] = ["first_byte", "ack"];

/// Returns whether a column is stored as the differences of its values.
pub(crate) fn is_of_differences(column: &str) -> bool {
    column.ends_with("_ns") || OFFSETS.contains(&column)
}

/// A table with rows of any type. Code that needs no more than this is compiled once and not for each table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableKind {
    /// The table's name.
    pub(crate) name: &'static str,
    /// Column by which it is sorted.
    pub(crate) time: &'static str,
    /// Columns in the order of the fields.
    pub(crate) columns: fn() -> Vec<ParquetColumn>,
}

impl TableKind {
    /// Returns the table's columns in files of a schema version.
    pub(crate) fn columns_in(&self, version: u32) -> Vec<ParquetColumn> {
        let mut columns = (self.columns)();
        columns.retain(|column| version >= has_column_since(self.name, column.name));
        columns
    }

    /// Returns the Parquet schema of the table.
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

    /// Returns the encoding of the table. Times and offsets are stored as differences, which shrink to a few bits. The
    /// other columns repeat, and use dictionaries. There is no general compression on top: it would cost the recorder
    /// more than it saves.
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
