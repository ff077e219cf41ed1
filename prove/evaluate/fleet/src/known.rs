//! Part `fleet-known`: whether the recorder knows each thread's function and each lock's holder. It also checks
//! whether the times of threads and of the whole machine close.

mod accounts;
pub(crate) mod names;

use std::path::Path;

use luc_events::store::{StoreError, TableRow, TraceReader};
use luc_harness::error::EvaluateError;
use luc_harness::harness::Harness;
use luc_harness::progress::Progress;
use serde_json::json;

/// Number of runs of each cell.
const REPEATS: usize = 3;
const NAMES: &str = "start routines and holders";
const ACCOUNTS: &str = "accounts";

/// Makes part `fleet-known`.
///
/// # Errors
/// A program that is not there or fails, and interruption.
pub fn run(harness: &Harness) -> Result<(), EvaluateError> {
    let repeats = harness.options.repeats.unwrap_or(REPEATS).max(1);
    let [of_names, of_accounts] = [NAMES, ACCOUNTS].map(|name| harness.options.wants(name));
    if !of_names && !of_accounts {
        return Err(harness.options.no_cell());
    }
    // PostgreSQL refuses to be root.
    harness.let_others_pass()?;
    let cells = usize::from(of_names) + usize::from(of_accounts);
    let mut progress = Progress::new(harness.part, cells * repeats);
    let servers = of_accounts.then(|| accounts::start(harness)).transpose()?;
    for _ in 0..repeats {
        if of_names {
            let run = names::once(harness)?;
            progress.step(&run.brief());
            harness.keep(json!(run));
        }
        if let Some(servers) = &servers {
            let run = accounts::once(harness, servers)?;
            progress.step(&run.brief());
            harness.keep(json!(run));
        }
    }
    Ok(())
}

/// Reads the rows of a table.
pub(crate) fn rows<T: TableRow>(trace: &Path) -> Result<Vec<T>, EvaluateError> {
    let unreadable = |error: StoreError| EvaluateError::Trace(Box::new(error));
    let reader = TraceReader::open(trace).map_err(unreadable)?;
    let rows = reader.rows::<T>().map_err(unreadable)?;
    rows.collect::<Result<_, _>>().map_err(unreadable)
}
