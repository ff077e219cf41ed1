//! Callers that one event loop holds, instead of each sleeping in a thread of its own.
//!
//! They meet all others in the same rounds. The loop asks of each of them again and again what to do next
//! ([`Rounds::look`]); nobody wakes it, so it says itself when to ask again.

use core::sync::atomic::Ordering::{Acquire, Relaxed};

use super::hold_time::{HoldLimits, TimerStep};
use super::join::{JoinedRound, RoundEntry, RoundRole};
use super::shared_layout::{Rounds, split};
use crate::gate_policy::GatePolicy;

/// A caller that waits in a round.
#[derive(Clone, Copy, Debug)]
pub struct RoundWaiter {
    generation: u32,
    /// How many came to the round before it.
    position: u32,
    role: RoundRole,
    limits: HoldLimits,
    arrived_ns: u64,
    deadline_ns: u64,
    /// The round was released while this caller came.
    is_released: bool,
    /// When a caller that shares a commit's flush sends its own; known from its release on.
    flush_at_ns: Option<u64>,
}

/// What to do with a caller now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaiterStep {
    /// It makes its call.
    Go(JoinedRound),
    /// It is looked at again at this time, or when something has happened in its round.
    WakeAt(u64),
}

impl Rounds {
    /// Counts a caller into the round that gathers. Does not sleep.
    pub fn arrive(
        &self,
        policy: &GatePolicy,
        role: RoundRole,
        arrived_ns: u64,
        limits: &HoldLimits,
    ) -> RoundWaiter {
        let (generation, position, is_released) = match self.enter(policy, role, arrived_ns) {
            RoundEntry::Released(generation) => (generation, 0, true),
            RoundEntry::Waits { generation, position } => (generation, position, false),
        };
        if *policy == GatePolicy::Auto && !is_released {
            self.release_unless_committing(generation, position);
        }
        RoundWaiter {
            generation,
            position,
            role,
            limits: *limits,
            arrived_ns,
            deadline_ns: self.deadline_ns(generation, arrived_ns, limits),
            is_released,
            flush_at_ns: None,
        }
    }

    /// What becomes of a waiting caller at `now_ns`. Releases the round if its time is up.
    pub fn look(&self, policy: &GatePolicy, waiting: &mut RoundWaiter, now_ns: u64) -> WaiterStep {
        let generation = waiting.generation;
        let joined = JoinedRound {
            generation,
            waited_ns: now_ns.saturating_sub(waiting.arrived_ns),
            timed_out: false,
            shares_flush: false,
        };
        if !waiting.is_released {
            waiting.is_released = split(self.round.0.load(Acquire)).0 != generation;
        }
        if !waiting.is_released {
            // The first caller keeps the round's timer, as among threads.
            let timer = if waiting.position == 0 {
                self.timer(policy, generation, now_ns)
            } else {
                TimerStep::WakeAt(u64::MAX)
            };
            let wake_ns = match timer {
                TimerStep::Close => now_ns,
                TimerStep::WakeAt(ns) => waiting.deadline_ns.min(ns),
            };
            if now_ns < wake_ns {
                return WaiterStep::WakeAt(wake_ns);
            }
            self.release(generation);
            waiting.is_released = true;
            if now_ns >= waiting.deadline_ns {
                return WaiterStep::Go(JoinedRound { timed_out: true, ..joined });
            }
        }
        if waiting.role == RoundRole::FlushOnly && waiting.flush_at_ns.is_none() {
            waiting.flush_at_ns = self.flush_at_ns(generation, now_ns, &waiting.limits);
        }
        match waiting.flush_at_ns {
            Some(ns) if now_ns < ns => WaiterStep::WakeAt(ns),
            shared => WaiterStep::Go(JoinedRound { shares_flush: shared.is_some(), ..joined }),
        }
    }

    /// How many callers went with a round that was released of late.
    pub fn released_in(&self, generation: u32) -> u32 {
        self.generation(generation).released.load(Relaxed)
    }

    /// The round that gathers: its generation, and how many callers it has.
    pub fn gathering(&self) -> (u32, u32) {
        split(self.round.0.load(Acquire))
    }
}

impl RoundWaiter {
    /// The generation of the round that it came to.
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// Whether it makes its call as soon as its round is released.
    pub fn goes_at_once(&self) -> bool {
        self.role == RoundRole::Member
    }

    /// Whether its round is known to be released.
    pub fn is_released(&self) -> bool {
        self.is_released
    }
}
