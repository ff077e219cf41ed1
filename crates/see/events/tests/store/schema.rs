//! The page that describes the tables is current.

use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

use luc_events::event_kinds::{
    CommitKind, ConnectionFamily, DataDirection, FileCallKind, MessageDirection, RequestKind,
    SequenceSource, SocketRole, SummarizedKind, SyncKind, WaitState,
};
use luc_events::store::{ColumnKind, SCHEMA_VERSION};
use luc_events::tables::TableRow;
use luc_events::{TableVisitor, TraceEvent, WaitCause, visit_tables};

/// Documentation's links to other items are code's business.
fn plain(text: &str) -> String {
    text.replace(['[', ']'], "").replace('|', "\\|")
}

fn describe<T: TableRow>(page: &mut String) {
    let lines: Vec<&str> = T::DOCUMENTATION.iter().map(|line| line.trim()).collect();
    let text = lines.join("\n").replace('\n', " ").replace("  ", "\n\n");
    let _ = write!(
        page,
        "\n## {}\n\n{}\n\nSorted by `{}`.\n\n| column | type | meaning |\n|---|---|---|\n",
        T::TABLE,
        plain(text.trim()),
        T::TIME
    );
    for column in T::columns() {
        let logical = match column.kind() {
            ColumnKind::I64 => "i64",
            ColumnKind::U64 => "u64",
            ColumnKind::U32 => "u32",
            ColumnKind::Text => "text",
            ColumnKind::Boolean => "boolean",
        };
        let _ =
            writeln!(page, "| `{}` | {logical} | {} |", column.name, plain(&column.description));
    }
}

/// Describes each table on a page.
struct Described<'a> {
    page: &'a mut String,
}

impl TableVisitor for Described<'_> {
    fn visit<T: TableRow + Into<TraceEvent>>(&mut self) {
        describe::<T>(self.page);
    }
}

fn page() -> String {
    let mut page = format!(
        "# The tables of a trace\n\n\
         Schema version {SCHEMA_VERSION}. This page is written from the code \
         (`LUC_WRITE_DOCS=1 cargo test -p luc-events`).\n\n\
         A trace is a directory; `<table>-*.parquet` is a table, which any Parquet tool reads. Times are \
         nanoseconds of CLOCK_MONOTONIC (`trace` has the offsets to other clocks); 0 means not known or \
         did not happen. Devices are the kernel's `dev_t`: major << 20 | minor. How the files are made \
         safe against a killed recorder and against damage stands in `crates/see/events/src/store.rs`.\n"
    );
    visit_tables(&mut Described { page: &mut page });
    page.push_str("\n## Names\n\n| column | values |\n|---|---|\n");
    macro_rules! names {
        ($($column:literal $values:ident),+) => {
            $(
                let names: Vec<&str> = $values::ALL.iter().map(|value| value.name()).collect();
                let _ = writeln!(page, "| {} | {} |", $column, names.join(", "));
            )+
        };
    }
    names!(
        "`cause`" WaitCause, "`sync.kind`" SyncKind, "`commit.kind`" CommitKind,
        "`call.kind`" FileCallKind, "`wait.state`" WaitState, "`request.kind`" RequestKind,
        "`data.direction`" DataDirection, "`summary.what`" SummarizedKind,
        "`message.direction`, `packet.direction`" MessageDirection,
        "`connection.family`" ConnectionFamily, "`connection.side`" SocketRole,
        "`connection.sequences`" SequenceSource
    );
    page
}

#[test]
fn the_page_of_tables_is_current() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/reference/trace-tables.md");
    if env::var_os("LUC_WRITE_DOCS").is_some() {
        fs::write(&path, page()).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == page(),
        "docs/reference/trace-tables.md is out of date: run with LUC_WRITE_DOCS=1"
    );
}
