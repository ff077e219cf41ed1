//! The tables that are not in any trace: what was found in the traces of all hosts.
//!
//! They are in the schema `fleet`, as traces have a table `request` as well, that of requests to block devices.

mod columns;
mod edge;
mod path;
mod request;

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::error::Result;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::file::properties::WriterProperties;
use luc_fleet::{Joined, Relations, WantedRelations, relations};

use crate::error::SqlError;
use crate::files::{Files, FilesTable, HostFile};
use crate::schema::TableColumn;
use columns::Column;

/// The schema of these tables.
pub(crate) const SCHEMA: &str = "fleet";
/// Rows of a row group: several executors can share the work.
const GROUP_ROWS: usize = 1 << 16;

/// A table that is made of all traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Derived {
    Edge,
    Request,
    Path,
}

impl Derived {
    pub(crate) const ALL: [Self; 3] = [Self::Edge, Self::Request, Self::Path];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Edge => "edge",
            Self::Request => "request",
            Self::Path => "path",
        }
    }

    pub(crate) fn description(self) -> &'static str {
        match self {
            Self::Edge => "A send and a reception that have bytes in common.",
            Self::Request => "A request, as one of its ends has seen it.",
            Self::Path => "A part of the critical path of a request.",
        }
    }

    fn definitions(self) -> Vec<Column> {
        match self {
            Self::Edge => edge::columns(),
            Self::Request => request::columns(),
            Self::Path => path::columns(),
        }
    }

    pub(crate) fn columns(self) -> Vec<TableColumn> {
        self.definitions().iter().map(Column::about).collect()
    }

    pub(crate) fn schema(self) -> SchemaRef {
        let fields: Vec<Field> = self.columns().iter().map(TableColumn::field).collect();
        Arc::new(Schema::new(fields))
    }

    fn values(self, found: &Relations) -> Vec<ArrayRef> {
        let columns = self.definitions();
        columns.iter().map(|column| column.values(found)).collect()
    }

    /// The table without rows, for queries that do not ask for it.
    pub(crate) fn empty(self) -> FilesTable {
        FilesTable::new(self.schema(), Files::default())
    }
}

/// Writes tables into a directory, from which executors read them.
///
/// # Errors
/// [`SqlError::Fleet`], [`SqlError::Directory`], [`SqlError::Engine`].
pub(crate) fn write(
    joined: &Joined,
    wanted: &[Derived],
    directory: &Path,
) -> Result<Vec<(Derived, FilesTable)>, SqlError> {
    let found = relations(
        joined,
        WantedRelations {
            edges: wanted.contains(&Derived::Edge),
            requests: wanted.contains(&Derived::Request),
            steps: wanted.contains(&Derived::Path),
        },
    )?;
    let write = |&table: &Derived| {
        let path = directory.join(format!("{}.parquet", table.name()));
        let file = one(table, &found, &path)?;
        let files = Files { files: vec![file], has_hosts: false };
        Ok((table, FilesTable::new(table.schema(), files)))
    };
    wanted.iter().map(write).collect()
}

fn one(table: Derived, found: &Relations, path: &Path) -> Result<HostFile, SqlError> {
    let failed = |reason| SqlError::Directory { path: path.to_owned(), reason };
    let batch = RecordBatch::try_new(table.schema(), table.values(found));
    let batch = batch.map_err(|error| SqlError::of_engine(error.into()))?;
    let properties =
        WriterProperties::builder().set_max_row_group_row_count(Some(GROUP_ROWS)).build();
    let file = File::create_new(path).map_err(failed)?;
    let write = || {
        let mut writer = ArrowWriter::try_new(file, table.schema(), Some(properties))?;
        writer.write(&batch)?;
        writer.close()
    };
    write().map_err(|error| failed(std::io::Error::other(error)))?;
    Ok(HostFile {
        host: None,
        bytes: std::fs::metadata(path).map_err(failed)?.len(),
        rows: batch.num_rows() as u64,
        path: path.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_array_has_the_type_of_its_column() {
        let found = Relations::default();
        for table in Derived::ALL {
            let batch = RecordBatch::try_new(table.schema(), table.values(&found));
            let rows = batch.map(|batch| batch.num_rows());
            assert_eq!(rows.expect("a batch"), 0, "{}", table.name());
        }
    }
}
