//! `luc-fleet export`: tables for other engines.

use std::fmt;
use std::io::{self, Write as _};
use std::process::ExitCode;

use luc_fleet::export::{ExportError, Exported, check_free, export};
use luc_fleet::{Joined, Tables};
use luc_host::interrupt;
use luc_units::figures::Size;

use crate::Failure;
use crate::arguments;
use crate::files::EXIT_INTERRUPTED;

pub(crate) fn run(args: &arguments::Export) -> Result<ExitCode, Failure> {
    check_free(&args.out)?;
    let window = args.common.span.window();
    let joined = Joined::read(&args.common.sources, Tables::All, window)?;
    // From here on there are files to be removed.
    interrupt::install()?;
    let exported = match export(&joined, &args.common.sources, window, &args.out) {
        Err(ExportError::Interrupted) => return Ok(ExitCode::from(EXIT_INTERRUPTED)),
        exported => exported?,
    };
    let mut out = io::stdout().lock();
    if args.common.json {
        serde_json::to_writer_pretty(&mut out, &exported).map_err(io::Error::from)?;
        writeln!(out)?;
    } else {
        write!(out, "{}", Shown(&exported))?;
    }
    Ok(ExitCode::SUCCESS)
}

struct Shown<'a>(&'a Exported);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Exported { directory, tables, trace_tables } = self.0;
        writeln!(f, "{:<10} {:>12} {:>10}", "table", "rows", "size")?;
        for table in tables {
            writeln!(
                f,
                "{:<10} {:>12} {:>10}",
                table.name,
                table.rows,
                Size(table.bytes as f64).to_string()
            )?;
        }
        writeln!(
            f,
            "and names for {trace_tables} tables of the traces; {directory}/schema.md says what columns mean"
        )?;
        writeln!(
            f,
            "next: duckdb -init {directory}/duckdb.sql, or: spark-sql -i {directory}/spark.sql"
        )
    }
}
