//! Traces of many hosts, put together.
//!
//! Directories that `luc record --fleet` wrote go in; what [`luc_fleet_requests`] finds in them comes out, for people and
//! for programs. There is no SQL engine here.
//!
//! - [`Source`], [`read()`]: which traces, and their rows; [`Window`]: of which time, where they are rings.
//! - [`watch`]: when a ring's requests became slow. [`called()`]: whom a service asked.
//! - [`Joined`]: the rows of all hosts as the core wants them, connections paired, clocks related.
//! - [`read_spans`]: what programs call their requests, as OpenTelemetry has it.
//! - [`fit()`]: how the clocks relate. [`explain()`]: connections, messages, requests, and one request's time.
//! - [`why()`]: why a thread does not run, and whom that depends on.
//! - [`counters()`]: hardware counters of a file that `perf stat` wrote.
//! - [`text`]: all of these for people. For programs they are serialized as they are.
//! - [`open`], [`relations()`], [`global_times`]: what an engine for SQL needs.
//! - [`OnFirst`], [`related()`]: what a program needs that checks the clocks.
//! - [`report`]: requests as files for other programs.

mod brand;
mod called;
mod clocks;
mod counters;
mod disks;
mod endpoint;
mod error;
pub mod explain;
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
mod source;
mod syncs;
mod task;
pub mod text;
mod times;
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
pub use read::{Opened, Recorded, Tables, open, read, read_within};
pub use related::{OnFirst, Related, related};
pub use relations::{
    Edge, EdgeSide, GlobalTimes, Knot, PathStep, Relations, RequestNode, WantedRelations,
    global_times, relations,
};
pub use source::Source;
pub use why::{Who, why};

pub use luc_fleet_rings::{Window, WindowError};
