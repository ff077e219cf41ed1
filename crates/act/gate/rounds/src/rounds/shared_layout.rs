//! The shared memory of one set of rounds.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use luc_control::MAX_PARTICIPANTS;
use luc_control::auto_gate::{AutoGate, GatePlan};
use luc_control::commit_end::OtherController;
use luc_control::pid::SteeredDelay;

use crate::gate_policy::GatePolicy;

/// The halves of a round's word: its generation and the number of its callers.
pub(super) fn split(word: u64) -> (u32, u32) {
    ((word >> 32) as u32, word as u32)
}

pub(super) fn join_halves(generation: u32, count: u32) -> u64 {
    u64::from(generation) << 32 | u64::from(count)
}

/// After this long without a call everything learnt is forgotten: the program, its pace or even the disk may have
/// changed.
pub(super) const FORGOTTEN_NS: u64 = 5_000_000_000;

/// Generations whose times are remembered: the one that gathers, the one that commits, and two more for
/// callers that read late.
pub(super) const REMEMBERED: usize = 4;

/// A trial goes on, or was without a gain.
const TRYING: u32 = 1;
const LOST: u32 = 2;

/// Of callers who have not come for this long no trial is waited for, and none is remembered, in nanoseconds.
const TRIES_NS: u64 = 1_000_000_000;

/// Callers that only need a flush join those that need a commit until this many commit times after the
/// last such commit.
const TAKES_ALONG_COMMITS: u64 = 8;

/// One value per cache line, so that callers on different processors do not disturb each other.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub(super) struct CacheLine<T>(pub(super) T);

/// The times of one generation.
#[repr(C, align(64))]
#[derive(Debug)]
pub(super) struct RoundGeneration {
    /// When its first caller arrived.
    pub(super) first_ns: AtomicU64,
    /// When its timer was started or last restarted (policy `delay`), or its last caller arrived.
    pub(super) last_ns: AtomicU64,
    /// How often its timer was restarted.
    pub(super) restarts: AtomicU32,
    pub(super) released: AtomicU32,
    /// When they were released.
    pub(super) released_ns: AtomicU64,
    /// Number of its callers that need a commit.
    pub(super) committers: AtomicU32,
    /// Callers whose own calls have returned.
    pub(super) returned: AtomicU32,
}

/// What the controller has decided, read by every caller.
#[repr(C, align(64))]
#[derive(Debug)]
pub(super) struct SharedPlan {
    /// 0: not gated; otherwise the set point.
    pub(super) set_point: AtomicU32,
    /// What the controller says to another one: `TRYING`, `LOST`, or 0.
    trial: AtomicU32,
    pub(super) return_ns: AtomicU64,
    pub(super) patience_ns: AtomicU64,
    pub(super) commit_ns: AtomicU64,
}

impl SharedPlan {
    pub(super) fn store(&self, plan: &GatePlan) {
        self.return_ns.store(plan.return_ns, Relaxed);
        self.patience_ns.store(plan.patience_ns, Relaxed);
        self.commit_ns.store(plan.commit_ns, Relaxed);
        let trial = match (plan.trying, plan.lost) {
            (true, _) => TRYING,
            (false, true) => LOST,
            (false, false) => 0,
        };
        self.trial.store(trial, Relaxed);
        self.set_point.store(if plan.gated { plan.set_point.max(1) } else { 0 }, Relaxed);
    }
}

/// The controllers' memory. Only integers and floats: a process that dies while it writes here leaves
/// odd numbers, never undefined ones.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ControllerMemory {
    pub(super) auto: AutoGate,
    pub(super) pid: SteeredDelay,
    pub(super) window_epochs: u32,
    pub(super) participants: u32,
    pub(super) previous_participants: u32,
    pub(super) commit_ns: u64,
    /// Arrivals since the last end, copied here for the controller: a program's stack may have no room.
    pub(super) arrivals_ns: ArrivalTimes,
}

/// When callers arrived, in nanoseconds after the end of a commit.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct ArrivalTimes(pub(super) [u32; MAX_PARTICIPANTS]);

impl Default for ArrivalTimes {
    fn default() -> Self {
        Self([0; MAX_PARTICIPANTS])
    }
}

impl ControllerMemory {
    /// Forgets everything, in place: the value is too large for a small stack.
    pub(super) fn reset(&mut self) {
        // SAFETY: integers and floats throughout, for which all zeros is valid, and the initial state.
        unsafe { core::ptr::write_bytes(core::ptr::from_mut(self), 0, 1) };
    }
}

/// A snapshot of the rounds for reports.
#[derive(Clone, Copy, Debug)]
pub struct RoundsSnapshot {
    pub auto: AutoGate,
    /// Rounds released since the beginning.
    pub rounds: u32,
    /// Callers served since the beginning, gated or not.
    pub completions: u64,
    /// Callers that a round waits for now; 0 when callers are not gated.
    pub set_point: u32,
    /// Smoothed commit time in nanoseconds.
    pub commit_ns: u64,
    /// Distinct callers of the last window.
    pub participants: u32,
}

/// The memory in which the callers of one file system meet. Mapped from a file that starts as zeros.
#[repr(C)]
#[derive(Debug)]
pub struct Rounds {
    pub(super) plan: SharedPlan,
    /// Generation (high half) and count of the round that gathers.
    pub(super) round: CacheLine<AtomicU64>,
    pub(super) generations: [RoundGeneration; REMEMBERED],
    /// When the last commit ended.
    pub(super) epoch_ns: CacheLine<AtomicU64>,
    /// When the last commit ended that had callers who needed it, and not only the device's flush.
    pub(super) committed_ns: AtomicU64,
    /// The last generation whose commit has ended, plus one; 0 at the beginning.
    pub(super) ended: AtomicU32,
    pub(super) arrivals: AtomicU32,
    /// Callers served since the beginning.
    pub(super) completions: CacheLine<AtomicU64>,
    /// Window in which participants are counted, and their number so far.
    pub(super) window: CacheLine<AtomicU32>,
    pub(super) window_participants: AtomicU32,
    /// Callers that have called since the beginning, each counted once.
    pub(super) newcomers: AtomicU64,
    /// 0: the controller is free; otherwise when it was taken.
    pub(super) control_taken_ns: CacheLine<AtomicU64>,
    pub(super) control: UnsafeCell<ControllerMemory>,
    /// When each caller arrived, after `epoch_ns`.
    pub(super) arrivals_ns: [AtomicU32; MAX_PARTICIPANTS],
}

// SAFETY: everything is atomic except `control`, which is only touched by whoever has taken
// `control_taken_ns` (see `commit_end`) and holds values for which every bit pattern is valid.
unsafe impl Sync for Rounds {}

impl Rounds {
    /// Whether a caller that arrives at `now_ns` is brought into a round. A plan that policy `auto` made long ago
    /// holds nobody: it may be of another program, even of another disk by the same device number.
    pub fn is_gated(&self, policy: &GatePolicy, now_ns: u64) -> bool {
        let silent_ns = now_ns.saturating_sub(self.epoch_ns.0.load(Relaxed));
        let is_forgotten = *policy == GatePolicy::Auto && silent_ns > FORGOTTEN_NS;
        self.plan.set_point.load(Relaxed) > 0 && !is_forgotten
    }

    /// Whether a caller that only needs a flush is brought into these rounds of callers that need a commit:
    /// as long as there are any.
    pub fn takes_along(&self, policy: &GatePolicy, now_ns: u64) -> bool {
        let is_learning = *policy == GatePolicy::Auto;
        let silent_ns = now_ns.saturating_sub(self.committed_ns.load(Relaxed));
        let commit_ns = self.plan.commit_ns.load(Relaxed);
        let has_committers = silent_ns <= commit_ns.saturating_mul(TAKES_ALONG_COMMITS);
        self.is_gated(policy, now_ns) && (has_committers || !is_learning)
    }

    /// What the controller of these rounds does, for that of other rounds on the same file system.
    pub(super) fn as_others(&self, policy: &GatePolicy, now_ns: u64) -> OtherController {
        let silent_ns = now_ns.saturating_sub(self.epoch_ns.0.load(Relaxed));
        let is_silent = silent_ns >= TRIES_NS;
        let trial = if is_silent { 0 } else { self.plan.trial.load(Relaxed) };
        OtherController {
            gated: self.is_gated(policy, now_ns),
            trying: trial == TRYING,
            lost: trial == LOST,
        }
    }

    /// Counts a caller into the window of participants, once per window. `seen` is the caller's own
    /// memory of the last window it was counted in; 0 before its first call.
    pub fn count_participant(&self, seen: &core::cell::Cell<u32>) {
        let window = self.window.0.load(Relaxed).wrapping_add(1);
        let before = seen.replace(window);
        if before != window {
            self.window_participants.fetch_add(1, Relaxed);
        }
        if before == 0 {
            self.newcomers.fetch_add(1, Relaxed);
        }
    }

    /// Callers served since the beginning, gated or not.
    pub fn completions(&self) -> u64 {
        self.completions.0.load(Relaxed)
    }

    /// Counts a caller as served.
    pub fn complete(&self) {
        self.completions.0.fetch_add(1, Relaxed);
    }

    pub(super) fn generation(&self, generation: u32) -> &RoundGeneration {
        &self.generations[generation as usize % REMEMBERED]
    }
}
