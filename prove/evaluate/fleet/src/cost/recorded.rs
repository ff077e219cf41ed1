//! Counts of a trace's rows.

use std::path::Path;

use luc_events::store::{StoreError, TraceReader};
use luc_events::tables::{
    BriefWait, ConnectionMessage, ExchangeSum, LostEvents, OffCpuWait, SocketConnection, TcpPacket,
};
use luc_harness::error::EvaluateError;
use luc_harness::harness::directory_bytes;
use serde::Serialize;

/// Numbers of rows in a trace.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Rows {
    pub messages: u64,
    pub packets: u64,
    pub connections: u64,
    pub waits: u64,
    pub brief_waits: u64,
    /// Requests that sums of the trace count.
    pub exchanges: u64,
    /// Events that were lost, of any table.
    pub lost: u64,
    pub trace_bytes: u64,
    /// Time from the beginning of the recording to its end.
    pub trace_s: f64,
}

/// Counts the rows of a trace.
///
/// # Errors
/// [`EvaluateError`]: it cannot be read.
pub fn rows(directory: &Path) -> Result<Rows, EvaluateError> {
    let trace_bytes = directory_bytes(directory)?;
    count_rows(directory, trace_bytes).map_err(|error| EvaluateError::Trace(Box::new(error)))
}

fn count_rows(directory: &Path, trace_bytes: u64) -> Result<Rows, StoreError> {
    let reader = TraceReader::open(directory)?;
    let mut lost = 0;
    for row in reader.rows::<LostEvents>()? {
        lost += row?.count;
    }
    let mut exchanges = 0;
    for row in reader.rows::<ExchangeSum>()? {
        exchanges += row?.count;
    }
    let trace = reader.trace();
    Ok(Rows {
        messages: reader.rows::<ConnectionMessage>()?.rows_in_all(),
        packets: reader.rows::<TcpPacket>()?.rows_in_all(),
        connections: reader.rows::<SocketConnection>()?.rows_in_all(),
        waits: reader.rows::<OffCpuWait>()?.rows_in_all(),
        brief_waits: reader.rows::<BriefWait>()?.rows_in_all(),
        exchanges,
        lost,
        trace_bytes,
        trace_s: trace.end_ns.saturating_sub(trace.start_ns) as f64 / 1e9,
    })
}
