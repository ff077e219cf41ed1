//! A thread that only receives calls.
//!
//! Until a call is received its thread waits interruptibly, whatever the filter's flags say: a signal whose handler has no
//! SA_RESTART makes it return EINTR. So a call is received as soon as there is one, by a thread that does nothing else,
//! with real-time priority where it may have that. What becomes of the call is the event loop's business.

use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use luc_gate::sys;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};

use crate::ledger::SharedLedger;
use crate::realtime::RealTime;
use crate::uapi::{self, Answer, Notice};
use crate::writers::Ringer;

/// Calls that wait for the event loop, at most. What comes beyond goes on at once.
const MOST_QUEUED: usize = 1024;

/// An event loop that has been at the same thing for this long gets no further calls, in nanoseconds. It is shorter than
/// the keeper's patience: what the loop has then, the keeper answers.
const STALE_NS: u64 = 200_000_000;

/// A program that makes calls without end is not to keep a processor busy with real-time priority: calls in a window that
/// are received with it, and the window's length in nanoseconds.
const MOST_RAISED: u32 = 2000;
const WINDOW_NS: u64 = 100_000_000;

/// The thread, and what it has received.
#[derive(Debug)]
pub(crate) struct Receiver {
    shared: Arc<Shared>,
    notices: mpsc::Receiver<Notice>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    /// Readable when it is to begin, or to end.
    told: OwnedFd,
    has_begun: AtomicBool,
    is_over: AtomicBool,
    nobody_left: AtomicBool,
    /// Since when the event loop has been at the same thing; 0 while it sleeps.
    working_ns: AtomicU64,
}

impl Receiver {
    /// Starts the thread, which waits until it is to [`begin`](Self::begin). It rings the bell for each call.
    ///
    /// # Errors
    /// If the system has no thread or descriptor left.
    pub(crate) fn start(
        listener: OwnedFd,
        bell: Ringer,
        ledger: Arc<SharedLedger>,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            told: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            has_begun: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            nobody_left: AtomicBool::new(false),
            working_ns: AtomicU64::new(0),
        });
        let (sender, notices) = mpsc::sync_channel(MOST_QUEUED);
        let of_thread = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("received".to_owned())
            .spawn(move || of_thread.work(&listener, &bell, &ledger, &sender))?;
        Ok(Self {
            shared,
            notices,
            thread: Some(thread),
        })
    }

    /// Has it receive calls: the keeper has received the first one of all.
    pub(crate) fn begin(&self) {
        if !self.shared.has_begun.swap(true, Ordering::AcqRel) {
            self.shared.tell();
        }
    }

    /// The next call that was received.
    pub(crate) fn next(&self) -> Option<Notice> {
        self.notices.try_recv().ok()
    }

    /// Whether nobody is under the filter any more.
    pub(crate) fn nobody_left(&self) -> bool {
        self.shared.nobody_left.load(Ordering::Acquire)
    }

    /// Notes that the event loop is at something new.
    pub(crate) fn loop_works(&self) {
        self.shared
            .working_ns
            .store(sys::now_ns(), Ordering::Release);
    }

    /// Notes that the event loop goes to sleep.
    pub(crate) fn loop_sleeps(&self) {
        self.shared.working_ns.store(0, Ordering::Release);
    }

    /// Ends the thread. What it has received is still there.
    pub(crate) fn end(&mut self) {
        self.shared.is_over.store(true, Ordering::Release);
        self.shared.tell();
        if let Some(thread) = self.thread.take() {
            // One that has panicked has ended as well.
            let _ = thread.join();
        }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.end();
    }
}

impl Shared {
    fn tell(&self) {
        // It cannot be full: it counts to 2^64.
        let _ = rustix::io::write(self.told.as_fd(), &1_u64.to_ne_bytes());
    }

    fn work(
        &self,
        listener: &OwnedFd,
        bell: &Ringer,
        ledger: &SharedLedger,
        notices: &mpsc::SyncSender<Notice>,
    ) {
        let mut pace = Pace::new(sys::now_ns());
        while !self.is_over.load(Ordering::Acquire) {
            let of_calls = if self.has_begun.load(Ordering::Acquire) {
                PollFlags::IN
            } else {
                PollFlags::empty()
            };
            let mut polled = [
                PollFd::new(listener, of_calls),
                PollFd::new(&self.told, PollFlags::IN),
            ];
            if poll(&mut polled, None).is_err() {
                continue;
            }
            let [of_listener, of_told] = polled.map(|polled| polled.revents());
            if of_listener.contains(PollFlags::IN) {
                if let Ok(notice) = uapi::receive(listener.as_raw_fd()) {
                    let now_ns = sys::now_ns();
                    ledger.received(notice.id);
                    if self.is_stale(now_ns) || notices.try_send(notice).is_err() {
                        // That the call is gone is no error.
                        let _ = uapi::answer(listener.as_raw_fd(), notice.id, Answer::Continue);
                    } else {
                        bell.ring();
                    }
                    pace.has_received(now_ns);
                }
            } else if of_listener.intersects(PollFlags::HUP | PollFlags::ERR) {
                self.nobody_left.store(true, Ordering::Release);
                return bell.ring();
            }
            if !of_told.is_empty() {
                let mut count = [0; 8];
                // Nothing to read means that it was read before.
                let _ = rustix::io::read(&self.told, &mut count);
            }
        }
    }

    /// Whether the event loop does not get on.
    fn is_stale(&self, now_ns: u64) -> bool {
        let working_ns = self.working_ns.load(Ordering::Acquire);
        working_ns != 0 && now_ns.saturating_sub(working_ns) > STALE_NS
    }
}

/// Real-time priority for as many calls as a program makes that waits for its disk.
#[derive(Debug)]
struct Pace {
    raised: Option<RealTime>,
    began_ns: u64,
    received: u32,
}

impl Pace {
    fn new(now_ns: u64) -> Self {
        Self {
            raised: Some(RealTime::begin()),
            began_ns: now_ns,
            received: 0,
        }
    }

    fn has_received(&mut self, now_ns: u64) {
        if now_ns.saturating_sub(self.began_ns) >= WINDOW_NS {
            (self.began_ns, self.received) = (now_ns, 0);
            if self.raised.is_none() {
                self.raised = Some(RealTime::begin());
            }
        }
        self.received += 1;
        if self.received > MOST_RAISED {
            self.raised = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_calls_without_end_is_not_served_with_priority() {
        let mut pace = Pace::new(0);
        for _ in 0..MOST_RAISED {
            pace.has_received(1);
        }
        assert!(pace.raised.is_some());
        pace.has_received(2);
        assert!(pace.raised.is_none());
        pace.has_received(WINDOW_NS);
        assert!(pace.raised.is_some());
    }

    #[test]
    fn a_loop_that_stands_still_gets_no_further_calls() {
        let shared = Shared {
            told: eventfd(0, EventfdFlags::CLOEXEC).unwrap(),
            has_begun: AtomicBool::new(true),
            is_over: AtomicBool::new(false),
            nobody_left: AtomicBool::new(false),
            working_ns: AtomicU64::new(0),
        };
        assert!(!shared.is_stale(u64::MAX), "it sleeps");
        shared.working_ns.store(5, Ordering::Release);
        assert!(!shared.is_stale(5 + STALE_NS) && shared.is_stale(6 + STALE_NS));
    }
}
