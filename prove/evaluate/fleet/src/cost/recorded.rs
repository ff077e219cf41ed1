//! Counts of a trace's rows.

use std::fs;
use std::path::Path;

use luc_events::store::{Reader, StoreError};
use luc_events::tables::{BriefWait, Connection, ExchangeSum, Lost, Message, Packet, Wait};
use luc_harness::error::EvaluateError;
use luc_harness::harness::directory_bytes;
use serde::Serialize;

/// Numbers of rows in a trace.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Rows {
    pub(super) messages: u64,
    pub(super) packets: u64,
    pub(super) connections: u64,
    pub(super) waits: u64,
    pub(super) brief_waits: u64,
    /// Requests that sums of the trace count.
    pub(super) exchanges: u64,
    /// Events that were lost, of any table.
    pub(super) lost: u64,
    pub(super) trace_bytes: u64,
    /// Time from the beginning of the recording to its end.
    pub(super) trace_s: f64,
}

/// Counts the rows of a trace, and removes it.
pub(super) fn take_rows(directory: &Path) -> Result<Rows, EvaluateError> {
    let trace_bytes = directory_bytes(directory)?;
    let rows = count_rows(directory, trace_bytes)
        .map_err(|error| EvaluateError::Trace(Box::new(error)))?;
    fs::remove_dir_all(directory).map_err(EvaluateError::file("remove", directory))?;
    Ok(rows)
}

fn count_rows(directory: &Path, trace_bytes: u64) -> Result<Rows, StoreError> {
    let reader = Reader::open(directory)?;
    let mut lost = 0;
    for row in reader.rows::<Lost>()? {
        lost += row?.count;
    }
    let mut exchanges = 0;
    for row in reader.rows::<ExchangeSum>()? {
        exchanges += row?.count;
    }
    let trace = reader.trace();
    Ok(Rows {
        messages: reader.rows::<Message>()?.rows_in_all(),
        packets: reader.rows::<Packet>()?.rows_in_all(),
        connections: reader.rows::<Connection>()?.rows_in_all(),
        waits: reader.rows::<Wait>()?.rows_in_all(),
        brief_waits: reader.rows::<BriefWait>()?.rows_in_all(),
        exchanges,
        lost,
        trace_bytes,
        trace_s: trace.end_ns.saturating_sub(trace.start_ns) as f64 / 1e9,
    })
}
