//! Part `fleet-scale`: time and memory of `luc fleet explain` for the traces of many hosts. It also measures the time
//! to number and sum trees of many nodes.

mod trees;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use luc_harness::error::EvaluateError;
use luc_harness::harness::{Harness, directory_bytes, missing};
use luc_harness::progress::Progress;
use luc_testkit::fleet::PlantedFleet;
use serde::Serialize;
use serde_json::json;

use crate::asked::{Asked, ask};
use trees::Shape;

/// Number of runs of each cell.
const REPEATS: usize = 3;
/// Number of back ends. With the client and the front end there are 100 hosts.
const BACK_ENDS: u64 = 98;
const HOSTS: u64 = BACK_ENDS + 2;
/// Number of rows for each request, as with a query of Solr.
const ROWS_PER_REQUEST: u64 = 75;
/// Memory limit of a process, so that a shortage ends that process alone.
const MEMORY_GIB: u64 = 20;
/// Sizes of the traces, in rows.
const SIZES: [(&str, u64); 3] = [
    ("explain, 10^6 rows", 1_000_000),
    ("explain, 10^7 rows", 10_000_000),
    ("explain, 10^8 rows", 100_000_000),
];
/// Number of nodes in the trees.
const NODES: u32 = 1_000_000;

/// Traces, and the runs that explained them.
#[derive(Debug, Clone, Serialize)]
struct Explained {
    size: &'static str,
    rows: u64,
    requests: u64,
    bytes: u64,
    /// Runs; `None` for one that failed, as where memory is short.
    runs: Vec<Option<Asked>>,
    failed: Option<String>,
}

/// Makes part `fleet-scale`.
///
/// # Errors
/// Traces that cannot be written, and interruption.
pub fn run(harness: &Harness) -> Result<(), EvaluateError> {
    let repeats = harness.options.repeats.unwrap_or(REPEATS).max(1);
    let options = &harness.options;
    let sizes = SIZES.iter().filter(|(name, _)| options.wants(name));
    let sizes: Vec<&(&str, u64)> = sizes.collect();
    let shapes: Vec<Shape> =
        Shape::ALL.into_iter().filter(|shape| options.wants(shape.name())).collect();
    if sizes.is_empty() && shapes.is_empty() {
        return Err(options.no_cell());
    }
    let steps = (sizes.len() + shapes.len()) * repeats;
    let mut progress = Progress::new(harness.part, steps);
    for shape in shapes {
        for _ in 0..repeats {
            let timed = trees::time(shape, NODES, options.seed)?;
            harness.keep(json!({ "tree": shape.name(), "nodes": NODES, "timed": timed }));
            progress.step(&format!("{}: {:.3} s", shape.name(), timed.numbered_s));
        }
    }
    for &(size, rows) in sizes {
        let of_size = explain(harness, size, rows, repeats, &mut progress)?;
        harness.keep(json!(of_size));
    }
    Ok(())
}

/// Explains traces of about `rows` rows.
fn explain(
    harness: &Harness,
    size: &'static str,
    rows: u64,
    repeats: usize,
    progress: &mut Progress,
) -> Result<Explained, EvaluateError> {
    let requests = rows / ROWS_PER_REQUEST;
    let directory = harness.path("traces");
    let mut fleet = PlantedFleet { back_ends: BACK_ENDS, requests, waits: 0 };
    fleet.waits = (rows - fleet.rows()) / HOSTS;
    let traces = fleet
        .write(&directory)
        .map_err(|error| missing(&format!("traces of {rows} rows ({error})")))?;
    let bytes = traces.iter().map(|trace| directory_bytes(trace));
    let bytes: Vec<u64> = bytes.collect::<Result<_, _>>()?;
    let mut of_size = Explained {
        size,
        rows: fleet.rows(),
        requests,
        bytes: bytes.iter().sum(),
        runs: Vec::new(),
        failed: None,
    };
    for _ in 0..repeats {
        let run = match ask(harness, command(harness, &traces), |_| {}) {
            Ok((asked, _)) => {
                progress.step(&format!("{size}: {:.1} s", asked.seconds));
                Some(asked)
            }
            Err(EvaluateError::Command { how, said, .. }) => {
                progress.step(&format!("{size}: {how}"));
                let said = said.lines().next().unwrap_or_default();
                of_size.failed = Some(format!("{how}: {said}"));
                None
            }
            Err(error) => return Err(error),
        };
        let has_failed = run.is_none();
        of_size.runs.push(run);
        if has_failed {
            // It would again.
            break;
        }
    }
    fs::remove_dir_all(&directory).map_err(EvaluateError::file("remove", &directory))?;
    Ok(of_size)
}

fn command(harness: &Harness, traces: &[PathBuf]) -> Command {
    let mut command = Command::new("prlimit");
    command.arg(format!("--as={}", MEMORY_GIB << 30));
    command.arg(harness.luc_path());
    command.args(["fleet", "explain", "--json"]).args(traces);
    command
}
