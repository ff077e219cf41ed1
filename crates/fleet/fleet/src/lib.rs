//! Traces of many hosts, put together.
//!
//! Reads directories that `luc record --fleet` wrote. Reports what [`luc_fleet_requests`] finds in them, for people and
//! for programs.
//!
//! - [`TraceArgument`], [`read()`]: names of traces, and their rows; [`Window`]: the time to read of a ring.
//! - [`watch`]: detects that a ring's requests became slow. [`called()`]: finds whom a service asked.
//! - [`Joined`]: the rows of all hosts, with connections paired and clocks related.
//! - [`read_spans`]: spans of OpenTelemetry, which name requests.
//! - [`fit()`]: how the clocks relate. [`explain()`]: connections, messages, requests, and one request's time.
//! - [`why()`]: why a thread does not run, and which threads that depends on.
//! - [`counters()`]: hardware counters of a trace or of a file that `perf stat` wrote.
//! - [`text`]: prints these results. For programs they are serialized.
//! - [`export`]: writes results as Parquet files, with views for DuckDB, Spark and other engines.
//! - [`OnFirst`], [`related()`]: access to clocks, for programs that check them.
//! - [`report`]: writes requests to files for other programs.
//!
//! # From directories to findings
//!
//! 1. `source` is how people name traces, `read` their rows, `task` who a thread is.
//! 2. `map` makes the rows of `luc_fleet_requests` of them, leaves out what is not sure, and counts it. `map/origins`
//!    says from where offsets count.
//! 3. `joined` has the rows of all hosts, paired, read one host after the other. `times` is what threads did, `disks`
//!    what disks did for whom.
//! 4. `clocks` relates the hosts, and puts events of one on the clock of another.
//! 5. `explain` says why the slowest requests are slow, with a file for each part. `explain/found` is what all
//!    reports rest on. `explain/charge` says to whom a part of a path is charged. `explain/findings` makes findings
//!    of that. `explain/idle` counts threads without work.
//! 6. `text` shows it; `report` writes files: a page by `luc-graphs`, a Perfetto trace by `luc-report`'s packets,
//!    spans.
//!
//! `watch` says when requests became slow, and `called` whom a service asked. `handover` runs `luc-fleet-store` for
//! rings in object stores.

mod brand;
mod called;
mod clocks;
mod counters;
mod disks;
mod endpoint;
mod error;
pub mod explain;
pub mod export;
mod figures;
pub mod fit;
mod joined;
mod map;
mod names;
mod otlp;
mod read;
mod related;
mod relations;
pub mod report;
mod syncs;
mod task;
pub mod text;
mod times;
mod trace_argument;
mod wait_kind;
mod waits;
pub mod watch;
pub mod why;

pub use called::called;
pub use counters::{Counters, CountersError, EventCount, Show, counters, events_of};
pub use endpoint::Endpoint;
pub use error::FleetError;
pub use explain::{Explanation, Wanted, explain};
pub use figures::Spread;
pub use fit::{Fit, fit};
pub use joined::{HostSummary, Joined};
pub use map::LeftOut;
pub use otlp::{Span, SpanError, Spans, parse as parse_spans, read_spans};
pub use read::{Recorded, Tables, read, read_within};
pub use related::{OnFirst, Related, related};
pub use trace_argument::TraceArgument;
pub use why::{Who, why};

pub use luc_fleet_rings::{Window, WindowError};
