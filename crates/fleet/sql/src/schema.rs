//! The tables of traces as the engine has them.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use luc_events::store::{
    ColumnKind, OLDEST_VERSION, Reader, StoreError, TableFile, has_column_since,
};
use luc_events::tables::Row;
use luc_events::{Event, TableVisitor, visit_tables};

/// The column with the host's name, which no file has.
pub(crate) const HOST: &str = "host";

/// A table of a trace.
#[derive(Debug, Clone)]
pub struct TraceTable {
    pub name: &'static str,
    /// What a row is.
    pub description: String,
    /// Its columns without the host.
    pub columns: Vec<TableColumn>,
    pub(crate) files: fn(&Reader) -> Result<Vec<TableFile>, StoreError>,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct TableColumn {
    pub name: String,
    /// The type of its values, as SQL names it.
    #[serde(rename = "type")]
    pub kind: String,
    pub meaning: String,
    #[serde(skip)]
    pub(crate) data_type: DataType,
    /// Whether a row may have no value.
    #[serde(skip)]
    pub(crate) may_be_missing: bool,
}

impl TableColumn {
    pub(crate) fn field(&self) -> Field {
        Field::new(&self.name, self.data_type.clone(), self.may_be_missing)
    }
}

/// Times can be subtracted, whichever is later: they are signed, although files have none that is negative.
fn data_type(name: &str, kind: ColumnKind) -> DataType {
    match kind {
        ColumnKind::U64 | ColumnKind::U32 if name.ends_with("_ns") => DataType::Int64,
        ColumnKind::U64 => DataType::UInt64,
        ColumnKind::I64 => DataType::Int64,
        ColumnKind::U32 => DataType::UInt32,
        ColumnKind::Text => DataType::Utf8,
        ColumnKind::Boolean => DataType::Boolean,
    }
}

/// The type's name in SQL.
pub(crate) fn name_of(data_type: &DataType) -> &'static str {
    match data_type {
        DataType::Int64 => "BIGINT",
        DataType::UInt64 => "BIGINT UNSIGNED",
        DataType::UInt32 => "INT UNSIGNED",
        DataType::Boolean => "BOOLEAN",
        _ => "VARCHAR",
    }
}

impl TraceTable {
    #[must_use]
    pub fn all() -> Vec<Self> {
        let mut all = All(Vec::new());
        visit_tables(&mut all);
        all.0
    }

    /// What a file of it has.
    pub(crate) fn file_schema(&self) -> SchemaRef {
        let fields: Vec<Field> = self.columns.iter().map(TableColumn::field).collect();
        Arc::new(Schema::new(fields))
    }
}

struct All(Vec<TraceTable>);

impl TableVisitor for All {
    fn visit<T: Row + Into<Event>>(&mut self) {
        // The table of traces' descriptions has the host's own name, which users can replace by another.
        let columns = T::columns().into_iter().filter(|column| column.name != HOST);
        let columns = columns.map(|column| {
            let data_type = data_type(column.name, column.kind());
            TableColumn {
                name: column.name.to_owned(),
                kind: name_of(&data_type).to_owned(),
                meaning: column.description.replace(['[', ']'], ""),
                data_type,
                // Recordings of earlier versions do not have it.
                may_be_missing: has_column_since(T::TABLE, column.name) > OLDEST_VERSION,
            }
        });
        let lines = T::DOCUMENTATION.iter().map(|line| line.trim());
        let description: Vec<&str> = lines.take_while(|line| !line.is_empty()).collect();
        self.0.push(TraceTable {
            name: T::TABLE,
            description: description.join(" ").replace(['[', ']'], ""),
            columns: columns.collect(),
            files: Reader::files::<T>,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_signed_and_no_table_has_a_column_of_hosts() {
        let tables = TraceTable::all();
        assert!(tables.len() > 20, "{}", tables.len());
        for table in &tables {
            for field in table.file_schema().fields() {
                assert_ne!(field.name(), HOST, "{}", table.name);
                if field.name().ends_with("_ns") {
                    assert_eq!(field.data_type(), &DataType::Int64, "{}", table.name);
                }
            }
        }
        let message = tables.iter().find(|table| table.name == "message");
        let message = message.expect("the table of messages").file_schema();
        let kind = |name| message.field_with_name(name).expect(name).data_type().clone();
        assert_eq!(kind("bytes"), DataType::UInt64);
        assert_eq!(kind("thread"), DataType::UInt32);
        assert_eq!(kind("direction"), DataType::Utf8);
    }
}
