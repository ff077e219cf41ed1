//! Reasons why there is no graph.

use crate::wait_rows::TooManyWaits;

/// Error: the rows do not fit into a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WaitGraphError {
    /// A trace has too many waits.
    #[error(transparent)]
    TooManyWaits(#[from] TooManyWaits),
    /// A trace has more threads or messages than have indices.
    #[error("2^32 threads or messages of one host are too many: take less at once, by time")]
    TooManyMessages,
    /// There are more calls than have indices.
    #[error("2^32 calls are too many: take less at once, by time")]
    TooManyCalls,
}
