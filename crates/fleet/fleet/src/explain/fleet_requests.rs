//! Results that every report on requests is made from.

use luc_fleet_clocks::HostId;
use luc_fleet_requests::{Forest, Messages, Paths, Requests};

use super::named::Named;
use super::ranking::{Ranking, Top};
use crate::error::FleetError;
use crate::joined::Joined;

/// Messages and requests of all hosts.
#[derive(Debug)]
pub(crate) struct Found<'a> {
    pub(crate) joined: &'a Joined,
    pub(crate) messages: Messages,
    pub(crate) requests: Requests,
    pub(crate) trees: Trees,
    pub(crate) paths: Paths<'a>,
    /// Spans that programs wrote of the requests.
    pub(super) named: Named<'a>,
    pub(super) ranking: Ranking,
}

/// Requests as a forest. Its nodes are all received requests, then all sent ones.
#[derive(Debug)]
pub(crate) struct Trees {
    pub(crate) parents: Vec<Option<u32>>,
    pub(crate) forest: Forest,
}

impl<'a> Found<'a> {
    pub(crate) fn new(joined: &'a Joined) -> Result<Self, FleetError> {
        let rows = &joined.rows;
        let messages = Messages::matched(&joined.connections, &rows.messages);
        let requests = joined.requests();
        let parents = requests.parents()?;
        let named = Named::new(joined, &requests);
        Ok(Self {
            joined,
            ranking: Ranking::new(joined, &requests, &named),
            named,
            paths: Paths::new(&rows.waits, &rows.messages, &messages.edges),
            trees: Trees { forest: Forest::new(&parents)?, parents },
            messages,
            requests,
        })
    }

    /// Number of requests that were answered and are not known to be made for another one.
    pub(crate) fn tops(&self) -> usize {
        self.ranking.all().len()
    }

    /// Answered requests that are not known to be made for another one, the slowest first.
    pub(crate) fn all_tops(&self) -> impl Iterator<Item = &Top> {
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
    pub(crate) fn top(&self, number: usize) -> Result<&Top, FleetError> {
        self.ranking.get(number)
    }
}
