//! Explains the traces: connections, messages, requests, and why the slowest requests are slow.

mod charge;
mod connections;
mod finding;
mod findings;
mod found;
mod idle;
mod messages;
mod named;
mod nodes;
mod one_way;
mod path;
mod ranking;
mod request;
mod requests;
mod roots;
mod rows;
mod service;

use serde::Serialize;

use crate::error::FleetError;
use crate::fit::{PairReport, Unrelated, describe_contradiction, report_pairs, report_unrelated};
use crate::joined::{HostSummary, Joined};
use crate::map::LeftOut;
pub use connections::{ConnectionsReport, Paired, UnpairedEnd};
pub use finding::{Beside, Finding, Party, Waiter};
pub(crate) use finding::{find_services, worth_showing};
pub(crate) use findings::Charges;
pub use findings::{Findings, Group};
pub(crate) use found::Found;
pub(crate) use idle::word as awaits_word;
pub use idle::{Idle, Ticking, WaitRow};
pub use messages::{GapReport, MessagesReport, RowsLeftOut};
pub use named::{SpanCounts, SpanName, SpansReport};
pub(crate) use nodes::{Node, ProcessKey, evidence, nodes, time_ns};
pub use one_way::OneWay;
pub use path::PathPart;
pub use ranking::Ranked;
pub(crate) use ranking::Top;
pub(crate) use request::reports;
pub use request::{Actor, CallReport, RequestReport};
pub use requests::{HandOverReport, RequestsReport};
pub use rows::{EdgeRow, RequestRow, Rows, SideRow};
pub use service::ServiceReport;

/// Maximum number of slowest requests that are listed.
const MAX_SLOWEST: usize = 10;

/// Optional parts of an explanation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Number of the request to show; 1 is the slowest. `None`: the slowest.
    pub request: Option<usize>,
    /// Whether to list each edge, request and wait.
    pub rows: bool,
}

/// Everything that `luc-fleet explain` says of the traces.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Explanation {
    pub hosts: Vec<HostSummary>,
    /// Findings for each address; the address with the most time comes first.
    pub findings: Vec<Findings>,
    pub clocks: Vec<PairReport>,
    pub unrelated: Vec<Unrelated>,
    /// Contradiction between pairs of clocks, in words. Times between hosts are then unknown.
    pub contradiction: Option<String>,
    pub connections: ConnectionsReport,
    pub messages: MessagesReport,
    /// Times of messages from host to host.
    pub one_way: Vec<OneWay>,
    /// Counts of requests, and of the evidence that links them.
    pub requests: RequestsReport,
    /// Services with their times, the busiest first.
    pub services: Vec<ServiceReport>,
    pub idle: Vec<Idle>,
    /// Slowest requests that are not known to be made for another one.
    pub slowest: Vec<Ranked>,
    pub request: Option<RequestReport>,
    /// Rows that are left out.
    pub left_out: LeftOut,
    /// Each edge, request and wait, if asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<Rows>,
}

/// Explains the traces.
///
/// # Errors
/// [`FleetError::NoSuchRequest`], [`FleetError::Tree`].
pub fn explain(joined: &Joined, wanted: Wanted) -> Result<Explanation, FleetError> {
    explain_found(&Charges::new(&Found::new(joined)?), wanted)
}

/// Like [`explain`], for requests that have been found already.
pub(crate) fn explain_found(
    charges: &Charges<'_>,
    wanted: Wanted,
) -> Result<Explanation, FleetError> {
    let found = charges.found;
    let joined = found.joined;
    let number = match wanted.request {
        Some(number) => Some(found.top(number)?.ranked.number),
        None => found.top(1).ok().map(|top| top.ranked.number),
    };
    Ok(Explanation {
        hosts: joined.hosts.iter().map(|host| host.summary.clone()).collect(),
        findings: charges.of_slowest(),
        clocks: report_pairs(joined),
        unrelated: report_unrelated(joined),
        contradiction: describe_contradiction(joined),
        connections: connections::report(joined),
        one_way: one_way::report(joined, &found.messages.edges),
        messages: messages::report(joined, &found.messages),
        services: service::report(joined, &found.requests),
        idle: idle::report(found, charges.engaged()),
        slowest: found.ranking.slowest(MAX_SLOWEST),
        request: request::reports(found, number)?.pop(),
        rows: wanted.rows.then(|| rows::report(found, charges.engaged())),
        requests: requests::report(&found.requests, found.named.report()),
        left_out: joined.rows.left_out,
    })
}
