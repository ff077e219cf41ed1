//! SQL scripts: names for all files in the dialect of an engine, and views in what engines have in common.

use std::fmt::Write as _;
use std::path::Path;

use super::derived_table::AnyTable;
use super::error::ExportError;
use super::trace_files::{HOST, HostFile, TraceColumn, TraceFiles, TraceTable};

/// SQL engine, with its own names of files and types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    DuckDb,
    Spark,
}

impl Dialect {
    pub(super) const ALL: [Self; 2] = [Self::DuckDb, Self::Spark];

    pub(super) fn file_name(self) -> &'static str {
        match self {
            Self::DuckDb => "duckdb.sql",
            Self::Spark => "spark.sql",
        }
    }

    fn how_to_run(self) -> &'static str {
        match self {
            Self::DuckDb => "duckdb -init duckdb.sql",
            Self::Spark => "spark-sql -i spark.sql",
        }
    }

    /// A file as a relation.
    fn relation(self, path: &Path) -> Result<String, ExportError> {
        let text = path.to_str().ok_or_else(|| ExportError::Path { path: path.to_owned() })?;
        Ok(match self {
            Self::DuckDb => {
                format!("read_parquet({})", text_literal(&escape_glob(text, |c| format!("[{c}]"))))
            }
            Self::Spark => {
                format!("parquet.`{}`", escape_glob(text, |c| format!("\\{c}")).replace('`', "``"))
            }
        })
    }

    fn type_name(self, sql_type: &'static str) -> &'static str {
        match (self, sql_type) {
            (Self::Spark, "text") => "string",
            (_, sql_type) => sql_type,
        }
    }
}

/// Escapes what engines would take for a pattern of many files.
fn escape_glob(path: &str, escape: fn(char) -> String) -> String {
    let is_special = |c| matches!(c, '*' | '?' | '[' | ']' | '{' | '}');
    path.chars().map(|c| if is_special(c) { escape(c) } else { c.to_string() }).collect()
}

fn text_literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Names for all files, and all views.
pub(super) fn script(
    dialect: Dialect,
    tables: &[AnyTable],
    traces: &TraceFiles,
    directory: &Path,
) -> Result<String, ExportError> {
    let mut text = format!(
        "-- Names for the files of `luc fleet export`, and views: schema.md says what they have.\n\
         -- {}\n",
        dialect.how_to_run()
    );
    for table in tables {
        let file = dialect.relation(&directory.join(format!("{}.parquet", table.name)))?;
        define(&mut text, table.name, &format!("select * from {file}"));
    }
    for table in &traces.tables {
        define(&mut text, &table.view_name(), &select_all(dialect, table)?);
    }
    Ok(text + &views(traces))
}

fn define(text: &mut String, name: &str, query: &str) {
    let _ = write!(text, "\ncreate or replace temporary view {name} as\n{query};\n");
}

/// Rows of all files of a table, with their host.
fn select_all(dialect: Dialect, table: &TraceTable) -> Result<String, ExportError> {
    let parts = table.files.iter().map(|file| select_file(dialect, table, file));
    let parts = parts.collect::<Result<Vec<_>, _>>()?;
    if !parts.is_empty() {
        return Ok(parts.join("\nunion all "));
    }
    let null = |column: &TraceColumn| null_of(dialect, column);
    let columns: Vec<String> = table.columns.iter().map(null).collect();
    let host = dialect.type_name("text");
    Ok(format!("select cast(null as {host}) as {HOST}, {} where false", columns.join(", ")))
}

fn select_file(
    dialect: Dialect,
    table: &TraceTable,
    file: &HostFile,
) -> Result<String, ExportError> {
    let column = |column: &TraceColumn| {
        if file.version < column.since {
            return null_of(dialect, column);
        }
        let name = column.name;
        format!("cast({name} as {}) as {name}", dialect.type_name(column.sql_type()))
    };
    let columns: Vec<String> = table.columns.iter().map(column).collect();
    let host = text_literal(&file.host);
    let relation = dialect.relation(&file.path)?;
    Ok(format!("select {host} as {HOST}, {} from {relation}", columns.join(", ")))
}

fn null_of(dialect: Dialect, column: &TraceColumn) -> String {
    let TraceColumn { name, .. } = column;
    format!("cast(null as {}) as {name}", dialect.type_name(column.sql_type()))
}

/// `views.sql`: views over names that the scripts define, in SQL that engines have in common.
pub(super) fn views(traces: &TraceFiles) -> String {
    let mut text = String::new();
    define(
        &mut text,
        "subtree",
        "select a.id as top, b.* from request a join request b\n\
         on b.root = a.root and b.pre between a.pre and a.last",
    );
    define(
        &mut text,
        "blame",
        "select request, host, service, process, thread, name, kind, cause, cast(sum(time_ns) as bigint) as time_ns\n\
         from path group by request, host, service, process, thread, name, kind, cause",
    );
    for table in &traces.tables {
        let Some(time) = time_of(table) else { continue };
        define(&mut text, &format!("{}_global", table.view_name()), &with_global_time(table, time));
    }
    text
}

/// Time by which the table is sorted, of tables that have one.
fn time_of(table: &TraceTable) -> Option<&'static str> {
    let is_there = table.columns.iter().any(|column| column.name == table.time);
    is_there.then_some(table.time)
}

/// Rows with their time on the first host's clock; null where that is not known.
///
/// A line of the clock is found by its number, so that engines can join by hash. Division of whole numbers differs from
/// engine to engine: a difference that is a multiple is divided as floating point, and rounded.
fn with_global_time(table: &TraceTable, time: &str) -> String {
    let name = table.view_name();
    let divide = |number: &str, by: &str| {
        format!("cast(round(({number} - {number} % {by}) / {by}) as bigint)")
    };
    // The last line has the end of the clock, too.
    let line = divide(
        &format!("(least(t.{time}, h.clock_end_ns - 1) - h.clock_begin_ns)"),
        "h.clock_step_ns",
    );
    let growth = divide(
        &format!("(cast(c.growth_ns as decimal(38, 0)) * (t.{time} - c.begin_ns))"),
        "(c.end_ns - c.begin_ns)",
    );
    format!(
        "select t.*, c.global_ns + (t.{time} - c.begin_ns) + {growth} as global_ns\n\
         from {name} t join host h on h.host = t.host\n\
         left join clock c on c.host = t.host and c.line = {line}\n\
         and t.{time} between c.begin_ns and c.end_ns"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_no_patterns_and_end_no_text() {
        let path = Path::new("/a'b/*[1]`");
        let duckdb = Dialect::DuckDb.relation(path).unwrap();
        assert_eq!(duckdb, "read_parquet('/a''b/[*][[]1[]]`')");
        let spark = Dialect::Spark.relation(path).unwrap();
        assert_eq!(spark, "parquet.`/a'b/\\*\\[1\\]```");
    }
}
