//! The judged parts of the output of `luc fleet explain --json --rows`.

use std::collections::BTreeMap;
use std::path::Path;

use luc_harness::error::EvaluateError;
use luc_harness::harness::{Harness, missing};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
pub(crate) struct Answer {
    hosts: Vec<Host>,
    pub(crate) findings: Vec<Findings>,
    pub(crate) idle: Vec<Idle>,
    request: Option<Request>,
    pub(crate) rows: Rows,
}

/// Idle threads of a host.
#[derive(Debug, Deserialize)]
pub(crate) struct Idle {
    pub(crate) ticking: Vec<Ticking>,
}

/// A thread that wakes for nothing.
#[derive(Debug, Deserialize)]
pub(crate) struct Ticking {
    pub(crate) thread: u32,
}

#[derive(Debug, Deserialize)]
struct Host {
    lost: BTreeMap<String, u64>,
}

/// Findings on the slowest requests to an address.
#[derive(Debug, Deserialize)]
pub(crate) struct Findings {
    pub(crate) address: String,
    slowest: Group,
    pub(crate) findings: Vec<Finding>,
}

#[derive(Debug, Deserialize)]
struct Group {
    time_ns: u64,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Finding {
    pub(crate) text: String,
    pub(crate) kind: String,
    pub(crate) who: Party,
    pub(crate) waiter: Option<Waiter>,
    pub(crate) holder: Option<Party>,
    pub(crate) beside: Option<Beside>,
    pub(crate) retransmits: u64,
    pub(crate) time_ns: u64,
    pub(crate) share: f64,
    pub(crate) share_low: f64,
    pub(crate) share_high: f64,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Party {
    pub(crate) host: String,
    pub(crate) process_id: Option<u32>,
    pub(crate) thread: Option<u32>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Beside {
    pub(crate) who: Party,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Waiter {
    pub(crate) cause: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Request {
    request: Ranked,
    path: Vec<Part>,
}

#[derive(Debug, Deserialize)]
struct Ranked {
    time_ns: u64,
}

#[derive(Debug, Deserialize)]
struct Part {
    time_ns: u64,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Rows {
    pub(crate) edges: Vec<Edge>,
    pub(crate) requests: Vec<RequestRow>,
    pub(crate) waits: Vec<WaitRow>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct WaitRow {
    pub(crate) thread: u32,
    pub(crate) off_ns: u64,
    pub(crate) awaits: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Edge {
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) first_byte: u64,
    pub(crate) bytes: u64,
    pub(crate) sent: Side,
    pub(crate) received: Side,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Side {
    pub(crate) process: u32,
    pub(crate) thread: u32,
    pub(crate) at_ns: u64,
}

#[derive(Debug, Deserialize)]
pub(crate) struct RequestRow {
    pub(crate) is_sent: bool,
    pub(crate) local: String,
    pub(crate) remote: String,
    pub(crate) first_byte: u64,
    pub(crate) bytes: u64,
    pub(crate) asked: Side,
    pub(crate) made_for: Option<usize>,
    pub(crate) evidence: Option<String>,
    pub(crate) span: Option<Span>,
}

/// The span that is assigned to a request.
#[derive(Debug, Deserialize)]
pub(crate) struct Span {
    pub(crate) span_id: String,
}

impl RequestRow {
    /// Whether a byte of its connection's direction belongs to the request.
    pub(crate) fn has(&self, byte: u64) -> bool {
        (self.first_byte..self.first_byte.saturating_add(self.bytes)).contains(&byte)
    }
}

impl Answer {
    /// Explains traces.
    ///
    /// # Errors
    /// A command that fails, or says something else.
    pub(crate) fn of(harness: &Harness, traces: &[&Path]) -> Result<Self, EvaluateError> {
        let mut command = harness.luc(&["fleet", "explain", "--json", "--rows"]);
        let said = harness.execute(command.args(traces), &[0])?.stdout;
        serde_json::from_str(&said).map_err(|error| missing(&format!("the answer ({error})")))
    }

    /// Rows that the recorder lost, of all tables.
    pub(crate) fn lost_rows(&self) -> u64 {
        self.hosts.iter().flat_map(|host| host.lost.values()).sum()
    }

    /// Whether the parts of the slowest request's path sum to its time. The findings of each address must also sum to
    /// the time of its slowest requests. Each path of these is a part of that sum.
    pub(crate) fn sums(&self) -> bool {
        let of_request = self.request.as_ref().is_none_or(|one| {
            let sum_ns: u64 = one.path.iter().map(|part| part.time_ns).sum();
            sum_ns == one.request.time_ns
        });
        of_request
            && self.findings.iter().all(|group| {
                let sum_ns: u64 = group.findings.iter().map(|one| one.time_ns).sum();
                sum_ns == group.slowest.time_ns
            })
    }
}
