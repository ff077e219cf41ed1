//! Spark with four executors has the answers of DuckDB, also when one of them is killed. `make test-all` runs this.

use luc_testkit::fleet::PlantedFleet;

use crate::PlantedExport;

const QUERIES: [&str; 7] = [
    "select host, cause, count(*), sum(on_ns - off_ns), max(on_ns - woken_ns) from trace_wait group by host, cause \
     order by host, cause",
    "select on_ns - off_ns as ns, host, thread, off_ns, cause from trace_wait \
     order by ns desc, host, thread, off_ns, cause limit 1000",
    "select e.from_host, e.to_host, count(*), sum(e.bytes), sum(e.to_ns - e.from_ns) from edge e join request r \
     on e.to_host = r.host and e.to_connection = r.connection and e.to_ns = r.start_ns where not r.is_sent \
     group by e.from_host, e.to_host order by e.from_host, e.to_host",
    "select a.number, count(*), sum(b.time_ns) from request a join subtree b on b.top = a.id where a.number <= 1000 \
     group by a.number order by a.number",
    "select host, name, kind, cause, sum(time_ns) from blame group by host, name, kind, cause \
     order by host, name, kind, cause",
    "select host, count(*), count(global_ns), sum(global_ns) from trace_wait_global group by host order by host",
    "select address, rank, kind, process, time_ns, largest_in from finding order by address, rank",
];

#[test]
#[ignore = "needs Spark and a minute: `make test-all`"]
fn spark_answers_as_duckdb_does_also_without_an_executor() {
    for (back_ends, requests, waits) in [(2, 300, 500), (4, 2_000, 20_000), (4, 1_000, 60_000)] {
        let exported = PlantedExport::planted(PlantedFleet { back_ends, requests, waits });
        exported.export();
        let Some(expected) = exported.ask("duckdb", &QUERIES, &[]) else { return };
        for words in [&[][..], &["--kill"]] {
            let Some(answers) = exported.ask("spark", &QUERIES, words) else { return };
            for ((query, answer), expected) in QUERIES.iter().zip(answers).zip(&expected) {
                assert!(answer == *expected, "{words:?} {query}\n{answer:?}\n{expected:?}");
            }
        }
    }
}
