//! Writes the results of the traces of many hosts as Parquet files that any engine reads.
//!
//! The directory has a file for each derived table, `schema.md` with what columns mean, and SQL scripts. `duckdb.sql`
//! and `spark.sql` give names to all files, also those of the traces, and define the views of `views.sql`.

mod derived_table;
mod error;
mod parquet_file;
mod sql;
mod tables;
mod trace_files;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use luc_fleet_rings::TimeWindow;
use luc_units::plain;
use serde::Serialize;

use crate::explain::{FleetRequests, RequestFindings};
use crate::flat_rows::{TimePlacer, convert_edges, convert_requests, convert_steps, host_clocks};
use crate::joined_traces::JoinedTraces;
use crate::trace_argument::TraceArgument;
pub use error::ExportError;
pub use parquet_file::ExportedTable;
use parquet_file::write_table;
use sql::Dialect;

/// Tables that were written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExportedTables {
    pub directory: String,
    pub tables: Vec<ExportedTable>,
    /// Tables of the traces that the SQL scripts give names to.
    pub trace_tables: usize,
    /// Hosts whose recording goes on or was killed. One that goes on replaces files that the scripts name.
    pub unfinished: Vec<String>,
}

/// Refuses a directory that is there, before traces are read for it.
///
/// # Errors
/// [`ExportError::Exists`].
pub fn check_free(directory: &Path) -> Result<(), ExportError> {
    if directory.symlink_metadata().is_ok() {
        return Err(ExportError::Exists(directory.to_owned()));
    }
    Ok(())
}

/// Writes all tables and scripts into `directory`, which appears when it is complete.
///
/// # Errors
/// [`ExportError`]. Nothing is left then.
pub fn export(
    joined: &JoinedTraces,
    sources: &[TraceArgument],
    window: Option<TimeWindow>,
    directory: &Path,
) -> Result<ExportedTables, ExportError> {
    check_free(directory)?;
    let parent = directory.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |reason| ExportError::Output { path, reason }
    };
    // 1. Files of the traces: their checksums are read before anything is written.
    let traces = trace_files::list(sources, window)?;
    // 2. The derived tables, in a directory with another name. Nobody may read them who may not read the traces.
    fs::metadata(parent).map_err(failed(parent))?;
    let mode = sources.iter().try_fold(0o777, |mode, source| {
        let about = fs::metadata(&source.directory).map_err(failed(&source.directory))?;
        Ok::<_, ExportError>(mode & about.permissions().mode())
    })?;
    let partial = tempfile::Builder::new()
        .prefix(".luc-export-")
        .permissions(Permissions::from_mode(0o700 | mode))
        .tempdir_in(parent)
        .map_err(failed(parent))?;
    let tables = write_tables(joined, partial.path())?;
    // 3. The scripts, which name files by where they will be.
    let place = parent.canonicalize().map_err(failed(parent))?;
    let place = place.join(directory.file_name().unwrap_or(directory.as_os_str()));
    for dialect in Dialect::ALL {
        let text = sql::script(dialect, &tables::all(), &traces, &place)?;
        let path = partial.path().join(dialect.file_name());
        fs::write(&path, text).map_err(failed(&path))?;
    }
    for (name, text) in [
        ("views.sql", sql::views(&traces)),
        ("schema.md", derived_table::describe(&tables::all(), &traces)),
    ] {
        let path = partial.path().join(name);
        fs::write(&path, text).map_err(failed(&path))?;
    }
    // 4. It appears.
    let partial = partial.keep();
    let moved = fs::rename(&partial, directory);
    moved.map_err(|reason| {
        let _ = fs::remove_dir_all(&partial);
        ExportError::Output { path: directory.to_owned(), reason }
    })?;
    let unfinished = joined.hosts.iter().filter(|host| !host.summary.is_complete);
    // Without a slash at the end.
    let directory: PathBuf = directory.components().collect();
    Ok(ExportedTables {
        directory: plain(&directory.display().to_string()),
        tables,
        trace_tables: traces.tables.len(),
        unfinished: unfinished.map(|host| host.name.clone()).collect(),
    })
}

/// Makes one table after the other, so that few are in memory.
fn write_tables(
    joined: &JoinedTraces,
    directory: &Path,
) -> Result<Vec<ExportedTable>, ExportError> {
    let found = FleetRequests::new(joined)?;
    let hosts: Vec<String> = joined.hosts.iter().map(|host| host.name.clone()).collect();
    let mut placer = TimePlacer::new(joined);
    let (clocks, lines) = host_clocks(joined);
    let about = tables::clock::hosts(joined, &clocks);
    let requests = convert_requests(&mut placer, &found);
    let calls = tables::request::calls(&requests);
    Ok(vec![
        write_table(&tables::clock::HOST, &about, &hosts, directory)?,
        write_table(&tables::clock::CLOCK, &lines, &hosts, directory)?,
        write_table(&tables::edge::EDGE, &convert_edges(&mut placer, &found), &hosts, directory)?,
        write_table(&tables::request::REQUEST, &requests, &hosts, directory)?,
        write_table(&tables::request::CALL, &calls, &hosts, directory)?,
        write_table(&tables::path::PATH, &convert_steps(&found), &hosts, directory)?,
        write_table(
            &tables::finding::FINDING,
            &tables::finding::findings(RequestFindings::new(&found).of_slowest()),
            &hosts,
            directory,
        )?,
    ])
}
