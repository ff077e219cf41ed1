//! Traces of many hosts, put together.
//!
//! Reads directories that `luc record --fleet` wrote. Reports what [`luc_fleet_requests`] finds in them, for people and
//! for programs.
//!
//! - [`TraceArgument`], [`read()`]: names of traces, and their rows; [`TimeWindow`]: the time to read of a ring.
//! - [`slow_service_detector`]: detects that a ring's requests became slow. [`called()`]: finds whom a service asked.
//! - [`JoinedTraces`]: the rows of all hosts, with connections paired and clocks related.
//! - [`read_spans`]: spans of OpenTelemetry, which name requests.
//! - [`fit()`]: how the clocks relate. [`explain()`]: connections, messages, requests, and one request's time.
//! - [`why()`]: why a thread does not run, and which threads that depends on.
//! - [`counters()`]: hardware counters of a trace or of a file that `perf stat` wrote.
//! - [`text`]: prints these results. For programs they are serialized.
//! - [`export`]: writes results as Parquet files, with views for DuckDB, Spark and other engines.
//! - [`FirstHostClock`], [`related()`]: access to clocks, for programs that check them.
//! - [`report`]: writes requests to files for other programs.
//!
//! # From directories to findings
//!
//! 1. `trace_argument` is how people name traces, `read_hosts` their rows, `host_tasks` who a thread is.
//! 2. `convert_rows` makes the rows of `luc_fleet_requests` of them, leaves out what is not sure, and counts it.
//!    `convert_rows/connection_origins` says from where offsets count.
//! 3. `joined_traces` has the rows of all hosts, paired, read one host after the other. `thread_times` is what threads
//!    did, `others_disk_work` what disks did for whom.
//! 4. `host_clocks` relates the hosts, and puts events of one on the clock of another.
//! 5. `explain` says why the slowest requests are slow, with a file for each part. `explain/fleet_requests` is what all
//!    reports rest on. `wait_graph` makes the graph of waits of all rows. `explain/slow_request_findings` compares the roots of
//!    slow requests with those of usual ones, and `explain/request_path` shows one request's.
//!    `explain/idle_threads` counts threads without work. `wait_chain` follows waits at one moment.
//! 6. `text` shows it; `report` writes files: a page by `luc-graphs`, a Perfetto trace by `luc-report`'s packets,
//!    spans.
//!
//! `slow_service_detector` says when requests became slow, and `asked_services` whom a service asked.
//! `companion_program` runs `luc-fleet-store` for rings in object stores.

mod asked_services;
mod clock_check;
pub mod clock_fit_report;
mod convert_rows;
mod counters;
mod endpoint;
mod error;
pub mod explain;
pub mod export;
mod flat_rows;
mod host_clocks;
mod host_tasks;
mod joined_traces;
mod min_median_max;
mod others_disk_work;
mod otlp;
mod read_hosts;
pub mod report;
pub mod slow_service_detector;
mod socket_names;
pub mod text;
mod thread_descriptions;
mod thread_times;
mod trace_argument;
mod wait_causes;
mod wait_chain;
mod wait_graph;
pub mod why_command;

pub use asked_services::called;
pub use clock_check::{FirstHostClock, PairWithPackets, related};
pub use clock_fit_report::{ClockFitReport, fit};
pub use convert_rows::UnconvertedRows;
pub use counters::{
    CounterSelection, CountersError, CountersReport, EventCount, counters, events_of,
};
pub use endpoint::Endpoint;
pub use error::FleetError;
pub use explain::{ExplanationOptions, FleetExplanation, explain};
pub use joined_traces::{HostSummary, JoinedTraces};
pub use min_median_max::MinMedianMax;
pub use otlp::{ProgramSpan, ProgramSpans, SpanError, parse as parse_spans, read_spans};
pub use read_hosts::{RecordedHost, TablesToRead, read, read_within};
pub use trace_argument::TraceArgument;
pub use why_command::{ThreadName, why};

pub use luc_fleet_rings::{TimeWindow, WindowError};
