//! The event loop. It sleeps until a call was received, an early write is done, or a held caller may go.
//!
//! The loop does nothing that waits for a disk or a server: while it waits, all programs wait.

use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use luc_gate::writeback_errors;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::call_ledger::MappedLedger;
use crate::call_receiver::CallReceiver;
use crate::call_sorter::SortResult;
use crate::keeper_process::{KeeperProcess, ListenerSource};
use crate::notified_calls::NotifiedCalls;
use crate::serving_priority::ServingPriority;

/// Interval at which the loop shows the keeper that it works, while a call waits for its answer.
const BEAT_INTERVAL_NS: u64 = 50_000_000;

/// Minimum time between two replacements of a lost keeper.
const MIN_REPLACE_INTERVAL_NS: u64 = 100_000_000;

/// Maximum number of calls between two signs of the loop that it works.
const MAX_CALLS_PER_BEAT: usize = 64;

/// State of the event loop.
#[derive(Debug)]
pub(crate) struct Supervisor {
    pub(crate) calls: NotifiedCalls,
    pub(crate) receiver: CallReceiver,
    /// Closed with the loop: then the keeper knows that it is alone.
    pub(crate) control: UnixStream,
    pub(crate) keeper: Option<KeeperProcess>,
    pub(crate) ledger: Arc<MappedLedger>,
    pub(crate) is_over: Arc<AtomicBool>,
    /// Nobody is under the filter any more.
    pub(crate) nobody_left: bool,
    /// Whether the loop ends then; else it waits to be told.
    pub(crate) ends_alone: bool,
    /// Time of the keeper's last replacement.
    pub(crate) replaced_ns: u64,
}

/// The listener and the keeper, when the loop has ended.
#[derive(Debug)]
pub(crate) struct SupervisorEnd {
    pub(crate) listener: OwnedFd,
    pub(crate) keeper: Option<KeeperProcess>,
}

/// Reasons for which the loop has woken.
#[derive(Clone, Copy, Debug, Default)]
struct Woken {
    bell: bool,
    keeper_ended: bool,
}

impl Supervisor {
    /// Serves until it is told that the command has ended. Answers the calls that it still holds then; the keeper
    /// answers later ones.
    pub(crate) fn run(mut self) -> SupervisorEnd {
        // A hold ends when it ends, not up to 50 us later.
        // SAFETY: plain numbers.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
        let mut pace = ServingPriority::new(false, writeback_errors::now_ns());
        let mut wake_ns = u64::MAX;
        while !self.is_done() {
            let woken = self.sleep(wake_ns);
            self.ledger.beat();
            self.receiver.loop_works();
            // An error means that a signal came, and nothing else.
            if let Ok(woken) = woken {
                self.attend(woken);
            }
            let has_more = self.take_received(&mut pace);
            self.replace_keeper();
            wake_ns = self.calls.go_on();
            if has_more {
                wake_ns = 0;
            }
        }
        if self.keeper.is_none() {
            // Programs that go on have nobody else.
            self.replaced_ns = 0;
            self.replace_keeper();
        }
        self.receiver.end();
        while let Some(received) = self.receiver.next() {
            match received.found {
                SortResult::Taken(_) => self.calls.answer_now(received),
                // It has gone on already, and is only counted.
                _ => self.calls.take_call(received),
            }
        }
        SupervisorEnd { listener: self.calls.end(), keeper: self.keeper }
    }

    /// Takes a part of the calls that were received. Returns whether there may be more.
    fn take_received(&mut self, pace: &mut ServingPriority) -> bool {
        for _ in 0..MAX_CALLS_PER_BEAT {
            let Some(received) = self.receiver.next() else {
                return false;
            };
            self.calls.take_call(received);
            pace.has_served(writeback_errors::now_ns());
        }
        true
    }

    /// Whether it was told to end, or ends by itself.
    fn is_done(&self) -> bool {
        self.is_over.load(Ordering::Acquire) || (self.ends_alone && self.nobody_left)
    }

    /// Sleeps until something has come, or until `wake_ns`.
    fn sleep(&self, wake_ns: u64) -> Result<Woken, Errno> {
        let mut wake_ns = wake_ns;
        if self.calls.are_waiting() {
            wake_ns = wake_ns.min(writeback_errors::now_ns().saturating_add(BEAT_INTERVAL_NS));
        }
        if self.keeper.is_none() && !self.nobody_left {
            wake_ns = wake_ns.min(self.replaced_ns.saturating_add(MIN_REPLACE_INTERVAL_NS));
        }
        let timeout = (wake_ns != u64::MAX).then(|| {
            let ns = wake_ns.saturating_sub(writeback_errors::now_ns());
            Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as _ }
        });
        let bell = self.calls.bell();
        let keeper = self.keeper.as_ref().map(|keeper| &keeper.ended);
        // The keeper receives the first call of all, and says so.
        let waits = self.keeper.is_some() && !self.ledger.has_begun();
        if !waits {
            self.receiver.begin();
        }
        let control = if waits { self.control.as_fd() } else { bell.as_fd() };
        // Where there is nothing to look at, the bell stands for it.
        let mut polled = [
            PollFd::new(bell, PollFlags::IN),
            PollFd::new(keeper.unwrap_or(bell), PollFlags::IN),
            PollFd::from_borrowed_fd(control, PollFlags::IN),
        ];
        self.receiver.loop_sleeps();
        poll(&mut polled, timeout.as_ref())?;
        let [of_bell, of_keeper, _] = polled.map(|polled| polled.revents());
        Ok(Woken {
            bell: !of_bell.is_empty(),
            keeper_ended: keeper.is_some() && !of_keeper.is_empty(),
        })
    }

    fn attend(&mut self, woken: Woken) {
        if woken.bell {
            self.calls.take_results();
        }
        self.nobody_left = self.receiver.nobody_left();
        if woken.keeper_ended
            && let Some(keeper) = self.keeper.take()
        {
            keeper.reap();
        }
    }

    /// Starts a keeper in the place of one that has ended.
    fn replace_keeper(&mut self) {
        let now_ns = writeback_errors::now_ns();
        let is_soon = now_ns < self.replaced_ns.saturating_add(MIN_REPLACE_INTERVAL_NS);
        if self.keeper.is_some() || self.nobody_left || is_soon {
            return;
        }
        self.replaced_ns = now_ns;
        let Ok((here, there)) = UnixStream::pair() else {
            return;
        };
        let source = ListenerSource::Own(self.calls.listener().as_fd());
        self.keeper = KeeperProcess::start(&self.ledger, there.as_fd(), source).ok();
        self.control = here;
    }
}
