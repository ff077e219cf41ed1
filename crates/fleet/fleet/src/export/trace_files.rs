//! Files of the traces themselves, to which the SQL scripts give names.

use std::path::PathBuf;

use luc_events::store::{
    ColumnKind, OLDEST_VERSION, StoreError, TableFile, TraceReader, has_column_since,
};
use luc_events::tables::TableRow;
use luc_events::{TableVisitor, TraceEvent, visit_tables};
use luc_fleet_rings::{TimeWindow, time_window};
use luc_units::plain;

use crate::error::FleetError;
use crate::read_hosts;
use crate::trace_argument::TraceArgument;

/// Column with the host's name, which the scripts add to each table.
pub(super) const HOST: &str = "host";

/// Tables of all traces, with the files of each host.
pub(super) struct TraceFiles {
    pub(super) tables: Vec<TraceTable>,
}

pub(super) struct TraceTable {
    pub(super) name: &'static str,
    pub(super) about: String,
    /// Column by which rows are sorted.
    pub(super) time: &'static str,
    /// Columns without the host's.
    pub(super) columns: Vec<TraceColumn>,
    pub(super) files: Vec<HostFile>,
}

pub(super) struct TraceColumn {
    pub(super) name: &'static str,
    pub(super) meaning: String,
    /// Schema version that added the column.
    pub(super) since: u32,
    kind: ColumnKind,
}

/// A Parquet file of a host's trace.
pub(super) struct HostFile {
    pub(super) host: String,
    /// Schema version that it was written in.
    pub(super) version: u32,
    pub(super) path: PathBuf,
}

impl TraceTable {
    /// Name in the scripts, which differs from those of derived tables.
    pub(super) fn view_name(&self) -> String {
        format!("trace_{}", self.name)
    }
}

impl TraceColumn {
    /// Type as the scripts give it: times are signed, so that differences can be negative.
    pub(super) fn sql_type(&self) -> &'static str {
        match self.kind {
            ColumnKind::U64 if self.name.ends_with("_ns") => "bigint",
            ColumnKind::U64 => "decimal(20, 0)",
            ColumnKind::I64 | ColumnKind::U32 => "bigint",
            ColumnKind::Text => "text",
            ColumnKind::Boolean => "boolean",
        }
    }
}

/// Lists the files of all traces; their checksums are right.
pub(super) fn list(
    sources: &[TraceArgument],
    window: Option<TimeWindow>,
) -> Result<TraceFiles, FleetError> {
    let mut tables = AllTables(Vec::new());
    visit_tables(&mut tables);
    let mut tables = tables.0;
    for source in sources {
        let read = time_window::read(&source.directory, window, |reader| {
            let host = plain(&read_hosts::choose_name(source, reader.trace()));
            let files = tables.iter().map(|(_, files)| files(reader));
            let files = files.collect::<Result<Vec<_>, StoreError>>()?;
            Ok::<_, FleetError>((host, files))
        });
        let (host, files) = read?;
        for ((table, _), files) in tables.iter_mut().zip(files) {
            table.files.extend(files.into_iter().map(|file| HostFile {
                host: host.clone(),
                version: file.version,
                path: file.path.canonicalize().unwrap_or(file.path),
            }));
        }
    }
    Ok(TraceFiles { tables: tables.into_iter().map(|(table, _)| table).collect() })
}

type ListFiles = fn(&TraceReader) -> Result<Vec<TableFile>, StoreError>;

/// Collects all tables without files.
struct AllTables(Vec<(TraceTable, ListFiles)>);

impl TableVisitor for AllTables {
    fn visit<T: TableRow + Into<TraceEvent>>(&mut self) {
        // The table of traces' descriptions has the host's own name, which users can replace by another.
        let columns = T::columns().into_iter().filter(|column| column.name != HOST);
        let columns = columns.map(|column| TraceColumn {
            name: column.name,
            meaning: column.description.replace(['[', ']'], ""),
            since: has_column_since(T::TABLE, column.name).max(OLDEST_VERSION),
            kind: column.kind(),
        });
        let lines = T::DOCUMENTATION.iter().map(|line| line.trim());
        let about: Vec<&str> = lines.take_while(|line| !line.is_empty()).collect();
        let table = TraceTable {
            name: T::TABLE,
            about: about.join(" ").replace(['[', ']'], ""),
            time: T::TIME,
            columns: columns.collect(),
            files: Vec::new(),
        };
        self.0.push((table, TraceReader::files::<T>));
    }
}
