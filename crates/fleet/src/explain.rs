//! What connects the hosts: connections, messages, requests.

mod charge;
mod connections;
mod findings;
mod kind;
mod messages;
mod one_way;
mod path;
mod ranking;
mod request;
mod requests;
mod roots;
mod rows;
mod service;

use luc_fleet_core::{Messages, Paths, Requests};
use serde::Serialize;

use crate::error::FleetError;
use crate::fit::{PairReport, Unrelated, contradiction, pairs, unrelated};
use crate::joined::{HostSummary, Joined};
use crate::map::LeftOut;
pub use connections::{ConnectionsReport, Paired, UnpairedEnd};
pub use findings::{Finding, Findings, Group, Party, Waiter};
pub use messages::{GapReport, MessagesReport, RowsLeftOut};
pub use one_way::OneWay;
pub use path::PathPart;
pub use ranking::Ranked;
use ranking::Ranking;
pub use request::{Actor, Call, RequestReport};
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
    /// The traces.
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
    /// The slowest requests that are not known to be made for another one.
    pub slowest: Vec<Ranked>,
    /// One of them.
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
    let rows = &joined.rows;
    let messages = Messages::matched(&joined.connections, &rows.messages);
    let requests = Requests::find(
        &rows.ends,
        &joined.connections,
        &rows.messages,
        &rows.waits,
        |host| joined.host(host).has_all_waits,
    );
    let ranking = Ranking::new(joined, &requests);
    let paths = Paths::new(&rows.waits, &rows.messages, &messages.edges);
    let request = match wanted.request {
        Some(number) => Some(ranking.get(number)?),
        None => ranking.get(1).ok(),
    };
    let request = request.map(|top| request::report(joined, &requests, &paths, top));
    Ok(Explanation {
        hosts: joined
            .hosts
            .iter()
            .map(|host| host.summary.clone())
            .collect(),
        findings: findings::report(joined, &requests, &paths, &ranking)?,
        clocks: pairs(joined),
        unrelated: unrelated(joined),
        contradiction: contradiction(joined),
        connections: connections::report(joined),
        one_way: one_way::report(joined, &messages.edges),
        messages: messages::report(joined, &messages),
        services: service::report(joined, &requests),
        slowest: ranking.slowest(LISTED),
        request: request.transpose()?,
        rows: wanted
            .rows
            .then(|| rows::report(joined, &messages, &requests))
            .transpose()?,
        requests: requests::report(&requests),
        left_out: rows.left_out,
    })
}
