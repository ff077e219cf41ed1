//! Input of a controller.

/// What another controller of the same file system does meanwhile: of callers that need a commit and callers that only
/// need a flush each have one, and rates are of both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Others {
    /// Whether its callers are held.
    pub gated: bool,
    /// Whether it makes a trial.
    pub trying: bool,
    /// Whether it has held the callers of this controller together with its own of late, for a trial without a gain.
    pub lost: bool,
}

/// The end of a commit, as the gate saw it: the first of its callers has returned.
#[derive(Clone, Copy, Debug)]
pub struct Epoch<'a> {
    /// When the commit ended.
    pub end_ns: u64,
    /// Callers served before this end since the beginning of time.
    pub completions: u64,
    /// How many of these were callers of this controller.
    pub own_completions: u64,
    /// What is decided about the others.
    pub others: Others,
    /// Callers of this controller that have called since the beginning of time, each counted once.
    pub newcomers: u64,
    /// Most calls under way at once of late, of all callers; 0 if that is not known.
    pub most_at_once: u32,
    /// How long all calls that have returned took together, in nanoseconds.
    pub latencies_ns: u64,
    /// Distinct callers of the last window.
    pub participants: u32,
    /// The commit's duration: gated, from the release of its round; ungated, the latency of its first
    /// caller to return. 0 if none of the callers needed a commit.
    pub commit_ns: u64,
    /// Callers that the gate released together; 0 if the commit was not gated.
    pub released: u32,
    /// Whether every caller is seen, and the beginning and end of every commit, as only the kernel can:
    /// then samples of half as many commits are enough.
    pub exact: bool,
    /// Arrivals since the end before, in nanoseconds after it, in order; only of gated samples.
    pub arrivals_ns: &'a [u32],
}
