//! Explains the traces: connections, messages, requests, and why the slowest requests are slow.

mod connections;
mod explanation_rows;
mod fleet_requests;
mod forest_nodes;
mod idle_threads;
mod match_program_spans;
mod messages;
mod one_way_times;
mod request;
mod request_path;
mod request_ranking;
mod requests;
mod root_evidence;
mod root_words;
mod service_times;
mod slow_request_finding;
mod slow_request_findings;

use serde::Serialize;

use crate::clock_fit_report::{
    PairReport, UnrelatedHost, describe_contradiction, report_pairs, report_unrelated,
};
use crate::convert_rows::UnconvertedRows;
use crate::error::FleetError;
use crate::joined_traces::{HostSummary, JoinedTraces};
pub use connections::{ConnectionsReport, PairedByEvidence, UnpairedEnd};
pub use explanation_rows::{EdgeRow, ExplanationRows, RequestRow, SideRow};
pub(crate) use fleet_requests::FleetRequests;
pub(crate) use forest_nodes::{ForestNode, ProcessKey, evidence, nodes, time_ns};
pub(crate) use idle_threads::word as awaits_word;
pub use idle_threads::{AwaitedRow, IdleThreads, TickingThread};
pub use match_program_spans::{MatchedSpanCounts, SpanName, SpansReport};
pub use messages::{GapReport, MessagesReport, RowsLeftOut};
pub use one_way_times::OneWayTimes;
pub(crate) use request::reports;
pub use request::{CallThread, RequestReport, TreeCallReport};
pub use request_path::PathPart;
pub use request_ranking::RankedRequest;
pub(crate) use request_ranking::TopRequest;
pub use requests::{HandOverReport, RequestsReport};
pub use service_times::ServiceTimes;
pub use slow_request_finding::{OthersDiskWork, SlowRequestFinding, ThreadParty, WaitingThreads};
pub(crate) use slow_request_finding::{find_services, worth_showing};
pub(crate) use slow_request_findings::RequestFindings;
pub use slow_request_findings::{RequestGroup, SlowRequestFindings};

/// Maximum number of slowest requests that are listed.
const MAX_SLOWEST: usize = 10;

/// The request that an explanation shows, and whether it lists all rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExplanationOptions {
    /// Number of the request to show; 1 is the slowest. `None`: the slowest.
    pub request: Option<usize>,
    /// Whether to list each edge, request and wait.
    pub rows: bool,
}

/// Everything that `luc-fleet explain` says of the traces.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FleetExplanation {
    pub hosts: Vec<HostSummary>,
    /// Findings for each address; the address with the most time comes first.
    pub findings: Vec<SlowRequestFindings>,
    pub clocks: Vec<PairReport>,
    pub unrelated: Vec<UnrelatedHost>,
    /// Contradiction between pairs of clocks, in words. Times between hosts are then unknown.
    pub contradiction: Option<String>,
    pub connections: ConnectionsReport,
    pub messages: MessagesReport,
    /// Times of messages from host to host.
    pub one_way: Vec<OneWayTimes>,
    /// Counts of requests, and of the evidence that links them.
    pub requests: RequestsReport,
    /// Services with their times, the busiest first.
    pub services: Vec<ServiceTimes>,
    pub idle: Vec<IdleThreads>,
    /// Slowest requests that are not known to be made for another one.
    pub slowest: Vec<RankedRequest>,
    pub request: Option<RequestReport>,
    /// Rows that are left out.
    pub left_out: UnconvertedRows,
    /// Each edge, request and wait, if asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<ExplanationRows>,
}

/// Explains the traces.
///
/// # Errors
/// [`FleetError::NoSuchRequest`], [`FleetError::Tree`].
pub fn explain(
    joined: &JoinedTraces,
    wanted: ExplanationOptions,
) -> Result<FleetExplanation, FleetError> {
    explain_found(&RequestFindings::new(&FleetRequests::new(joined)?), wanted)
}

/// Like [`explain`], for requests that have been found already.
pub(crate) fn explain_found(
    explained: &RequestFindings<'_>,
    wanted: ExplanationOptions,
) -> Result<FleetExplanation, FleetError> {
    let found = explained.found;
    let joined = found.joined;
    let number = match wanted.request {
        Some(number) => Some(found.top(number)?.ranked.number),
        None => found.top(1).ok().map(|top| top.ranked.number),
    };
    Ok(FleetExplanation {
        hosts: joined.hosts.iter().map(|host| host.summary.clone()).collect(),
        findings: explained.of_slowest(),
        clocks: report_pairs(joined),
        unrelated: report_unrelated(joined),
        contradiction: describe_contradiction(joined),
        connections: connections::report(joined),
        one_way: one_way_times::report(joined, &found.messages.edges),
        messages: messages::report(joined, &found.messages),
        services: service_times::report(joined, &found.requests),
        idle: idle_threads::report(found, explained.engaged()),
        slowest: found.ranking.slowest(MAX_SLOWEST),
        request: request::reports(found, number)?.pop(),
        rows: wanted.rows.then(|| explanation_rows::report(found, explained.engaged())),
        requests: requests::report(&found.requests, found.named.report()),
        left_out: joined.rows.left_out,
    })
}
