//! Answers of DuckDB: trees are ranges, sums close, clocks are close to the truth.

use std::collections::BTreeMap;
use std::fs;

use luc_events::store::TraceReader;
use luc_events::tables::{ConnectionMessage, OffCpuWait};
use serde_json::{Value, json};

use crate::{PlantedExport, program, succeeded};

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn trees_are_ranges() {
    let exported = PlantedExport::small();
    let query = "select id, parent, root, pre, last, post from request order by id";
    let below = "select top, count(*) from subtree s join request r on r.id = s.top \
                 where r.parent is null group by top order by top";
    let Some(answers) = exported.duckdb(&[query, below]) else { return };
    let [rows, below] = answers.try_into().expect("two answers");
    // Each request makes the front end ask twice, and each of the three has two ends.
    assert_eq!(rows.len(), 300 * 6);
    let parents: BTreeMap<i64, Option<i64>> =
        rows.iter().map(|row| (number(&row[0]), row[1].as_i64())).collect();
    let is_above = |above: i64, id: i64| {
        std::iter::successors(Some(id), |id| parents[id]).any(|id| id == above)
    };
    for row in rows.iter().step_by(7) {
        let [id, root, pre, last, post] = [0, 2, 3, 4, 5].map(|at| number(&row[at]));
        assert!(is_above(root, id) && parents[&root].is_none());
        for other in rows.iter().step_by(5) {
            let is_in_range = (pre..=last).contains(&number(&other[3]));
            assert_eq!(is_in_range, is_above(id, number(&other[0])), "{row:?} {other:?}");
            assert!(!is_in_range || number(&other[5]) <= post);
        }
    }
    assert_eq!(below.len(), 300);
    assert!(below.iter().all(|row| row[1] == json!(6)), "{below:?}");
}

#[test]
fn times_and_counts_close() {
    let exported = PlantedExport::small();
    let Some(answers) = exported.duckdb(&[
        "select count(*) from (select r.id from request r join path p on p.request = r.id \
         group by r.id, r.time_ns having sum(p.time_ns) <> r.time_ns)",
        "select count(distinct request), count(*) filter (cause = 'commit_wait') from path",
        "select sum(time_ns) from blame union all select sum(time_ns) from path",
        "select count(*), count(distinct request), max(number), min(since_request_ns) >= 0, count(received) from call",
        "select count(*) from call c join request r on r.id = c.id where r.parent <> c.request or not r.is_sent",
        "select count(*), count(*) filter (low_ns > latency_ns or latency_ns > high_ns or latency_ns < 0) from edge",
        "select count(*) > 0, min(rank), bool_and(share between share_low and share_high) from finding",
        "select max(abs(g.global_ns - r.start_global_ns)) from request r join trace_message_global g \
         on g.host = r.host and g.connection = r.connection and g.at_ns = r.start_ns and g.thread = r.thread",
        "select count(*) filter (global_ns is null) * 10 < count(*) from trace_wait_global",
        "select count(*) from trace_trace_global g join host h on g.host = h.host where h.number = 0 and g.global_ns is null",
        "select bool_and(g.global_ns = g.at_ns) from trace_message_global g join host h on g.host = h.host where h.number = 0",
    ]) else {
        return;
    };
    let one = |at: usize| answers[at][0].as_slice();
    assert_eq!(one(0), [json!(0)]);
    assert_eq!(one(1), [json!(300), json!(60)]);
    assert_eq!(answers[2][0], answers[2][1]);
    assert_eq!(one(3), [json!(600), json!(300), json!(2), json!(true), json!(600)]);
    assert_eq!(one(4), [json!(0)]);
    // Nothing arrives before it was sent.
    assert_eq!(one(5), [json!(300 * 6), json!(0)]);
    assert_eq!(one(6), [json!(true), json!(1), json!(true)]);
    // 10 ns of the estimate's own rounding, beside what lies between the knots.
    assert!((0..=100).contains(&number(&one(7)[0])), "{:?}", one(7));
    assert_eq!(one(8), [json!(true)]);
    assert_eq!(one(9), [json!(0)]);
    assert_eq!(one(10), [json!(true)]);
}

#[test]
fn every_table_of_the_traces_is_there() {
    let exported = PlantedExport::small();
    let schema = fs::read_to_string(exported.tables().join("schema.md")).expect("read");
    let tables: Vec<&str> = schema.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    assert!(tables.len() > 25, "{tables:?}");
    let queries: Vec<String> = tables
        .iter()
        .map(|table| format!("select count(*) from (select * from {table})"))
        .collect();
    let queries: Vec<&str> = queries.iter().map(String::as_str).collect();
    let Some(answers) = exported.duckdb(&queries) else { return };
    let rows = |table: &str| {
        let at = tables.iter().position(|name| *name == table).expect(table);
        number(&answers[at][0][0])
    };
    for table in ["trace_wait", "trace_message", "trace_packet", "trace_task", "edge", "finding"] {
        assert!(rows(table) > 0, "{table}");
    }
    assert_eq!(rows("trace_commit"), 0);
    assert_eq!(rows("host"), exported.traces.len() as i64);
}

#[test]
fn sums_are_those_of_the_files() {
    let exported = PlantedExport::small();
    let Some(answers) = exported.duckdb(&[
        "select host, count(*), sum(on_ns - off_ns) from trace_wait group by host order by host",
        "select host, sum(bytes) from trace_message group by host order by host",
    ]) else {
        return;
    };
    let mut expected: Vec<(String, usize, u64, u64)> = exported
        .traces
        .iter()
        .map(|path| {
            let reader = TraceReader::open(path).expect("a trace");
            let waits = reader.rows::<OffCpuWait>().expect("opened");
            let waits: Vec<OffCpuWait> = waits.collect::<Result<_, _>>().expect("read");
            let messages = reader.rows::<ConnectionMessage>().expect("opened");
            let bytes = messages.map(|row| row.expect("read").bytes).sum();
            let ns = waits.iter().map(|wait| wait.on_ns - wait.off_ns).sum();
            (reader.trace().host.clone(), waits.len(), ns, bytes)
        })
        .collect();
    expected.sort();
    let found = answers[0].iter().zip(&answers[1]);
    for ((waits, messages), (host, count, ns, bytes)) in found.zip(expected) {
        assert_eq!(*waits, [json!(host), json!(count), json!(ns)]);
        assert_eq!(*messages, [json!(host), json!(bytes)]);
    }
}

/// Waits that a recorder of schema version 4 has written.
const WAITS_OF_VERSION_4: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../see/events/tests/store/version-4/wait-000001-000001.parquet"
);

#[test]
fn a_column_that_a_recording_lacks_is_null() {
    let exported = PlantedExport::planted(luc_testkit::fleet::PlantedFleet {
        back_ends: 2,
        requests: 300,
        waits: 50,
    });
    let trace = &exported.traces[0];
    for entry in fs::read_dir(trace).expect("a trace").flatten() {
        if entry.file_name().to_string_lossy().starts_with("wait-") {
            fs::remove_file(entry.path()).expect("removed");
        }
    }
    fs::copy(WAITS_OF_VERSION_4, trace.join("wait-000001-000001.parquet")).expect("copied");
    let host = TraceReader::open(trace).expect("a trace").trace().host.clone();
    exported.export();
    let query = "select host, count(*), count(processor) from trace_wait group by host";
    let Some(answers) = exported.duckdb(&[query]) else { return };
    assert_eq!(answers[0].len(), exported.traces.len());
    for row in &answers[0] {
        let known = if row[0] == json!(host) { &json!(0) } else { &row[1] };
        assert!(row[1] != json!(0) && row[2] == *known, "{row:?}");
    }
}

#[test]
fn a_host_has_the_name_that_it_is_given() {
    let exported = PlantedExport::planted(luc_testkit::fleet::PlantedFleet {
        back_ends: 2,
        requests: 20,
        waits: 20,
    });
    let named = format!("o'front={}", exported.traces[1].display());
    let out =
        program().args(["export", "--json", "--out"]).arg(exported.tables()).arg(named).output();
    let tables: Value = serde_json::from_str(&succeeded(&out.expect("run"))).expect("JSON");
    assert_eq!(
        tables["tables"][0],
        json!({ "name": "host", "rows": 1, "bytes": tables["tables"][0]["bytes"] })
    );
    let Some(answers) = exported.duckdb(&["select distinct host from trace_message"]) else {
        return;
    };
    assert_eq!(answers[0], [[json!("o'front")]]);
}
