//! Part `fleet-sql`: queries over traces of many hosts, by one process and by a scheduler with executors, one of which
//! may be killed meanwhile: whether the answers are the same, how long they take, and in how much memory.

mod kills;
mod page;
mod servers;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use luc_harness::error::EvaluateError;
use luc_harness::harness::{Harness, directory_bytes, missing};
use luc_harness::progress::Progress;
use luc_harness::report::Page;
use luc_harness::runs::Runs;
use luc_testkit::fleet::PlantedFleet;
use serde::{Deserialize, Serialize};
use serde_json::json;

use servers::{EXECUTORS, MEMORY_MIB, Servers};

use crate::asked::{Asked, ask};

/// Back ends; with the client and the front end there are ten hosts.
const BACK_ENDS: u64 = 8;
/// There are not more requests, however many rows.
const MOST_REQUESTS: u64 = 50_000;
/// Queries of the tables in the schema `fleet` are made once of so many rows: these tables take minutes each time.
const ONCE_FROM_ROWS: u64 = 100_000_000;
/// Sizes of the traces, in rows.
const SCALES: [(&str, u64); 3] =
    [("10^6 rows", 1_000_000), ("10^7 rows", 10_000_000), ("10^8 rows", 100_000_000)];

/// A query, and what it is.
#[derive(Debug, Clone, Copy)]
struct Query {
    name: &'static str,
    sql: &'static str,
}

const QUERIES: [Query; 5] = [
    Query {
        name: "waits summed by host and cause",
        sql: "select host, cause, count(*) as n, sum(on_ns - off_ns) as ns, max(on_ns - woken_ns) as queued \
              from wait group by host, cause order by host, cause",
    },
    Query {
        name: "waits summed by thread, the longest 100",
        sql: "select host, thread, cause, count(*) as n, sum(on_ns - off_ns) as ns from wait \
              group by host, thread, cause order by ns desc, host, thread, cause limit 100",
    },
    Query {
        name: "the 1,000 longest waits",
        sql: "select on_ns - off_ns as ns, host, thread, off_ns, cause from wait \
              order by ns desc, host, thread, off_ns, cause limit 1000",
    },
    Query {
        name: "edges joined with requests",
        sql: "select e.from_host, e.to_host, count(*) as n, sum(e.bytes) as bytes, sum(e.to_ns - e.from_ns) as ns \
              from fleet.edge e join fleet.request r on e.to_host = r.host and e.to_connection = r.connection \
              and e.to_ns = r.start_ns where not r.is_sent group by 1, 2 order by 1, 2",
    },
    Query {
        name: "time below each of the 1,000 slowest requests",
        sql: "select a.number, count(*) as n, sum(b.time_ns) as ns from fleet.request a join fleet.request b \
              on a.root = b.root and b.pre between a.pre and a.last where a.number <= 1000 \
              group by a.number order by a.number",
    },
];

/// A query of one size, answered by all.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Run {
    one: Asked,
    cluster: Asked,
    /// One executor is killed in the middle of it.
    killed: Asked,
    /// Whether the query had not ended then.
    was_killed_meanwhile: bool,
    /// Whether the cluster's answer is that of one process.
    same: bool,
    /// Whether it is also that where an executor was killed.
    same_killed: bool,
}

/// Traces of one size.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct Size {
    rows: u64,
    requests: u64,
    bytes: u64,
}

/// What is kept of a run.
#[derive(Debug, Deserialize, Serialize)]
struct Known {
    size: Size,
    run: Run,
}

/// What was measured of a size and a query.
#[derive(Debug, Clone)]
struct Cell {
    scale: &'static str,
    size: Size,
    query: &'static str,
    runs: Vec<Run>,
}

/// Makes part `fleet-sql`.
///
/// # Errors
/// A program that is not there or fails, and interruption.
pub fn run(harness: &Harness) -> Result<Page, EvaluateError> {
    let repeats = harness.options.repeats.unwrap_or(3).max(1);
    let program = harness.luc_path().with_file_name("luc-fleet-sql");
    if !program.is_file() {
        return Err(missing("luc-fleet-sql beside luc (`make product-sql`)"));
    }
    let wanted: Vec<(&str, u64, Vec<Query>)> = SCALES
        .into_iter()
        .map(|(scale, rows)| {
            let is_wanted =
                |query: &Query| harness.options.wants(&format!("{scale}, {}", query.name));
            (scale, rows, QUERIES.into_iter().filter(is_wanted).collect())
        })
        .filter(|(_, _, queries): &(_, _, Vec<Query>)| !queries.is_empty())
        .collect();
    let kills = kills::wanted(harness).len();
    if wanted.is_empty() && kills == 0 {
        let only = harness.options.only.clone().unwrap_or_default();
        return Err(EvaluateError::NoCell(only));
    }
    let repeats_of = |rows: u64, query: &Query| {
        let is_found = query.sql.contains("fleet.");
        if is_found && rows >= ONCE_FROM_ROWS { 1 } else { repeats }
    };
    let steps = wanted
        .iter()
        .flat_map(|(_, rows, queries)| queries.iter().map(|query| repeats_of(*rows, query)));
    let mut progress = Progress::new(harness.part, steps.sum::<usize>() + kills);
    let earlier = Runs::open(harness);
    let mut cells = Vec::new();
    for (scale, rows, queries) in wanted {
        let directory = harness.path("traces");
        // Runs that are there already need none.
        let mut planted: Option<(Size, Vec<PathBuf>)> = None;
        for query in queries {
            let mut runs = Vec::new();
            let mut size = Size::default();
            for repeat in 0..repeats_of(rows, &query) {
                let key = json!({ "scale": scale, "query": query.name, "repeat": repeat });
                let result = earlier.get(&key, || {
                    let (size, traces) = match &mut planted {
                        Some(planted) => planted,
                        none => none.insert(plant(&directory, rows)?),
                    };
                    let (size, run) = (*size, once(harness, &program, query, traces)?);
                    Ok(json!(Known { size, run }))
                })?;
                let known: Known =
                    serde_json::from_value(result).map_err(|_| missing("the run of a query"))?;
                size = known.size;
                progress.step(&format!("{scale}, {}: {:.1} s", query.name, known.run.one.seconds));
                runs.push(known.run);
            }
            cells.push(Cell { scale, size, query: query.name, runs });
        }
        if planted.is_some() {
            fs::remove_dir_all(&directory).map_err(EvaluateError::file("remove", &directory))?;
        }
    }
    let kills = kills::run(harness, &program, &earlier, &mut progress)?;
    Ok(page::page(&cells, &kills, repeats))
}

/// Makes traces of about so many rows.
fn plant(directory: &Path, rows: u64) -> Result<(Size, Vec<PathBuf>), EvaluateError> {
    let requests = (rows / 100).min(MOST_REQUESTS);
    let mut fleet = PlantedFleet { back_ends: BACK_ENDS, requests, waits: 0 };
    fleet.waits = (rows - fleet.rows()) / (BACK_ENDS + 2);
    let traces = fleet
        .write(directory)
        .map_err(|error| missing(&format!("traces of {rows} rows ({error})")))?;
    let mut bytes = 0;
    for trace in &traces {
        bytes += directory_bytes(trace)?;
    }
    let size = Size { rows: fleet.rows(), requests, bytes };
    Ok((size, traces))
}

fn once(
    harness: &Harness,
    program: &Path,
    query: Query,
    traces: &[PathBuf],
) -> Result<Run, EvaluateError> {
    let memory = format!("{MEMORY_MIB}MiB");
    let command = |words: &[&str]| {
        let mut command = Command::new(program);
        command.args(words).arg(query.sql).args(traces);
        command
    };
    let words = ["sql", "--csv", "--memory", &memory];
    let (one, answer) = ask(harness, command(&words), |_| {})?;
    let cluster = |kill_after: Option<Duration>| -> Result<(Asked, Vec<u8>, bool), EvaluateError> {
        let mut servers = Servers::start(harness, program)?;
        let url = servers.url();
        let words = ["sql", "--csv", "--cluster", &url];
        let began = Instant::now();
        let mut kill_after = kill_after;
        let mut was_killed = false;
        let (mut asked, answer) = ask(harness, command(&words), |_| {
            if kill_after.is_some_and(|after| began.elapsed() >= after) {
                kill_after = None;
                was_killed = servers.kill(EXECUTORS - 1);
            }
        })?;
        asked.peak_bytes += servers.peak_bytes();
        Ok((asked, answer, was_killed))
    };
    let (asked, same, _) = cluster(None)?;
    let half = Duration::from_secs_f64(asked.seconds * 0.5);
    let (killed, same_killed, was_killed_meanwhile) = cluster(Some(half))?;
    Ok(Run {
        same: same == answer,
        same_killed: same_killed == answer,
        one,
        cluster: asked,
        killed,
        was_killed_meanwhile,
    })
}
