//! Tables of traces: every one can be asked, over all hosts, and says what is in the files.

use std::fs;

use luc_events::store::Reader;
use luc_events::tables::{Message, Wait};

use crate::{Asked, program, stdout};

#[test]
fn every_table_can_be_asked() {
    let asked = Asked::small();
    let out =
        program(&asked.temporary()).args(["sql", "--tables", "--json"]).output().expect("run");
    let tables: serde_json::Value = serde_json::from_str(&stdout(&out, "tables")).expect("JSON");
    let tables = tables.as_array().expect("an array");
    assert!(tables.len() > 20);
    let counts: Vec<String> = tables
        .iter()
        .map(|table| {
            let columns = table["columns"].as_array().expect("columns");
            let names = columns.iter().map(|column| column["name"].as_str());
            let names: Vec<String> =
                names.map(|name| format!("count(\"{}\")", name.expect("a name"))).collect();
            let table = table["table"].as_str().expect("a name");
            let table = table.replace("[id]", "id").replace("(id)", "(1)");
            format!("select '{table}' as t, {} as n from {table}", names.join(" + "))
        })
        .collect();
    let some = counts.chunks(6);
    let rows: Vec<Vec<String>> =
        some.flat_map(|counts| asked.rows(&counts.join(" union all "))).collect();
    assert_eq!(rows.len(), tables.len());
    let has_rows = |table: &str| {
        let row = rows.iter().find(|row| row[0] == table).expect(table);
        row[1] != "0"
    };
    for table in ["wait", "message", "packet", "connection", "clock_sample", "task", "trace"] {
        assert!(has_rows(table), "{table}");
    }
    for table in ["fleet.edge", "fleet.request", "fleet.path"] {
        assert!(has_rows(table), "{table}");
    }
    assert!(!has_rows("commit"));
    asked.assert_nothing_is_left();
}

/// What a recorder of version 4 has written.
const WAITS_OF_VERSION_4: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../see/events/tests/store/version-4/wait-000001-000001.parquet"
);

#[test]
fn a_column_that_a_recording_does_not_have_is_missing() {
    let asked = Asked::small();
    let trace = &asked.traces[0];
    for entry in fs::read_dir(trace).expect("a trace").flatten() {
        if entry.file_name().to_string_lossy().starts_with("wait-") {
            fs::remove_file(entry.path()).expect("removed");
        }
    }
    let waits = trace.join("wait-000001-000001.parquet");
    fs::copy(WAITS_OF_VERSION_4, waits).expect("copied");
    let host = Reader::open(trace).expect("a trace").trace().host.clone();
    let rows = asked.rows(
        "select host, count(*) as n, count(processor) as known from wait group by host order by host",
    );
    assert_eq!(rows.len(), asked.traces.len());
    for row in rows {
        assert_ne!(row[1], "0");
        let known = if row[0] == host { "0" } else { &row[1] };
        assert_eq!(row[2], known, "{row:?}");
    }
}

#[test]
fn sums_are_those_of_the_files() {
    let asked = Asked::small();
    let rows = asked.rows(
        "select w.host, w.n, w.ns, m.bytes from
           (select host, count(*) as n, sum(on_ns - off_ns) as ns from wait group by host) w
           join (select host, sum(bytes) as bytes from message group by host) m on w.host = m.host
         order by w.host",
    );
    let mut expected: Vec<Vec<String>> = asked
        .traces
        .iter()
        .map(|path| {
            let reader = Reader::open(path).expect("a trace");
            let waits: Vec<Wait> =
                reader.rows().expect("opened").collect::<Result<_, _>>().expect("read");
            let messages = reader.rows::<Message>().expect("opened");
            let bytes: u64 = messages.map(|row| row.expect("read").bytes).sum();
            let ns: u64 = waits.iter().map(|wait| wait.on_ns - wait.off_ns).sum();
            vec![
                reader.trace().host.clone(),
                waits.len().to_string(),
                ns.to_string(),
                bytes.to_string(),
            ]
        })
        .collect();
    expected.sort();
    assert_eq!(rows, expected);
}

#[test]
fn a_host_has_the_name_that_it_is_given() {
    let asked = Asked::small();
    let web = format!("front={}", asked.traces[1].display());
    let out = program(&asked.temporary())
        .args(["sql", "--csv", "select distinct host from message"])
        .arg(web)
        .output()
        .expect("run");
    assert_eq!(stdout(&out, "names"), "host\nfront\n");
}

#[test]
fn what_does_not_fit_into_memory_goes_to_files() {
    let asked = Asked::about(luc_testkit::fleet::PlantedFleet {
        back_ends: 2,
        requests: 100,
        waits: 60_000,
    });
    let query = "select * from wait order by on_ns - off_ns, host, thread, on_ns";
    let answer = |memory: &str| {
        let mut command = asked.command(&["--csv", "--memory", memory, query]);
        stdout(&command.output().expect("run"), memory)
    };
    assert!(answer("48MiB") == answer("4GiB"));
    asked.assert_nothing_is_left();
}
