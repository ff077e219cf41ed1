//! What can be wrong with the traces of many hosts, and what to do about it.

use std::path::PathBuf;

use luc_events::store::StoreError;
use luc_fleet_clocks::ClockError;
use luc_fleet_requests::{TooManyWaits, TreeError};
use luc_fleet_rings::WindowError;
use luc_units::figures::Time;

use crate::counters::CountersError;
use crate::otlp::SpanError;

/// Why traces cannot be put together.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// A trace cannot be read.
    #[error(transparent)]
    Trace(#[from] StoreError),
    /// Spans that cannot be read.
    #[error(transparent)]
    Spans(#[from] SpanError),
    /// A trace without what hosts are put together by.
    #[error("{path}: the trace has no clock samples, so it cannot be put together with others; record it by `luc record --fleet`", path = .path.display())]
    NotOfFleet { path: PathBuf },
    /// Clock samples that cannot be.
    #[error("{path}: {reason}", path = .path.display())]
    Clock { path: PathBuf, reason: ClockError },
    /// A trace of more waits than have numbers.
    #[error("{path}: {reason}", path = .path.display())]
    TooManyWaits {
        path: PathBuf,
        /// How many they may be.
        reason: TooManyWaits,
    },
    /// Two traces of one kernel.
    #[error("{second}: this trace is of the same boot of the same host as {first}; give one of them", first = .first.display(), second = .second.display())]
    SameHost { first: PathBuf, second: PathBuf },
    /// Two hosts of one name.
    #[error("{second}: its host is named {name}, as that of {first} is; give one of them another name: OTHER={second}", first = .first.display(), second = .second.display())]
    SameName { name: String, first: PathBuf, second: PathBuf },
    /// A `NAME=DIR` without a name.
    #[error(
        "'{0}' has no name before the '=': write it like web-1=DIR, or give the directory alone"
    )]
    NoName(String),
    /// A window of a ring.
    #[error(transparent)]
    Window(#[from] WindowError),
    /// One host has no offset.
    #[error("{path}: the clock of one host cannot be compared; give the traces of two hosts or more", path = .path.display())]
    OneHost { path: PathBuf },
    /// No request has this number.
    #[error("there is no request {number}: {count} have an answer, and 1 is the slowest")]
    NoSuchRequest {
        /// What was asked for.
        number: usize,
        /// How many there are.
        count: usize,
    },
    /// A thread without a name, or a host without one.
    #[error(
        "'{0}' names no thread: write it like 4711@web, or pool-1@web; without @HOST where there is one trace"
    )]
    NoThread(String),
    /// No trace is of this host.
    #[error("there is no host {name}; the traces are of {names}")]
    NoSuchHost {
        /// What was asked for.
        name: String,
        /// Those that there are.
        names: String,
    },
    /// A thread without its host.
    #[error("the thread {thread} needs its host, one of {names}: write it like {thread}@HOST")]
    WhichHost {
        /// What was asked for.
        thread: String,
        names: String,
    },
    /// No thread of a host has this id or name.
    #[error(
        "there is no thread {name} in the trace of {host}; `luc fleet explain` names those that matter"
    )]
    NoSuchThread {
        /// What was asked for.
        name: String,
        host: String,
    },
    /// Several threads have this name.
    #[error("several threads of {host} are named {name}: {ids}; give the number of one")]
    WhichThread {
        /// What was asked for.
        name: String,
        host: String,
        ids: String,
    },
    /// A time that the trace does not have.
    #[error("{after} is after the end of the trace of {host}, which is {length} long", after = Time::from(*.after_ns), length = Time::from(*.length_ns))]
    AfterTheEnd {
        /// What was asked for, ns after the trace began.
        after_ns: u64,
        /// How long the trace is, ns.
        length_ns: u64,
        host: String,
    },
    /// Times that no clock shows.
    #[error(transparent)]
    Times(#[from] ClockError),
    /// Requests that are no forest.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// Counters that say nothing, or cannot be read.
    #[error(transparent)]
    Counters(#[from] CountersError),
}
