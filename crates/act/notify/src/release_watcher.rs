//! A thread that sleeps until callers from elsewhere release a round in which callers are held here.
//!
//! Several supervisors hold callers in the same rounds. The release of a round wakes the sleepers on its generation, as
//! among threads; an event loop sleeps on descriptors and not on that. A commit takes callers in for about 0.2 ms. A
//! caller that is let go later than that flushes the device once more, for itself alone. So the thread lets callers go
//! by itself, before it wakes the loop. The loop answers them once more, which the kernel refuses, and counts them.

use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{io, mem, ptr, thread};

use luc_gate::rounds::Rounds;
use rustix::io::Errno;
use rustix::thread::futex::{self, ClockId, Flags, Wait, WaitFlags, WaitPtr, WaitvFlags};

use crate::early_writers::SupervisorBell;
use crate::kept_file::{DescriptorState, KeptFile};
use crate::realtime_priority::RealTimePriority;
use crate::seccomp_unotify;

/// Maximum number of watched rounds; the kernel waits for 128 words at once.
const MAX_ROUNDS: usize = 64;

/// The thread. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct ReleaseWatcher(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    watched: Mutex<Vec<Round>>,
    /// Counts changes of the list; the thread sleeps on this, too.
    changes: AtomicU32,
    is_over: AtomicBool,
    /// The kernel, or a filter above, refuses to wait for several things.
    has_failed: AtomicBool,
}

#[derive(Debug)]
struct Round {
    rounds: &'static Rounds,
    generation: u32,
    /// Calls held here that go with it.
    calls: Vec<WatchedCall>,
}

/// A call that goes with its round.
#[derive(Clone, Debug)]
pub(crate) struct WatchedCall {
    pub(crate) id: u64,
    pub(crate) file: Arc<KeptFile>,
}

impl ReleaseWatcher {
    /// Starts the thread. When a watched round is released, the thread lets its calls go by this listener and rings the
    /// bell.
    ///
    /// # Errors
    /// The system has no thread left.
    pub(crate) fn start(bell: SupervisorBell, listener: OwnedFd) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let watcher = Self(Arc::clone(&shared));
        thread::Builder::new()
            .name("releases".to_owned())
            .spawn(move || shared.work(&bell, &listener))?;
        Ok(watcher)
    }

    /// Watches a round, with whose release these calls go. Returns whether the release will be noticed.
    pub(crate) fn watch(
        &self,
        rounds: &'static Rounds,
        generation: u32,
        calls: &[WatchedCall],
    ) -> bool {
        if self.0.has_failed.load(Ordering::Acquire) {
            return false;
        }
        let mut watched = self.0.lock();
        let known = watched
            .iter_mut()
            .find(|one| ptr::eq(one.rounds, rounds) && one.generation == generation);
        if let Some(one) = known {
            one.calls = calls.to_vec();
            return true;
        }
        if watched.len() >= MAX_ROUNDS {
            return false;
        }
        watched.push(Round { rounds, generation, calls: calls.to_vec() });
        drop(watched);
        self.0.has_changed();
        true
    }
}

impl Drop for ReleaseWatcher {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Release);
        self.0.has_changed();
    }
}

impl Shared {
    /// A thread that panics leaves nothing half-done here.
    fn lock(&self) -> MutexGuard<'_, Vec<Round>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_changed(&self) {
        self.changes.fetch_add(1, Ordering::Release);
        // That nobody sleeps is no error.
        let _ = futex::wake(&self.changes, Flags::PRIVATE, 1);
    }

    fn work(&self, bell: &SupervisorBell, listener: &OwnedFd) {
        // It sleeps but for the moments at which it lets callers go.
        RealTimePriority::begin_for_good();
        loop {
            let changes = self.changes.load(Ordering::Acquire);
            if self.is_over.load(Ordering::Acquire) {
                return;
            }
            let mut waits = vec![wait_on(&self.changes, changes, WaitFlags::PRIVATE)];
            let mut watched = self.lock();
            let (gathering, released): (Vec<_>, Vec<_>) = mem::take(&mut *watched)
                .into_iter()
                .partition(|one| one.rounds.gathering().0 == one.generation);
            for one in &gathering {
                let word = one.rounds.generation_word();
                waits.push(wait_on(word, one.generation, WaitFlags::empty()));
            }
            *watched = gathering;
            drop(watched);
            for one in &released {
                // Whoever has another file by its number by now is the loop's.
                let same = one.calls.iter();
                let same = same.filter(|call| call.file.give_up() == DescriptorState::Same);
                let ids: Vec<u64> = same.map(|call| call.id).collect();
                seccomp_unotify::let_all_go(listener.as_fd(), ids.into_iter());
            }
            if !released.is_empty() {
                bell.ring();
            }
            match futex::waitv(&waits, WaitvFlags::empty(), None, ClockId::Monotonic) {
                // Something has changed, before or after it slept.
                Ok(_) | Err(Errno::AGAIN | Errno::INTR) => {}
                Err(_) => {
                    self.has_failed.store(true, Ordering::Release);
                    // Who is held here looks by itself from now on.
                    return bell.ring();
                }
            }
        }
    }
}

/// A wait that lasts while a word has this value.
fn wait_on(word: &AtomicU32, value: u32, flags: WaitFlags) -> Wait {
    let mut wait = Wait::new();
    wait.val = value.into();
    wait.uaddr = WaitPtr::new(word.as_ptr().cast());
    wait.flags = WaitFlags::SIZE_U32 | flags;
    wait
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    use super::*;
    use crate::call_ledger::MappedLedger;
    use crate::early_writers::EarlyWriters;
    use luc_gate::gate_policy::GatePolicy;
    use luc_gate::rounds::{HoldLimits, RoundRole};
    use luc_gate::writeback_errors;

    fn writers() -> EarlyWriters {
        EarlyWriters::start(Arc::new(MappedLedger::new().unwrap())).unwrap()
    }

    fn no_listener() -> OwnedFd {
        std::fs::File::open("/dev/null").unwrap().into()
    }

    #[test]
    fn a_release_by_others_rings_the_bell() {
        let policy: GatePolicy = "delay:5ms".parse().unwrap();
        // SAFETY: all zeros is the valid initial state.
        let rounds: &'static Rounds = Box::leak(Box::new(unsafe { std::mem::zeroed() }));
        rounds.start(&policy);
        let limits = HoldLimits { longest_ns: 20_000_000, own_call_ns: 0 };
        let writers = writers();
        let watcher = ReleaseWatcher::start(writers.ringer().unwrap(), no_listener()).unwrap();
        for _ in 0..3 {
            let waiting =
                rounds.arrive(&policy, RoundRole::Member, writeback_errors::now_ns(), &limits);
            assert!(watcher.watch(rounds, waiting.generation(), &[]));
            // It leaves at its deadline, and releases the round.
            std::thread::spawn(move || rounds.join(&policy, RoundRole::Member, &limits));
            let mut polled = [PollFd::new(writers.bell(), PollFlags::IN)];
            let minute = Timespec { tv_sec: 60, tv_nsec: 0 };
            assert_eq!(poll(&mut polled, Some(&minute)), Ok(1));
            assert_ne!(rounds.gathering().0, waiting.generation());
            writers.done();
        }
    }

    #[test]
    fn its_thread_ends_with_it() {
        let writers = writers();
        let watcher = ReleaseWatcher::start(writers.ringer().unwrap(), no_listener()).unwrap();
        let shared = Arc::downgrade(&watcher.0);
        drop(watcher);
        let begun = Instant::now();
        while shared.strong_count() > 0 && begun.elapsed() < Duration::from_secs(60) {
            std::thread::yield_now();
        }
        assert_eq!(shared.strong_count(), 0);
    }
}
