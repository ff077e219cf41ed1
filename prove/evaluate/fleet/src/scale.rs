//! Traces of many hosts and trees of many nodes, for part `fleet-scale`.

mod trees;

use std::path::Path;

use luc_harness::error::EvaluateError;
use luc_harness::harness::{directory_bytes, missing};
use luc_testkit::fleet::PlantedFleet;
use serde_json::{Value, json};

pub use trees::{Shape, time};

/// Number of back ends. With the client and the front end there are 100 hosts.
const BACK_ENDS: u64 = 98;
const HOSTS: u64 = BACK_ENDS + 2;
/// Number of rows for each request, as with a query of Solr.
const ROWS_PER_REQUEST: u64 = 75;

/// Writes traces of about `rows` rows. Returns their rows, requests and bytes.
///
/// # Errors
/// Traces that cannot be written.
pub fn write(directory: &Path, rows: u64) -> Result<Value, EvaluateError> {
    let requests = rows / ROWS_PER_REQUEST;
    let mut fleet = PlantedFleet { back_ends: BACK_ENDS, requests, waits: 0 };
    fleet.waits = (rows - fleet.rows()) / HOSTS;
    let traces = fleet
        .write(directory)
        .map_err(|error| missing(&format!("traces of {rows} rows ({error})")))?;
    let bytes = traces.iter().map(|trace| directory_bytes(trace)).sum::<Result<u64, _>>()?;
    Ok(json!({ "rows": fleet.rows(), "requests": requests, "bytes": bytes }))
}
