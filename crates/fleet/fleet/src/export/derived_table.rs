//! Definition of a derived table, and of all tables in `schema.md`.

use std::fmt::Write as _;

use super::trace_files::TraceFiles;

/// Names of the hosts, by their numbers.
pub(super) type HostNames = [String];

/// A table with a row of each `R`.
pub(super) struct DerivedTable<R: 'static> {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) columns: fn() -> Vec<DerivedColumn<R>>,
}

/// A column, and how a cell of it follows from a row.
pub(super) struct DerivedColumn<R> {
    pub(super) name: &'static str,
    pub(super) meaning: &'static str,
    /// Whether a cell may be null.
    pub(super) nullable: bool,
    pub(super) cell: DerivedCell<R>,
}

/// Value in a column of a derived table.
pub(super) enum DerivedCell<R> {
    Text(for<'a> fn(&'a R, &'a HostNames) -> Option<&'a str>),
    U32(fn(&R) -> Option<u32>),
    I64(fn(&R) -> Option<i64>),
    F64(fn(&R) -> Option<f64>),
    Flag(fn(&R) -> Option<bool>),
}

impl<R> DerivedColumn<R> {
    pub(super) fn of(name: &'static str, meaning: &'static str, cell: DerivedCell<R>) -> Self {
        Self { name, meaning, nullable: false, cell }
    }

    /// The same; a cell may be null.
    pub(super) fn or_null(name: &'static str, meaning: &'static str, cell: DerivedCell<R>) -> Self {
        Self { name, meaning, nullable: true, cell }
    }

    /// The type's name in SQL.
    fn sql_type(&self) -> &'static str {
        match self.cell {
            DerivedCell::Text(_) => "text",
            // Not every engine has unsigned numbers: SQL scripts read these as `bigint`.
            DerivedCell::U32(_) | DerivedCell::I64(_) => "bigint",
            DerivedCell::F64(_) => "double",
            DerivedCell::Flag(_) => "boolean",
        }
    }
}

/// A derived table without the type of its rows.
pub(super) struct AnyTable {
    pub(super) name: &'static str,
    about: &'static str,
    columns: Vec<AnyColumn>,
}

struct AnyColumn {
    name: &'static str,
    meaning: &'static str,
    sql_type: &'static str,
    nullable: bool,
}

impl AnyTable {
    pub(super) fn of<R>(table: &DerivedTable<R>) -> Self {
        let column = |column: DerivedColumn<R>| AnyColumn {
            sql_type: column.sql_type(),
            name: column.name,
            meaning: column.meaning,
            nullable: column.nullable,
        };
        Self {
            name: table.name,
            about: table.about,
            columns: (table.columns)().into_iter().map(column).collect(),
        }
    }
}

/// `schema.md`: each table with its columns.
pub(super) fn describe(tables: &[AnyTable], traces: &TraceFiles) -> String {
    let mut text = "# Tables\n\n\
        Times `_ns` are nanoseconds of the CLOCK_MONOTONIC of the row's host, times `_global_ns` of that of the first host.\n\
        Tables `trace_*` are in the traces; all others are files here. `views.sql` defines what is made of them:\n\
        `subtree` (each request with all that were made for it), `blame` (the time of each request by root) and\n\
        `trace_*_global` (rows of a trace with their time on the first host's clock).\n"
        .to_owned();
    let mut section = |name: &str, about: &str| {
        let _ = write!(
            text,
            "\n## {name}\n\n{about}\n\n| column | type | null | meaning |\n|---|---|---|---|\n"
        );
        std::mem::take(&mut text)
    };
    let mut page = String::new();
    for table in tables {
        page += &section(table.name, table.about);
        for column in &table.columns {
            let null = if column.nullable { "yes" } else { "no" };
            let AnyColumn { name, sql_type, meaning, .. } = column;
            let _ = writeln!(page, "| {name} | {sql_type} | {null} | {meaning} |");
        }
    }
    for table in &traces.tables {
        page += &section(&table.view_name(), &table.about);
        let _ = writeln!(page, "| host | text | no | Host whose trace has the row. |");
        for column in &table.columns {
            let _ = writeln!(
                page,
                "| {} | {} | no | {} |",
                column.name,
                column.sql_type(),
                column.meaning
            );
        }
    }
    page
}

/// Name of the host of a number.
pub(super) fn host_name(number: u32, hosts: &[String]) -> Option<&str> {
    hosts.get(number as usize).map(String::as_str)
}

/// Makes a number signed, as not every engine has others. None is beyond 2^63 in a trace.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
