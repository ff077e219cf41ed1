//! Settings that all runs of the service share.

use std::time::Duration;

/// Number of different words in documents and queries.
pub(super) const VOCABULARY: u64 = 2_000;
/// Maximum wait of a client between an answer and its next query, and maximum time of a run.
pub(super) const THINK: Duration = Duration::from_millis(2);
pub(super) const MAX_RUN_TIME: Duration = Duration::from_secs(600);
