//! `luc-fleet export`: tables for other engines.

use std::fmt;
use std::io::{self, Write as _};
use std::process::ExitCode;

use luc_fleet::export::{ExportError, ExportedTables, check_free, export};
use luc_fleet::{JoinedTraces, TablesToRead};
use luc_host::interrupt_flag;
use luc_units::number_formats::FormattedSize;

use crate::Failure;
use crate::arguments;
use crate::report_files::EXIT_INTERRUPTED;

pub(crate) fn run(args: &arguments::ExportArgs) -> Result<ExitCode, Failure> {
    check_free(&args.out)?;
    let window = args.common.span.window();
    let joined = JoinedTraces::read(&args.common.sources, TablesToRead::All, window)?;
    // From here on there are files to be removed.
    interrupt_flag::install()?;
    let exported = match export(&joined, &args.common.sources, window, &args.out) {
        Err(ExportError::Interrupted) => return Ok(ExitCode::from(EXIT_INTERRUPTED)),
        exported => exported?,
    };
    for host in &exported.unfinished {
        eprintln!(
            "luc-fleet: {host}: its recording goes on, or was killed. If it goes on, export again when it has ended: it \
             replaces files that the scripts name"
        );
    }
    if let Err(error) = show(&exported, args.common.json) {
        // A failure leaves nothing, but a reader that has gone is none.
        if error.kind() != io::ErrorKind::BrokenPipe {
            std::fs::remove_dir_all(&args.out)?;
        }
        return Err(error.into());
    }
    Ok(ExitCode::SUCCESS)
}

fn show(exported: &ExportedTables, is_json: bool) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if is_json {
        luc_cli::write_json(&mut out, exported)?;
    } else {
        write!(out, "{}", Shown(exported))?;
    }
    out.flush()
}

/// Quotes a word for a shell, where it needs that.
fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@%".contains(c);
    let word = if word.starts_with('-') { format!("./{word}") } else { word.to_owned() };
    if word.chars().all(is_plain) { word } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

struct Shown<'a>(&'a ExportedTables);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ExportedTables { directory, tables, trace_tables, .. } = self.0;
        writeln!(f, "{:<10} {:>12} {:>10}", "table", "rows", "size")?;
        for table in tables {
            writeln!(
                f,
                "{:<10} {:>12} {:>10}",
                table.name,
                table.rows,
                FormattedSize(table.bytes as f64).to_string()
            )?;
        }
        writeln!(
            f,
            "and names for {trace_tables} tables of the traces; {directory}/schema.md says what columns mean"
        )?;
        let script = |name: &str| shell_word(&format!("{directory}/{name}"));
        let [duckdb, spark] = [script("duckdb.sql"), script("spark.sql")];
        writeln!(f, "next: duckdb -init {duckdb}, or: spark-sql -i {spark}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_can_be_pasted() {
        for (word, expected) in [
            ("tables/duckdb.sql", "tables/duckdb.sql"),
            ("-odd/duckdb.sql", "./-odd/duckdb.sql"),
            ("sp ace $x;'q", "'sp ace $x;'\\''q'"),
        ] {
            assert_eq!(shell_word(word), expected);
        }
    }
}
