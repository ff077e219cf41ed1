//! What connects the hosts: connections, messages, requests.

mod charge;
mod connections;
mod finding;
mod findings;
mod found;
mod idle;
mod messages;
mod named;
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
use crate::fit::{PairReport, Unrelated, contradiction, pairs, unrelated};
use crate::joined::{HostSummary, Joined};
use crate::map::LeftOut;
pub use connections::{ConnectionsReport, Paired, UnpairedEnd};
pub use finding::{Beside, Finding, Party, Waiter};
pub(crate) use finding::{services, worth_showing};
pub(crate) use findings::Charges;
pub use findings::{Findings, Group};
pub(crate) use found::Found;
pub(crate) use idle::word as awaits_word;
pub use idle::{Idle, Ticking, WaitRow};
pub use messages::{GapReport, MessagesReport, RowsLeftOut};
pub use named::{SpanCounts, SpanName, SpansReport};
pub use one_way::OneWay;
pub use path::PathPart;
pub use ranking::Ranked;
pub(crate) use ranking::Top;
pub(crate) use request::reports;
pub use request::{Actor, Call, RequestReport};
pub(crate) use requests::evidence;
pub use requests::{HandOverReport, RequestsReport};
pub use rows::{EdgeRow, RequestRow, Rows, SideRow};
pub use service::Service;

/// Requests that are listed.
const LISTED: usize = 10;

/// What is wanted beside what every explanation has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The request of this number, by time; else the slowest.
    pub request: Option<usize>,
    /// Each edge and each request.
    pub rows: bool,
}

/// What connects many hosts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Explanation {
    pub hosts: Vec<HostSummary>,
    /// Why the slowest requests are slow, by the address that they were sent to. What took the most time comes first.
    pub findings: Vec<Findings>,
    /// How the clocks relate.
    pub clocks: Vec<PairReport>,
    /// Hosts whose clocks do not relate to any other's.
    pub unrelated: Vec<Unrelated>,
    /// Where the pairs of more than two hosts contradict each other: times between hosts are not known then.
    pub contradiction: Option<String>,
    /// Which ends are one connection.
    pub connections: ConnectionsReport,
    /// Which sends fed which receptions.
    pub messages: MessagesReport,
    /// How long messages took.
    pub one_way: Vec<OneWay>,
    /// Requests, and what was made for what.
    pub requests: RequestsReport,
    /// How long services took, the busiest first.
    pub services: Vec<Service>,
    /// Threads without work, by host.
    pub idle: Vec<Idle>,
    /// The slowest requests that are not known to be made for another one.
    pub slowest: Vec<Ranked>,
    pub request: Option<RequestReport>,
    /// Rows that take no part.
    pub left_out: LeftOut,
    /// Each edge and each request, if they are wanted.
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

/// The same, of what has been found in the traces.
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
    let summaries = joined.hosts.iter().map(|host| host.summary.clone());
    Ok(Explanation {
        hosts: summaries.collect(),
        findings: charges.of_slowest(),
        clocks: pairs(joined),
        unrelated: unrelated(joined),
        contradiction: contradiction(joined),
        connections: connections::report(joined),
        one_way: one_way::report(joined, &found.messages.edges),
        messages: messages::report(joined, &found.messages),
        services: service::report(joined, &found.requests),
        idle: idle::report(found, charges.engaged()),
        slowest: found.ranking.slowest(LISTED),
        request: request::reports(found, number)?.pop(),
        rows: wanted.rows.then(|| rows::report(found, charges.engaged())),
        requests: requests::report(&found.requests, found.named.report()),
        left_out: joined.rows.left_out,
    })
}
