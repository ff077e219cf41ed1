//! Results that every report on requests is made from.

use luc_fleet_clocks::HostId;
use luc_fleet_requests::{MatchedMessages, NumberedForest, Requests, ThreadHistories};

use super::match_program_spans::SpansByRequest;
use super::request_ranking::{RequestRanking, TopRequest};
use crate::error::FleetError;
use crate::joined_traces::JoinedTraces;
use crate::wait_graph::FleetWaitGraph;

/// Messages and requests of all hosts.
#[derive(Debug)]
pub(crate) struct FleetRequests<'a> {
    pub(crate) joined: &'a JoinedTraces,
    pub(crate) messages: MatchedMessages,
    pub(crate) requests: Requests,
    pub(crate) trees: RequestTrees,
    pub(crate) histories: ThreadHistories<'a>,
    pub(crate) graph: FleetWaitGraph<'a>,
    /// Spans that programs wrote of the requests.
    pub(super) named: SpansByRequest<'a>,
    pub(super) ranking: RequestRanking,
}

/// Requests as a forest. Its nodes are all received requests, then all sent ones.
#[derive(Debug)]
pub(crate) struct RequestTrees {
    pub(crate) parents: Vec<Option<u32>>,
    pub(crate) forest: NumberedForest,
}

impl<'a> FleetRequests<'a> {
    pub(crate) fn new(joined: &'a JoinedTraces) -> Result<Self, FleetError> {
        let rows = &joined.rows;
        let messages = MatchedMessages::matched(&joined.connections, &rows.messages);
        let requests = joined.requests();
        let parents = requests.parents()?;
        let named = SpansByRequest::new(joined, &requests);
        let graph = FleetWaitGraph::new(joined, &messages, &requests)?;
        Ok(Self {
            joined,
            ranking: RequestRanking::new(joined, &requests, &graph, &named),
            graph,
            named,
            histories: ThreadHistories::new(&rows.waits, &rows.messages, &messages.edges),
            trees: RequestTrees { forest: NumberedForest::new(&parents)?, parents },
            messages,
            requests,
        })
    }

    /// Number of requests that were answered and are not known to be made for another one.
    pub(crate) fn tops(&self) -> usize {
        self.ranking.all().len()
    }

    /// Answered requests that are not known to be made for another one, the slowest first.
    pub(crate) fn all_tops(&self) -> impl Iterator<Item = &TopRequest> {
        self.ranking.all().iter()
    }

    /// Host of the request with this number.
    ///
    /// # Errors
    /// [`FleetError::NoSuchRequest`].
    pub(crate) fn home(&self, number: usize) -> Result<HostId, FleetError> {
        Ok(self.top(number)?.exchange.end.host)
    }

    /// Request with this number; 1 is the slowest.
    ///
    /// # Errors
    /// [`FleetError::NoSuchRequest`].
    pub(crate) fn top(&self, number: usize) -> Result<&TopRequest, FleetError> {
        self.ranking.get(number)
    }
}
