//! What all runs of the service have in common.

use std::time::Duration;

/// How many different words documents and queries have.
pub(super) const VOCABULARY: u64 = 2_000;
/// The longest that a client waits between an answer and its next query.
pub(super) const THINK: Duration = Duration::from_millis(2);
pub(super) const LONGEST: Duration = Duration::from_secs(600);
