//! What the controller says: how to go on, where it is, and why.

/// The gate's actions until the next end of a commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Whether callers are brought into rounds at all.
    pub gated: bool,
    /// Whether that is for a trial, or not for one.
    pub trying: bool,
    /// Whether they are not, because a trial showed no gain.
    pub lost: bool,
    /// A round of this many callers is released.
    pub set_point: u32,
    /// When the last of them is expected, after the end of a commit.
    pub return_ns: u64,
    /// How long a round that is short of callers waits beyond that.
    pub patience_ns: u64,
    /// The commit time that the plan assumes; no caller is held longer than four of these.
    pub commit_ns: u64,
}

/// The controller's phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Ungated: watching.
    Learn,
    /// Gated sample of a trial.
    TryGated,
    /// Ungated sample of a trial.
    TryUngated,
    /// Gated: it pays.
    Engaged,
    /// Ungated sample between gated ones: does it still pay?
    Check,
    /// Ungated: it does not pay.
    Aside,
}

/// Why the controller stands aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// No decision yet.
    Undecided,
    /// Fewer than two callers: nobody to share a commit with.
    Alone,
    /// Commits already serve about as many as they could.
    NothingToGain,
    /// Most calls are of others, about whom another controller decides.
    Few,
    /// Others, among whom these were held, measured no gain.
    TakenAlong,
    /// Callers come back too far apart, measured against the commit time.
    TooFarApart,
    /// Many calls are their callers' first: a trial waits until it costs little.
    ComeAndGo,
    /// A trial measured no gain.
    NoGainMeasured,
    /// A trial measured a gain.
    GainMeasured,
}
