//! Indices of requests, calls and threads, each a type of its own.

use super::HandOver;

/// Index of a request that a host received, in [`Requests::incoming`](super::Requests::incoming).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(pub usize);

/// Index of a request that a host sent, in [`Requests::outgoing`](super::Requests::outgoing).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId(pub usize);

/// Request that a call was made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallCause {
    pub request: RequestId,
    pub evidence: HandOver,
}

/// Index of a thread among those of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ThreadIndex(pub(super) usize);

/// Index of a call among those of one process, or of one process to one server, in send order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct CallPosition(pub(super) usize);

/// Index of a request among those of one process, in receive order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct RequestRank(pub(super) usize);

/// A call, and the request that it is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct AssignedCall<C, R> {
    pub(super) call: C,
    pub(super) request: R,
}

/// Number of predictions, and of those that were right.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PredictionScore {
    pub(super) all: usize,
    right: usize,
}

impl PredictionScore {
    pub(super) fn add(&mut self, is_right: bool) {
        self.all += 1;
        self.right += usize::from(is_right);
    }

    /// Whether at least this share was right; true of no predictions.
    pub(super) fn reaches(self, share: f64) -> bool {
        self.right as f64 >= share * self.all as f64
    }
}
