//! What `luc fleet explain --json --rows` says, as far as it is judged.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The answer.
#[derive(Debug, Deserialize)]
pub(super) struct Answer {
    hosts: Vec<Host>,
    pub(super) findings: Vec<Findings>,
    request: Option<Request>,
    pub(super) rows: Rows,
}

#[derive(Debug, Deserialize)]
struct Host {
    lost: BTreeMap<String, u64>,
}

/// Why the slowest requests to an address are slow.
#[derive(Debug, Deserialize)]
pub(super) struct Findings {
    pub(super) address: String,
    slowest: Group,
    pub(super) findings: Vec<Finding>,
}

#[derive(Debug, Deserialize)]
struct Group {
    time_ns: u64,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Finding {
    pub(super) text: String,
    pub(super) kind: String,
    pub(super) who: Party,
    pub(super) waiter: Option<Waiter>,
    pub(super) retransmits: u64,
    pub(super) time_ns: u64,
    pub(super) share: f64,
    pub(super) share_low: f64,
    pub(super) share_high: f64,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Party {
    pub(super) host: String,
    pub(super) process_id: Option<u32>,
    pub(super) thread: Option<u32>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Waiter {
    pub(super) cause: Option<String>,
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

/// All edges and requests.
#[derive(Debug, Deserialize)]
pub(super) struct Rows {
    pub(super) edges: Vec<Edge>,
    pub(super) requests: Vec<RequestRow>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Edge {
    pub(super) from: String,
    pub(super) to: String,
    pub(super) first_byte: u64,
    pub(super) bytes: u64,
    pub(super) sent: Side,
    pub(super) received: Side,
}

#[derive(Debug, Deserialize)]
pub(super) struct Side {
    pub(super) process: u32,
    pub(super) thread: u32,
    pub(super) at_ns: u64,
}

#[derive(Debug, Deserialize)]
pub(super) struct RequestRow {
    pub(super) is_sent: bool,
    pub(super) local: String,
    pub(super) remote: String,
    pub(super) first_byte: u64,
    pub(super) bytes: u64,
    pub(super) asked: Side,
    pub(super) made_for: Option<usize>,
    pub(super) evidence: Option<String>,
}

impl Answer {
    /// Rows that the recorder lost, of all tables.
    pub(super) fn lost_rows(&self) -> u64 {
        self.hosts.iter().flat_map(|host| host.lost.values()).sum()
    }

    /// Whether the parts of the slowest request's path sum to its time, and the findings of each address to the time of
    /// its slowest requests: each path of these is a part of that sum.
    pub(super) fn sums(&self) -> bool {
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
