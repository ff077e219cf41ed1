//! What connects the hosts: connections, messages, requests.

mod connections;
mod messages;
mod one_way;
mod path;
mod ranking;
mod request;
mod requests;
mod service;

use luc_fleet_core::{Messages, Requests};
use serde::Serialize;

use crate::error::FleetError;
use crate::fit::{PairReport, Unrelated, contradiction, pairs, unrelated};
use crate::joined::{HostSummary, Joined};
use crate::map::LeftOut;
pub use connections::{ConnectionsReport, Paired, UnpairedEnd};
pub use messages::{GapReport, MessagesReport, RowsLeftOut};
pub use one_way::OneWay;
pub use path::PathPart;
pub use ranking::Ranked;
use ranking::Ranking;
pub use request::{Actor, Call, RequestReport};
pub use requests::{HandOverReport, RequestsReport};
pub use service::Service;

/// Requests that are listed.
const LISTED: usize = 10;

/// What connects many hosts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Explanation {
    /// The traces.
    pub hosts: Vec<HostSummary>,
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
}

/// Explains the traces; of requests that number, by time, or the slowest.
///
/// # Errors
/// [`FleetError::NoSuchRequest`], [`FleetError::Tree`].
pub fn explain(joined: &Joined, number: Option<usize>) -> Result<Explanation, FleetError> {
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
    let request = match number {
        Some(number) => Some(ranking.get(number)?),
        None => ranking.get(1).ok(),
    };
    let request = request.map(|top| request::report(joined, &requests, &messages, top));
    Ok(Explanation {
        hosts: joined
            .hosts
            .iter()
            .map(|host| host.summary.clone())
            .collect(),
        clocks: pairs(joined),
        unrelated: unrelated(joined),
        contradiction: contradiction(joined),
        connections: connections::report(joined),
        one_way: one_way::report(joined, &messages.edges),
        messages: messages::report(joined, &messages),
        services: service::report(joined, &requests),
        slowest: ranking.slowest(LISTED),
        request: request.transpose()?,
        requests: requests::report(&requests),
        left_out: rows.left_out,
    })
}
