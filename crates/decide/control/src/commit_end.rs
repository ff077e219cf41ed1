//! Input of a controller.

/// State of the other controller of the same file system. Callers that need a commit and callers that need only a flush
/// have one controller each. Rates are of both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OtherController {
    /// Whether its callers are held.
    pub gated: bool,
    /// Whether it makes a trial.
    pub trying: bool,
    /// Whether a recent trial of it held the callers of this controller, too, without a gain.
    pub lost: bool,
}

/// End of a commit as the gate saw it: the first of its callers has returned.
#[derive(Clone, Copy, Debug, Default)]
pub struct CommitEnd<'a> {
    /// Time at which the commit ended, ns.
    pub end_ns: u64,
    /// Number of calls served before this end, in all.
    pub completions: u64,
    /// Number of these calls whose callers belong to this controller.
    pub own_completions: u64,
    /// State of the other controller.
    pub others: OtherController,
    /// Number of callers of this controller that have ever called, each counted once.
    pub newcomers: u64,
    /// Largest recent number of calls under way at once, of all callers; 0 if unknown.
    pub most_at_once: u32,
    /// Sum of the latencies of all calls that have returned, ns.
    pub latencies_ns: u64,
    /// Number of distinct callers in the last window.
    pub participants: u32,
    /// Duration of the commit, ns. Gated: from the release of its round. Ungated: the latency of its first caller to
    /// return. 0 if none of the callers needed a commit.
    pub commit_ns: u64,
    /// Number of callers that the gate released together; 0 if the commit was not gated.
    pub released: u32,
    /// Whether every caller and the beginning and end of every commit are seen, as only the kernel can. Then samples of
    /// half as many commits are enough.
    pub exact: bool,
    /// Arrivals since the previous end, ns after it, in order; only for gated samples.
    pub arrivals_ns: &'a [u32],
}
