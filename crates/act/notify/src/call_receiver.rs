//! Threads that only receive calls, and [sort](crate::call_sorter) them.
//!
//! Until a call is received its thread waits interruptibly, whatever the filter's flags say: a signal whose handler has
//! no SA_RESTART makes it return EINTR. Until its file is taken over, its descriptor's number may be given to another
//! file. So these threads do nothing but receive calls and take their files over. All else is up to the event loop.
//!
//! There are two threads. The first to come receives a call, and sorts it while the other one receives the next. One
//! has real-time priority where it may: no other work keeps it from a processor. But a real-time thread wakes on the
//! processor that it had, which may have to be woken first. The kernel wakes the other one, of ordinary priority, on
//! the caller's processor, which the caller leaves at once.

use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use luc_gate::writeback_errors;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};

use crate::call_ledger::{MappedLedger, RECEIVERS};
use crate::call_sorter::{CallSorter, ReceivedCall, SortResult};
use crate::early_writers::SupervisorBell;
use crate::seccomp_unotify::{self, ListenerState, NoticeAnswer, SyscallNotice};
use crate::serving_priority::ServingPriority;

/// Maximum number of calls that wait for the event loop, each with its file. Further calls go on at once.
const MAX_QUEUED_CALLS: usize = 512;

/// Maximum time that the event loop may take for one step before it gets no further calls. It is shorter than the
/// keeper's timeout: the keeper answers the calls that the loop has then.
const MAX_STEP_NS: u64 = 200_000_000;

/// Timeout for the end of a thread.
const END_TIMEOUT: Duration = Duration::from_millis(100);

/// The threads, and what they have received.
#[derive(Debug)]
pub(crate) struct CallReceiver {
    shared: Arc<Shared>,
    received: mpsc::Receiver<ReceivedCall>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    listener: OwnedFd,
    bell: SupervisorBell,
    ledger: Arc<MappedLedger>,
    sorter: Arc<CallSorter>,
    /// Readable when the threads are to end.
    told: OwnedFd,
    /// Held by the thread that receives.
    turn: Mutex<()>,
    has_begun: AtomicBool,
    is_over: AtomicBool,
    nobody_left: AtomicBool,
    /// Time at which the event loop began its current step; 0 while it sleeps.
    working_ns: AtomicU64,
}

impl CallReceiver {
    /// Starts the threads, which wait for [`begin`](Self::begin). They ring the bell for each call.
    ///
    /// # Errors
    /// The system has no thread or descriptor left.
    pub(crate) fn start(
        listener: OwnedFd,
        bell: SupervisorBell,
        ledger: Arc<MappedLedger>,
        sorter: Arc<CallSorter>,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            listener,
            bell,
            ledger,
            sorter,
            told: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            turn: Mutex::default(),
            has_begun: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            nobody_left: AtomicBool::new(false),
            working_ns: AtomicU64::new(0),
        });
        let (sender, received) = mpsc::sync_channel(MAX_QUEUED_CALLS);
        let mut receiver = Self { shared, received, threads: Vec::new() };
        for index in 0..RECEIVERS {
            let (shared, sender) = (Arc::clone(&receiver.shared), sender.clone());
            let thread = thread::Builder::new()
                .name("received".to_owned())
                .spawn(move || shared.work(index, &sender))?;
            receiver.threads.push(thread);
        }
        Ok(receiver)
    }

    /// Lets the threads receive calls. To be called when the keeper has received the first call of all.
    pub(crate) fn begin(&self) {
        if !self.shared.has_begun.swap(true, Ordering::AcqRel) {
            for thread in &self.threads {
                thread.thread().unpark();
            }
        }
    }

    pub(crate) fn next(&self) -> Option<ReceivedCall> {
        self.received.try_recv().ok()
    }

    /// Whether nobody is under the filter any more.
    pub(crate) fn nobody_left(&self) -> bool {
        self.shared.nobody_left.load(Ordering::Acquire)
    }

    /// Notes that the event loop is at something new.
    pub(crate) fn loop_works(&self) {
        self.shared.working_ns.store(writeback_errors::now_ns(), Ordering::Release);
    }

    /// Notes that the event loop goes to sleep.
    pub(crate) fn loop_sleeps(&self) {
        self.shared.working_ns.store(0, Ordering::Release);
    }

    /// Ends the threads, but for one that sleeps in the receipt because the keeper was quicker: it lets one more call
    /// pass. The calls that they have received stay.
    pub(crate) fn end(&mut self) {
        self.shared.is_over.store(true, Ordering::Release);
        self.shared.tell();
        for thread in self.threads.drain(..) {
            thread.thread().unpark();
            let begun = Instant::now();
            while !thread.is_finished() && begun.elapsed() < END_TIMEOUT {
                thread::sleep(END_TIMEOUT / 1000);
            }
        }
    }
}

impl Drop for CallReceiver {
    fn drop(&mut self) {
        self.end();
    }
}

impl Shared {
    fn tell(&self) {
        // It cannot be full: it counts to 2^64.
        let _ = rustix::io::write(self.told.as_fd(), &1_u64.to_ne_bytes());
    }

    fn work(&self, index: usize, loop_: &mpsc::SyncSender<ReceivedCall>) {
        let is_raised = index == 0;
        let mut pace = ServingPriority::new(is_raised, writeback_errors::now_ns());
        while !self.is_over.load(Ordering::Acquire) {
            if !self.has_begun.load(Ordering::Acquire) {
                thread::park();
                continue;
            }
            let mut polled = [
                PollFd::new(&self.listener, PollFlags::IN),
                PollFd::new(&self.told, PollFlags::IN),
            ];
            if poll(&mut polled, None).is_err() {
                continue;
            }
            let [of_listener, _] = polled.map(|polled| polled.revents());
            if of_listener.contains(PollFlags::IN) {
                if let Some(now_ns) = self.receive(index, loop_) {
                    pace.has_served(now_ns);
                }
            } else if of_listener.intersects(PollFlags::HUP | PollFlags::ERR) {
                self.nobody_left.store(true, Ordering::Release);
                return self.bell.ring();
            }
        }
    }

    /// Receives a call, unless the other thread has. Returns the time of the receipt.
    fn receive(&self, index: usize, loop_: &mpsc::SyncSender<ReceivedCall>) -> Option<u64> {
        let notice = self.next_notice(index)?;
        let (id, received_ns) = (notice.id, writeback_errors::now_ns());
        if self.stands_still(received_ns) {
            self.let_go(id);
            self.ledger.has_sorted(index, id);
            return Some(received_ns);
        }
        let listener = self.listener.as_raw_fd();
        let must_take = self.ledger.has_lost();
        let found = self.sorter.sort(listener, &notice, must_take, received_ns);
        // What waits is noted before anybody else learns of it. Without room it goes on.
        let waits = matches!(found, SortResult::Taken(_));
        let is_held = waits && self.ledger.holds(id);
        let received = ReceivedCall { notice, received_ns, found };
        // Before the answer: a thread's next call may be the other receiver's.
        let rejected = if waits == is_held {
            loop_.try_send(received).err().map(inner)
        } else {
            Some(received)
        };
        if !waits || rejected.is_some() {
            self.let_go(id);
        }
        match rejected {
            None => self.bell.ring(),
            Some(rejected) => {
                if is_held {
                    self.ledger.answered(id);
                }
                rejected.close();
            }
        }
        self.ledger.has_sorted(index, id);
        Some(received_ns)
    }

    fn next_notice(&self, index: usize) -> Option<SyscallNotice> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let listener = self.listener.as_raw_fd();
        let notice = match seccomp_unotify::is_waiting(listener, 0) {
            ListenerState::Call => seccomp_unotify::receive(listener).ok()?,
            ListenerState::Nothing | ListenerState::NobodyLeft => return None,
        };
        self.ledger.sorts(index, notice.id);
        Some(notice)
    }

    fn let_go(&self, id: u64) {
        // That the call is gone is no error.
        let _ = seccomp_unotify::answer(self.listener.as_raw_fd(), id, NoticeAnswer::Continue);
    }

    fn stands_still(&self, now_ns: u64) -> bool {
        let working_ns = self.working_ns.load(Ordering::Acquire);
        working_ns != 0 && now_ns.saturating_sub(working_ns) > MAX_STEP_NS
    }
}

fn inner<T>(error: mpsc::TrySendError<T>) -> T {
    match error {
        mpsc::TrySendError::Full(value) | mpsc::TrySendError::Disconnected(value) => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deferred_close::FilesToClose;
    use crate::early_writers::EarlyWriters;
    use luc_gate::gate_policy::GatePolicy;

    #[test]
    fn a_loop_that_stands_still_gets_no_further_calls() {
        let ledger = Arc::new(MappedLedger::new().unwrap());
        let shared = Shared {
            listener: std::fs::File::open("/dev/null").unwrap().into(),
            bell: EarlyWriters::start(Arc::clone(&ledger)).unwrap().ringer().unwrap(),
            ledger,
            sorter: Arc::new(CallSorter::new(GatePolicy::Off, FilesToClose::default())),
            told: eventfd(0, EventfdFlags::CLOEXEC).unwrap(),
            turn: Mutex::default(),
            has_begun: AtomicBool::new(true),
            is_over: AtomicBool::new(false),
            nobody_left: AtomicBool::new(false),
            working_ns: AtomicU64::new(0),
        };
        assert!(!shared.stands_still(u64::MAX), "it sleeps");
        shared.working_ns.store(5, Ordering::Release);
        assert!(!shared.stands_still(5 + MAX_STEP_NS) && shared.stands_still(6 + MAX_STEP_NS));
    }
}
