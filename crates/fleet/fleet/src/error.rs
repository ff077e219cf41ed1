//! Errors in the traces of many hosts, each with the next step.

use std::path::PathBuf;

use luc_events::store::StoreError;
use luc_fleet_clocks::ClockError;
use luc_fleet_requests::{TooManyWaits, TreeError};
use luc_fleet_rings::WindowError;
use luc_units::number_formats::FormattedTime;
use luc_waits::WaitGraphError;

use crate::counters::CountersError;
use crate::otlp::SpanError;

/// Reason why traces cannot be joined or explained.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    #[error(transparent)]
    Trace(#[from] StoreError),
    #[error(transparent)]
    Spans(#[from] SpanError),
    /// Trace without clock samples.
    #[error("{path}: the trace has no clock samples, so it cannot be put together with others; record it by `luc record --fleet`, without --summary", path = .path.display())]
    NotOfFleet { path: PathBuf },
    #[error("{path}: {reason}", path = .path.display())]
    Clock { path: PathBuf, reason: ClockError },
    /// Trace with more waits than can be numbered.
    #[error("{path}: {reason}", path = .path.display())]
    TooManyWaits { path: PathBuf, reason: TooManyWaits },
    #[error("{second}: this trace is of the same boot of the same host as {first}; give one of them", first = .first.display(), second = .second.display())]
    SameHost { first: PathBuf, second: PathBuf },
    #[error("{second}: its host is named {name}, as that of {first} is; give one of them another name: OTHER={second}", first = .first.display(), second = .second.display())]
    SameName { name: String, first: PathBuf, second: PathBuf },
    #[error(
        "'{0}' has no name before the '=': write it like web-1=DIR, or give the directory alone"
    )]
    NoName(String),
    #[error(transparent)]
    Window(#[from] WindowError),
    #[error("{path}: the clock of one host cannot be compared; give the traces of two hosts or more", path = .path.display())]
    OneHost { path: PathBuf },
    #[error("there is no request {number}: {count} have an answer, and 1 is the slowest")]
    NoSuchRequest { number: usize, count: usize },
    #[error(
        "'{0}' names no thread: write it like 4711@web, or pool-1@web; without @HOST where there is one trace"
    )]
    NoThread(String),
    #[error("there is no host {name}; the traces are of {names}")]
    NoSuchHost { name: String, names: String },
    #[error("the thread {thread} needs its host, one of {names}: write it like {thread}@HOST")]
    WhichHost { thread: String, names: String },
    #[error(
        "there is no thread {name} in the trace of {host}; `luc fleet explain` names those that matter"
    )]
    NoSuchThread { name: String, host: String },
    #[error("several threads of {host} are named {name}: {ids}; give the number of one")]
    WhichThread { name: String, host: String, ids: String },
    #[error("{after} is after the end of the trace of {host}, which is {length} long", after = FormattedTime::from(*.after_ns), length = FormattedTime::from(*.length_ns))]
    AfterTheEnd {
        /// Requested time, ns after the begin of the trace.
        after_ns: u64,
        length_ns: u64,
        host: String,
    },
    /// Times out of range.
    #[error(transparent)]
    Times(#[from] ClockError),
    /// More rows than the graph of waits has indices for.
    #[error(transparent)]
    WaitGraph(#[from] WaitGraphError),
    /// Requests that form no forest.
    #[error(transparent)]
    Tree(#[from] TreeError),
    #[error(transparent)]
    Counters(#[from] CountersError),
}
