//! What all that is said of requests rests on.

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
    /// Which was made for which.
    pub(crate) trees: Trees,
    pub(crate) paths: Paths<'a>,
    /// What programs call them.
    pub(super) named: Named<'a>,
    pub(super) ranking: Ranking,
}

/// Requests as a forest, whose nodes are first all that were received, then all that were sent.
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

    /// How many requests were answered and are not known to be made for another one.
    pub(crate) fn tops(&self) -> usize {
        self.ranking.all().len()
    }

    /// All of these, the slowest first.
    pub(crate) fn all_tops(&self) -> impl Iterator<Item = &Top> {
        self.ranking.all().iter()
    }

    /// On which host the request of a number is.
    ///
    /// # Errors
    /// [`FleetError::NoSuchRequest`].
    pub(crate) fn home(&self, number: usize) -> Result<HostId, FleetError> {
        Ok(self.top(number)?.exchange.end.host)
    }

    /// The request of a number: 1 is the slowest.
    ///
    /// # Errors
    /// [`FleetError::NoSuchRequest`].
    pub(crate) fn top(&self, number: usize) -> Result<&Top, FleetError> {
        self.ranking.get(number)
    }
}
