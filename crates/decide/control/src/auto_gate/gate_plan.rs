//! Output of the controller: how to go on, its phase, and why.

/// Actions of the gate until the next end of a commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GatePlan {
    /// Whether callers are held in rounds at all.
    pub gated: bool,
    /// Whether the present state is part of a trial.
    pub trying: bool,
    /// Whether callers are not held because a trial showed no gain.
    pub lost: bool,
    /// Number of callers at which a round is released.
    pub set_point: u32,
    /// Expected return of the last of them, ns after the end of a commit.
    pub return_ns: u64,
    /// Time for which a round that is short of callers waits beyond that, ns.
    pub patience_ns: u64,
    /// Commit time that the plan assumes, ns. No caller is held longer than four of these.
    pub commit_ns: u64,
}

/// Phase of the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GatePhase {
    /// Ungated: observes the callers.
    Learn = 0,
    /// Gated sample of a trial.
    TryGated = 1,
    /// Ungated sample of a trial.
    TryUngated = 2,
    /// Gated, because that pays.
    Engaged = 3,
    /// Ungated sample between gated ones, to check whether holding still pays.
    Check = 4,
    /// Ungated, because holding does not pay.
    Aside = 5,
}

/// Reason for the last decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateReason {
    /// There is no decision yet.
    Undecided = 0,
    /// Fewer than two callers: no commit can be shared.
    Alone = 1,
    /// Commits already serve about as many as they could.
    NothingToGain = 2,
    /// Most calls are of other callers, whom another controller holds or not.
    Few = 6,
    /// A trial of the other controller held these callers, too, and measured no gain.
    TakenAlong = 7,
    /// Callers return too far apart, compared with the commit time.
    TooFarApart = 3,
    /// Many calls are their callers' first. A trial waits until it costs little.
    ComeAndGo = 8,
    /// A trial measured no gain.
    NoGainMeasured = 4,
    /// A trial measured a gain.
    GainMeasured = 5,
}
