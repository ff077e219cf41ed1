//! One gated call, from the program's call to its return.
//!
//! The order of things is what makes it work: the file's data is written first (a journal commit only
//! has to wait for data that is still under way), then the caller joins a round, then every caller of
//! the round makes its own real call, which finds all the others in the same transaction. Nothing here
//! allocates, locks or changes `errno`; whatever is unexpected leads to the real call at once.
//!
//! The early write uses up no error of the open file, so the real call reports what it would have
//! reported without the gate, whatever happens between the two ([`call_path_syscalls::write_early`]).

use core::cell::Cell;
use core::ffi::c_int;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use crate::call_path_syscalls::{self, EarlyWrite};
use crate::figures::GatedCallKind;
use crate::figures::run_figures::{FileSystemFigures, MeasuredCall, RoundTimes};
use crate::gate_policy::GatePolicy;
use crate::raw_syscall::Errno;
use crate::rounds::{DurabilityNeed, FileSystemRounds, HoldLimits, RoundRole};

/// The rounds and figures of a call's file system.
#[derive(Clone, Copy, Debug)]
pub struct CallFileSystem {
    /// The rounds of the file system; `None` where nothing can be gained (no journal, fast commit).
    pub rounds: Option<&'static FileSystemRounds>,
    /// The counters of the file system.
    pub figures: Option<&'static FileSystemFigures>,
    /// How long this process' own real calls take here; not shared with other processes.
    pub own: &'static OwnCallTime,
}

/// How long this process' own real calls on a file system take, in nanoseconds; 0 before the first one.
#[derive(Debug, Default)]
pub struct OwnCallTime(AtomicU64);

impl OwnCallTime {
    /// Starts without a known latency.
    pub const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Notes a real call that lasted `ns`. Keeps the longest one, which decays slowly.
    pub fn observe(&self, ns: u64) {
        let known_ns = self.0.load(Relaxed);
        self.0.store(ns.max(known_ns - known_ns / 16), Relaxed);
    }

    /// The latency, in nanoseconds; 0 before the first real call.
    pub fn ns(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// A thread's memory of a place: the last windows in which it was counted, one for each set of rounds.
#[derive(Debug, Default)]
pub struct CountedWindows {
    commits: Cell<u32>,
    flushes: Cell<u32>,
}

impl CountedWindows {
    /// Starts as counted in no window.
    pub const fn new() -> Self {
        Self { commits: Cell::new(0), flushes: Cell::new(0) }
    }

    /// The last window of the rounds of callers with these needs.
    pub fn of(&self, needs: DurabilityNeed) -> &Cell<u32> {
        match needs {
            DurabilityNeed::Commit => &self.commits,
            DurabilityNeed::Flush => &self.flushes,
        }
    }
}

/// Settings for all calls of the process.
#[derive(Clone, Copy, Debug)]
pub struct CallSettings {
    /// How callers are brought together.
    pub policy: GatePolicy,
    /// The longest that a caller is held beyond the commit in flight, in nanoseconds.
    pub longest_wait_ns: u64,
}

/// The object to synchronize.
#[derive(Clone, Copy, Debug)]
pub struct SyncRequest<H, S> {
    pub kind: GatedCallKind,
    /// Whether it may need no commit; what it needs is known once its data is written.
    pub may_need_flush_only: bool,
    /// A regular file, whose data is written before joining a round.
    pub fd: Option<c_int>,
    /// Called before the call is held, for what `is_same` compares with.
    pub before_hold: H,
    /// Whether the program's number or address still means the object that was looked at.
    pub is_same: S,
    /// The error of a call on an object that is gone.
    pub gone: Errno,
}

/// Makes `real` at the right moment and returns its result, with `errno` as it left it. `needs` tells, once the
/// data is written, what it takes to make it durable; `seen` is the thread's memory for this place.
///
/// # Errors
///
/// An error that `real` cannot know of: the early data write failed, or the object was exchanged for another one
/// while the call was held. The program is told it as `real` would have told it.
pub fn synchronize(
    settings: &CallSettings,
    place: &CallFileSystem,
    request: &SyncRequest<impl Fn(), impl Fn() -> bool>,
    needs: impl Fn() -> DurabilityNeed,
    seen: &CountedWindows,
    real: impl FnOnce() -> c_int,
) -> Result<c_int, Errno> {
    let called_ns = call_path_syscalls::now_ns();
    if called_ns == call_path_syscalls::NO_TIME_NS {
        return Ok(real());
    }
    let real = || {
        let before_ns = call_path_syscalls::now_ns();
        let result = real();
        place.own.observe(call_path_syscalls::now_ns().saturating_sub(before_ns));
        result
    };
    let call = OneCall {
        settings,
        limits: HoldLimits { longest_ns: settings.longest_wait_ns, own_call_ns: place.own.ns() },
        called_ns,
    };
    let rounds = place.rounds.filter(|_| settings.policy != GatePolicy::Off);
    let under_way = rounds.map(|rounds| (rounds, rounds.under_way.begin(called_ns)));
    let (result, round) = match rounds {
        None => (Ok(real()), None),
        Some(rounds) if !call.is_gated(rounds, request.may_need_flush_only) => {
            (Ok(call.straight(rounds, seen, needs, real)), None)
        }
        Some(rounds) => {
            match request.fd.map_or(EarlyWrite::Done, call_path_syscalls::write_early) {
                // Held without its data written, a caller comes late to the commit and delays everybody.
                EarlyWrite::Refused => (Ok(call.straight(rounds, seen, needs, real)), None),
                EarlyWrite::Done => call.gated(rounds, seen, needs(), request, real),
                EarlyWrite::Failed(error) => {
                    let (result, round) = call.gated(rounds, seen, needs(), request, real);
                    // The data is gone, and nobody but the early write was told: no block could be allocated.
                    let told = |result| {
                        if result == 0 { Err(Errno(error)) } else { Ok(result) }
                    };
                    (result.and_then(told), round)
                }
            }
        }
    };
    let returned_ns = call_path_syscalls::now_ns();
    if let Some((rounds, call)) = under_way {
        rounds.under_way.end(call, returned_ns.max(called_ns));
    }
    if returned_ns == call_path_syscalls::NO_TIME_NS {
        return result;
    }
    if let Some(figures) = place.figures {
        figures.record(&MeasuredCall {
            kind: request.kind,
            latency_ns: returned_ns.saturating_sub(called_ns),
            failed: result != Ok(0),
            round,
        });
    }
    result
}

/// A call on a file system with rounds.
struct OneCall<'a> {
    settings: &'a CallSettings,
    limits: HoldLimits,
    called_ns: u64,
}

impl OneCall<'_> {
    /// Whether the call may be brought into a round, so that its data is worth writing early.
    fn is_gated(&self, rounds: &FileSystemRounds, may_need_flush_only: bool) -> bool {
        let policy = &self.settings.policy;
        rounds.commits.is_gated(policy, self.called_ns)
            || (may_need_flush_only && rounds.flushes.is_gated(policy, self.called_ns))
    }

    /// Makes the call without a round, and notes its return in the rounds that it belongs to.
    fn straight(
        &self,
        rounds: &FileSystemRounds,
        seen: &CountedWindows,
        needs: impl Fn() -> DurabilityNeed,
        real: impl FnOnce() -> c_int,
    ) -> c_int {
        let result = real();
        let returned_ns = call_path_syscalls::now_ns();
        if returned_ns == call_path_syscalls::NO_TIME_NS {
            return result;
        }
        let latency_ns = returned_ns.saturating_sub(self.called_ns);
        let (policy, needs) = (&self.settings.policy, needs());
        let of_kind = rounds.of(needs);
        of_kind.count_participant(seen.of(needs));
        of_kind.complete();
        let beside = rounds.beside(needs, policy, returned_ns);
        of_kind.returned_ungated(policy, returned_ns, latency_ns, beside);
        result
    }

    /// Makes the call through a round, if its kind is gated.
    fn gated(
        &self,
        rounds: &FileSystemRounds,
        seen: &CountedWindows,
        needs: DurabilityNeed,
        request: &SyncRequest<impl Fn(), impl Fn() -> bool>,
        real: impl FnOnce() -> c_int,
    ) -> (Result<c_int, Errno>, Option<RoundTimes>) {
        let policy = &self.settings.policy;
        let written_back_ns = call_path_syscalls::now_ns().saturating_sub(self.called_ns);
        let (of, role) = match needs {
            DurabilityNeed::Flush if !rounds.commits.takes_along(policy, self.called_ns) => {
                (DurabilityNeed::Flush, RoundRole::Member)
            }
            needs => (DurabilityNeed::Commit, RoundRole::of(needs)),
        };
        let of_kind = rounds.of(of);
        of_kind.count_participant(seen.of(of));
        (request.before_hold)();
        let joined = of_kind
            .is_gated(policy, self.called_ns)
            .then(|| of_kind.join(policy, role, &self.limits));
        // The kernel looks the number up now. Another thread may have closed it, and opened another file, since
        // the program called: success of that one says nothing about this one, and its errors are its owner's. It
        // may be exchanged between the look and the kernel's, too, so there is one after the call as well.
        let result = if (request.is_same)() {
            match real() {
                0 if !(request.is_same)() => Err(request.gone),
                result => Ok(result),
            }
        } else {
            Err(request.gone)
        };
        of_kind.complete();
        let returned_ns = call_path_syscalls::now_ns();
        if returned_ns == call_path_syscalls::NO_TIME_NS {
            return (result, None);
        }
        let beside = rounds.beside(of, policy, returned_ns);
        let Some(joined) = joined else {
            let latency_ns = returned_ns.saturating_sub(self.called_ns);
            of_kind.returned_ungated(policy, returned_ns, latency_ns, beside);
            return (result, None);
        };
        let part = RoundTimes {
            written_back_ns,
            waited_ns: joined.waited_ns,
            timed_out: joined.timed_out,
            first_to_return: of_kind.returned_from_round(policy, &joined, beside),
        };
        (result, Some(part))
    }
}
