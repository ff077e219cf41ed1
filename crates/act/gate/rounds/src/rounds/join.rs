//! Arriving at a round, waiting in it, releasing it.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, SeqCst};
use core::sync::atomic::{AtomicU32, fence};

use luc_control::MAX_PARTICIPANTS;

use super::hold_time::{HoldLimits, TimerStep};
use super::shared_layout::{Rounds, join_halves, split};
use crate::call_path_syscalls;
use crate::gate_policy::GatePolicy;

/// The longest that any caller is held beyond the commit in flight, whatever the policy, unless
/// configured lower.
pub const LONGEST_WAIT_NS: u64 = 20_000_000;

/// A commit is taken for dead after this many commit times, and its callers for killed.
const OVERDUE_COMMITS: u64 = 4;

/// A commit still takes callers in this long after its release, in nanoseconds: about the time that the
/// journal needs to lock the transaction, plus that in which a caller learns that its data is written.
const STILL_OPEN_NS: u64 = 100_000;

/// ... but no longer than this part of its time.
const STILL_OPEN_PART: u64 = 16;

/// From this set point on callers are called to attention before a round is full.
const ATTENTION_CALLERS: u32 = 12;

/// They are called when this many of them are still missing.
const ATTENTION_MISSING: u32 = 2;

/// How long a caller stays awake for the release at most, in nanoseconds, and as a part of a commit's time.
const ATTENTION_NS: u64 = 300_000;
const ATTENTION_COMMIT_PART: u64 = 32;

/// A processor that is given away for longer than this is needed by others, in nanoseconds.
const BUSY_YIELD_NS: u64 = 200_000;

/// A caller's way through a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JoinedRound {
    /// The round's generation; handed back when the real call has returned.
    pub generation: u32,
    /// How long the caller was held, in nanoseconds.
    pub waited_ns: u64,
    /// Whether it left at its own deadline rather than with the round.
    pub timed_out: bool,
    /// Whether it shares a flush of somebody else's commit, so that its return says nothing about the
    /// commit's end.
    pub shares_flush: bool,
}

/// What a caller's data still needs to be durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DurabilityNeed {
    /// The transaction that runs must commit.
    Commit,
    /// Everything is in committed transactions or in place; the device must be flushed.
    Flush,
}

/// A caller's part in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoundRole {
    /// It needs what the round is for.
    Member,
    /// It needs only a flush, in a round of callers that need a commit.
    FlushOnly,
}

impl RoundRole {
    /// The part in a round of callers that need a commit.
    pub fn of(needs: DurabilityNeed) -> Self {
        match needs {
            DurabilityNeed::Commit => Self::Member,
            DurabilityNeed::Flush => Self::FlushOnly,
        }
    }
}

impl Rounds {
    /// Joins the round that gathers and returns when the caller may make its call: when the round is
    /// released or, if the caller only needs a flush, when the round's commit is at its first. That is at
    /// the latest when `limits` say so, or after four commit times.
    pub fn join(&self, policy: &GatePolicy, role: RoundRole, limits: &HoldLimits) -> JoinedRound {
        let arrived_ns = call_path_syscalls::now_ns();
        let (generation, timed_out) = self.gather(policy, role, arrived_ns, limits);
        let shares_flush =
            role == RoundRole::FlushOnly && !timed_out && self.wait_for_flush(generation, limits);
        JoinedRound {
            generation,
            waited_ns: call_path_syscalls::now_ns().saturating_sub(arrived_ns),
            timed_out,
            shares_flush,
        }
    }

    /// The round that the caller was released with, and whether it left at its deadline.
    fn gather(
        &self,
        policy: &GatePolicy,
        role: RoundRole,
        arrived_ns: u64,
        limits: &HoldLimits,
    ) -> (u32, bool) {
        let (generation, position) = match self.enter(policy, role, arrived_ns) {
            RoundEntry::Released(generation) => return (generation, false),
            RoundEntry::Waits { generation, position } => (generation, position),
        };
        if *policy == GatePolicy::Auto {
            self.release_unless_committing(generation, position);
        }
        let deadline_ns = self.deadline_ns(generation, arrived_ns, limits);
        let word = self.generation_word();
        if *policy == GatePolicy::Auto && position.saturating_add(1) == self.attention_at() {
            call_path_syscalls::futex_wake_all(word);
        }
        let mut timed_out = false;
        let mut attentive = *policy == GatePolicy::Auto;
        loop {
            if attentive && split(self.round.0.load(Acquire)).1 >= self.attention_at() {
                self.stay_awake(generation);
                attentive = false;
            }
            if split(self.round.0.load(Acquire)).0 != generation {
                break;
            }
            let now_ns = call_path_syscalls::now_ns();
            // Only the first caller keeps the round's timer: one wake-up instead of a herd's. Should it
            // be killed, the others' own deadlines release the round.
            let timer = if position == 0 {
                self.timer(policy, generation, now_ns)
            } else {
                TimerStep::WakeAt(u64::MAX)
            };
            let wake_ns = match timer {
                TimerStep::Close => now_ns,
                TimerStep::WakeAt(ns) => deadline_ns.min(ns),
            };
            if now_ns == call_path_syscalls::NO_TIME_NS {
                // The others know when to go.
                return (generation, true);
            }
            if now_ns >= wake_ns {
                timed_out = now_ns >= deadline_ns;
                self.release(generation);
                break;
            }
            call_path_syscalls::futex_wait_until(word, generation, wake_ns);
        }
        (generation, timed_out)
    }

    /// The number of callers at which a round is about to be released, and everybody is called to
    /// attention; `u32::MAX` for rounds so small that it makes no difference.
    ///
    /// A commit takes callers in only until it has sent its first flush, often just 200 us after the
    /// first of them; who comes later flushes the device once more. To wake dozens of sleepers takes
    /// longer than that, so it is done while the last of them are still on their way.
    fn attention_at(&self) -> u32 {
        match self.plan.set_point.load(Relaxed) {
            set_point if set_point < ATTENTION_CALLERS => u32::MAX,
            set_point => set_point - ATTENTION_MISSING,
        }
    }

    /// Waits for the release of `generation` without sleeping, for a moment, and only while nobody else
    /// needs the processor.
    fn stay_awake(&self, generation: u32) {
        let commit_ns = self.plan.commit_ns.load(Relaxed);
        let mut now_ns = call_path_syscalls::now_ns();
        let until_ns = now_ns + ATTENTION_NS.min(commit_ns / ATTENTION_COMMIT_PART);
        while now_ns < until_ns && split(self.round.0.load(Acquire)).0 == generation {
            call_path_syscalls::yield_processor();
            let then_ns = now_ns;
            now_ns = call_path_syscalls::now_ns();
            if now_ns == call_path_syscalls::NO_TIME_NS || now_ns - then_ns > BUSY_YIELD_NS {
                return;
            }
        }
    }

    /// Releases the round of `generation` unless that has happened already.
    pub(super) fn release(&self, generation: u32) {
        let mut word = self.round.0.load(Acquire);
        loop {
            let (now_gathering, count) = split(word);
            if now_gathering != generation || count == 0 {
                return;
            }
            match self.open_next(generation, count, word) {
                Ok(()) => return,
                Err(changed) => word = changed,
            }
        }
    }

    /// Whether the round before `gathering` was released so recently that its commit still takes a
    /// caller in. One that has missed it by so little has its changes in that commit already; called
    /// later, its `fsync` would find them committed and flush the device once more, for itself alone.
    fn just_released(&self, gathering: u32, now_ns: u64) -> bool {
        let released_ns = self.generation(gathering.wrapping_sub(1)).released_ns.load(Relaxed);
        let open_ns = STILL_OPEN_NS.min(self.plan.commit_ns.load(Relaxed) / STILL_OPEN_PART);
        now_ns < released_ns.saturating_add(open_ns) && self.ended.load(Relaxed) != gathering
    }

    /// A caller that filled the round during a commit leaves the release to the first who comes back
    /// from it. Should that one have looked just before this caller was counted, it is made up here.
    pub(super) fn release_unless_committing(&self, generation: u32, position: u32) {
        fence(SeqCst);
        let full = position.saturating_add(1) >= self.plan.set_point.load(Relaxed);
        if full && !self.commit_in_flight(generation, call_path_syscalls::now_ns()) {
            self.release(generation);
        }
    }

    /// Whether a released round's commit is still going on at `now_ns`.
    pub(super) fn commit_in_flight(&self, gathering: u32, now_ns: u64) -> bool {
        // `ended` is the last ended generation plus one, so it equals the gathering one when the round
        // before that has ended.
        if self.ended.load(Acquire) == gathering {
            return false;
        }
        let last = self.generation(gathering.wrapping_sub(1));
        let released_ns = last.released_ns.load(Relaxed);
        let overdue_ns =
            OVERDUE_COMMITS.saturating_mul(self.plan.commit_ns.load(Relaxed).max(1_000_000));
        now_ns < released_ns.saturating_add(overdue_ns)
    }

    /// Counts a caller into the round that gathers.
    pub(super) fn enter(
        &self,
        policy: &GatePolicy,
        role: RoundRole,
        arrived_ns: u64,
    ) -> RoundEntry {
        let mut word = self.round.0.load(Acquire);
        let mut counted = None;
        loop {
            let (generation, position) = split(word);
            if *policy == GatePolicy::Auto
                && role == RoundRole::Member
                && self.just_released(generation, arrived_ns)
            {
                return RoundEntry::Released(generation.wrapping_sub(1));
            }
            // Counted before the round can be released with this caller in it.
            if role == RoundRole::Member && counted.replace(generation) != Some(generation) {
                self.generation(generation).committers.fetch_add(1, Relaxed);
            }
            let count = position.saturating_add(1);
            let full = match policy {
                GatePolicy::Auto => {
                    count >= self.plan.set_point.load(Relaxed)
                        && !self.commit_in_flight(generation, arrived_ns)
                }
                // These two close by their timers.
                GatePolicy::Delay(_) | GatePolicy::Pid { .. } | GatePolicy::Off => false,
            };
            let outcome = if full {
                self.open_next(generation, count, word).map(|()| RoundEntry::Released(generation))
            } else {
                let next = join_halves(generation, count);
                self.round
                    .0
                    .compare_exchange_weak(word, next, AcqRel, Acquire)
                    .map(|_| RoundEntry::Waits { generation, position })
            };
            match outcome {
                Ok(entered) => {
                    self.note_arrival(policy, generation, position, arrived_ns);
                    return entered;
                }
                Err(changed) => word = changed,
            }
        }
    }

    /// Closes `generation` with `count` callers and wakes them; `Err` if the word was no longer `word`.
    fn open_next(&self, generation: u32, count: u32, word: u64) -> Result<(), u64> {
        let next = join_halves(generation.wrapping_add(1), 0);
        self.round.0.compare_exchange(word, next, AcqRel, Acquire)?;
        let times = self.generation(generation);
        times.released_ns.store(call_path_syscalls::now_ns(), Relaxed);
        times.released.store(count, Relaxed);
        // Of two generations on, which nobody looks at yet.
        let later = self.generation(generation.wrapping_add(2));
        later.committers.store(0, Relaxed);
        later.returned.store(0, Relaxed);
        if count > 1 {
            call_path_syscalls::futex_wake_all(self.generation_word());
        }
        Ok(())
    }

    fn note_arrival(&self, policy: &GatePolicy, generation: u32, position: u32, arrived_ns: u64) {
        let times = self.generation(generation);
        if position == 0 {
            times.first_ns.store(arrived_ns, Relaxed);
            times.restarts.store(0, Relaxed);
            times.last_ns.store(arrived_ns, Relaxed);
        } else {
            match policy {
                GatePolicy::Delay(delay) => {
                    if delay.may_restart(times.restarts.load(Relaxed)) {
                        times.restarts.fetch_add(1, Relaxed);
                        times.last_ns.fetch_max(arrived_ns, Relaxed);
                    }
                }
                _ => {
                    times.last_ns.fetch_max(arrived_ns, Relaxed);
                }
            }
        }
        let index = self.arrivals.fetch_add(1, Relaxed) as usize;
        if index < MAX_PARTICIPANTS {
            let after_ns = arrived_ns.saturating_sub(self.epoch_ns.0.load(Relaxed));
            self.arrivals_ns[index].store(u32::try_from(after_ns).unwrap_or(u32::MAX), Relaxed);
        }
    }

    /// The half of the round's word on which callers sleep.
    pub fn generation_word(&self) -> &AtomicU32 {
        let halves = self.round.0.as_ptr().cast::<AtomicU32>();
        let high = if cfg!(target_endian = "little") { 1 } else { 0 };
        // SAFETY: both halves lie inside the 64-bit atomic, which is aligned for them and lives as long
        // as `self`; the futex system call and this code only ever read the half.
        unsafe { &*halves.add(high) }
    }
}

/// What came of a caller's arrival.
pub(super) enum RoundEntry {
    /// The caller filled the round of this generation and released it, or came just after its release.
    Released(u32),
    /// It is one of those that the round gathers.
    Waits {
        generation: u32,
        /// How many came before it.
        position: u32,
    },
}
