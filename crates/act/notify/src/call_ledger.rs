//! Messages of the supervisor to the keeper: pages that both have mapped.

use std::io;
use std::ops::Deref;
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicU32, AtomicU64};

use rustix::fs::{MemfdFlags, fstat, ftruncate, memfd_create};

use crate::fetch_file::FileInode;
use crate::seccomp_unotify::{self, NoticeAnswer, NoticeBuffer};

/// Maximum number of calls that a killed supervisor may have received and not noted, or noted in another order.
const MAX_UNNOTED_CALLS: u64 = 2048;

/// Maximum number of calls that the keeper answers at once: a damaged ledger must not keep it busy for ever.
const MAX_ANSWERED_CALLS: u64 = 1 << 20;

/// Maximum number of a listener's calls that wait for an answer.
pub(crate) const MAX_HELD_CALLS: usize = 512;

pub(crate) const RECEIVERS: usize = 2;

/// Maximum number of errors kept for their callers.
const MAX_LOST_ERRORS: usize = 32;

/// The shared pages. All zeros is the initial state.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct CallLedger {
    /// Number of the call that was received last.
    last: AtomicU64,
    /// Newest call that is answered or among `held`.
    handled: AtomicU64,
    /// Number of calls that were received and are neither.
    open: AtomicU32,
    /// Current call of each receiver; 0 is none.
    sorted: [AtomicU64; RECEIVERS],
    /// Number of calls that wait for an answer.
    waiting: AtomicU32,
    /// Counts up as long as the supervisor works.
    beats: AtomicU32,
    /// The keeper's process number.
    keeper: AtomicU32,
    /// Number of filters of system calls on the first process once the filter was set.
    filters: AtomicU32,
    /// Room for the first call of all, which a keeper receives.
    first: NoticeBuffer,
    /// Errors that no caller has been told yet.
    lost: [Lost; MAX_LOST_ERRORS],
    /// Numbers of the calls that wait for an answer; 0 is none.
    held: [AtomicU64; MAX_HELD_CALLS],
}

/// An error that only an early write was told. The program's own call would return 0.
#[repr(C)]
#[derive(Debug)]
struct Lost {
    state: AtomicU32,
    errno: AtomicU32,
    /// Call that is to return it; 0 if that call has ended without it.
    call: AtomicU64,
    device: AtomicU64,
    inode: AtomicU64,
}

impl Lost {
    const FREE: u32 = 0;
    const TAKEN: u32 = 1;
    const FILLED: u32 = 2;

    fn is_filled(&self) -> bool {
        self.state.load(SeqCst) == Self::FILLED
    }
}

impl CallLedger {
    pub(crate) fn received(&self, id: u64) {
        self.open.fetch_add(1, SeqCst);
        if self.last.fetch_max(id, SeqCst) == 0 {
            self.handled.store(id - 1, SeqCst);
        }
    }

    /// Notes that a receiver has received a call, before another one may.
    pub(crate) fn sorts(&self, receiver: usize, id: u64) {
        if let Some(sorted) = self.sorted.get(receiver) {
            sorted.store(id, SeqCst);
        }
        self.received(id);
    }

    /// Notes that a receiver's call is answered or held.
    pub(crate) fn has_sorted(&self, receiver: usize, id: u64) {
        self.handled(id);
        if let Some(sorted) = self.sorted.get(receiver) {
            sorted.store(0, SeqCst);
        }
    }

    /// The room into which a keeper receives the first call of all.
    pub(crate) fn first(&self) -> &NoticeBuffer {
        &self.first
    }

    /// Whether the first call of all was answered.
    pub(crate) fn has_begun(&self) -> bool {
        self.last.load(SeqCst) != 0
    }

    /// Notes that a received call is answered or held, once for each call. Two threads receive, so a newer call may be
    /// noted before an older one.
    pub(crate) fn handled(&self, id: u64) {
        self.handled.fetch_max(id, SeqCst);
        // Of a call that was answered for a dead supervisor it may be told twice.
        let _ = self.open.fetch_update(SeqCst, SeqCst, |open| open.checked_sub(1));
    }

    /// Notes that a call waits. Returns whether there was room for it.
    pub(crate) fn holds(&self, id: u64) -> bool {
        let free = self.held.iter().find(|held| held.load(Relaxed) == 0);
        let Some(free) = free else {
            return false;
        };
        free.store(id, SeqCst);
        self.waiting.fetch_add(1, SeqCst);
        true
    }

    /// Notes that a call that waited was answered.
    pub(crate) fn answered(&self, id: u64) {
        if let Some(held) = self.held.iter().find(|held| held.load(Relaxed) == id) {
            held.store(0, SeqCst);
            self.waiting.fetch_sub(1, SeqCst);
        }
    }

    /// Notes that all calls of a supervisor that has ended were answered.
    pub(crate) fn all_answered(&self) {
        for held in &self.held {
            held.store(0, SeqCst);
        }
        for sorted in &self.sorted {
            sorted.store(0, SeqCst);
        }
        self.waiting.store(0, SeqCst);
        self.open.store(0, SeqCst);
        self.handled.store(self.last.load(SeqCst), SeqCst);
    }

    /// Notes that the supervisor works.
    pub(crate) fn beat(&self) {
        self.beats.fetch_add(1, SeqCst);
    }

    /// Changes as long as the supervisor works.
    pub(crate) fn beats(&self) -> u32 {
        self.beats.load(SeqCst)
    }

    /// Whether a call waits for the supervisor.
    pub(crate) fn has_waiting(&self) -> bool {
        self.waiting.load(SeqCst) > 0 || self.open.load(SeqCst) > 0
    }

    /// Notes the keeper's process number.
    pub(crate) fn kept_by(&self, keeper: u32) {
        self.keeper.store(keeper, SeqCst);
    }

    /// The process number of the keeper that was started last; 0 if there was none.
    pub(crate) fn keeper(&self) -> u32 {
        self.keeper.load(SeqCst)
    }

    /// Notes how many filters the first process is under.
    pub(crate) fn begun_under(&self, filters: u32) {
        self.filters.store(filters, SeqCst);
    }

    /// Number of these filters; 0 if nobody has looked.
    pub(crate) fn filters(&self) -> u32 {
        self.filters.load(SeqCst)
    }

    /// Numbers of all calls that may wait for an answer: those that are held or being sorted, however old, and those
    /// around the last ones. Numbers count up by one, so a call that was received and never noted is among them.
    pub(crate) fn unanswered(&self) -> impl Iterator<Item = u64> {
        let held = self.held.iter().chain(&self.sorted);
        let held = held.map(|held| held.load(SeqCst));
        let first = self.handled.load(SeqCst).saturating_sub(MAX_UNNOTED_CALLS);
        let last = self.last.load(SeqCst).saturating_add(MAX_UNNOTED_CALLS);
        // What lies between was answered by who received it, as the event loop stood still.
        let middle = last.saturating_sub(MAX_ANSWERED_CALLS).max(first);
        let before = first..middle.min(first.saturating_add(MAX_ANSWERED_CALLS));
        held.filter(|&id| id != 0).chain(before).chain(middle..=last)
    }

    /// Keeps an error until a caller has been told. An error without room is told to its call alone.
    pub(crate) fn lose(&self, call: u64, file: FileInode, errno: i32) {
        let take = |lost: &&Lost| {
            let taken = (Lost::FREE, Lost::TAKEN);
            let took = lost.state.compare_exchange(taken.0, taken.1, SeqCst, SeqCst);
            took.is_ok()
        };
        if let Some(lost) = self.lost.iter().find(take) {
            lost.errno.store(errno.unsigned_abs(), SeqCst);
            lost.call.store(call, SeqCst);
            lost.device.store(file.device, SeqCst);
            lost.inode.store(file.number, SeqCst);
            lost.state.store(Lost::FILLED, SeqCst);
        }
    }

    /// Answers a call, with the error that is kept for it if there is one.
    pub(crate) fn answer(&self, listener: RawFd, id: u64) {
        let is_of_call = |lost: &&Lost| lost.is_filled() && lost.call.load(SeqCst) == id;
        match self.lost.iter().find(is_of_call).filter(|_| id != 0) {
            None => {
                // That the call is gone is no error.
                let _ = seccomp_unotify::answer(listener, id, NoticeAnswer::Continue);
            }
            Some(lost) => lost.tell(listener, id),
        }
    }

    /// Answers a call with its error, which is kept for others if it does not arrive.
    pub(crate) fn tell(&self, listener: RawFd, id: u64, errno: i32) {
        let is_of_call = |lost: &&Lost| lost.is_filled() && lost.call.load(SeqCst) == id;
        match self.lost.iter().find(is_of_call) {
            Some(lost) => lost.tell(listener, id),
            None => {
                // There was no room for it.
                let _ = seccomp_unotify::answer(listener, id, NoticeAnswer::Fail(errno));
            }
        }
    }

    /// Answers a call of a file with an error that an earlier call was not told. Returns whether there was one.
    pub(crate) fn tell_lost(&self, listener: RawFd, id: u64, file: FileInode) -> bool {
        let is_of_file = |lost: &&Lost| {
            lost.is_filled()
                && lost.call.load(SeqCst) == 0
                && lost.device.load(SeqCst) == file.device
                && lost.inode.load(SeqCst) == file.number
        };
        let lost = self.lost.iter().find(is_of_file);
        if let Some(lost) = lost {
            lost.tell(listener, id);
        }
        lost.is_some()
    }

    /// Whether an error waits for the next call of its file.
    pub(crate) fn has_lost(&self) -> bool {
        let waits = |lost: &Lost| lost.is_filled() && lost.call.load(SeqCst) == 0;
        self.lost.iter().any(waits)
    }
}

impl Lost {
    /// Answers a call with the error. If the call is gone, the error is kept for the next call of the file.
    fn tell(&self, listener: RawFd, id: u64) {
        let errno = self.errno.load(SeqCst) as i32;
        match seccomp_unotify::answer(listener, id, NoticeAnswer::Fail(errno)) {
            Ok(()) => self.state.store(Self::FREE, SeqCst),
            Err(_) => self.call.store(0, SeqCst),
        }
    }
}

/// A ledger in memory that a forked process shares.
#[derive(Debug)]
pub(crate) struct MappedLedger(NonNull<CallLedger>);

// SAFETY: the ledger is atomics throughout, and mapped as long as this value lives.
unsafe impl Send for MappedLedger {}
// SAFETY: as above.
unsafe impl Sync for MappedLedger {}

impl MappedLedger {
    /// Maps a new ledger that only this process and its children see.
    ///
    /// # Errors
    /// There is no memory.
    pub(crate) fn new() -> io::Result<Self> {
        Self::map(libc::MAP_ANONYMOUS, -1)
    }

    /// Makes a ledger that outlives this process, and the file that has it. `name` is for people.
    ///
    /// # Errors
    /// There is no memory.
    pub(crate) fn lasting(name: &str) -> io::Result<(Self, OwnedFd)> {
        let file = memfd_create(name, MemfdFlags::CLOEXEC)?;
        ftruncate(&file, size_of::<CallLedger>() as u64)?;
        Ok((Self::of(&file)?, file))
    }

    /// Maps the ledger of a file that [`lasting`](Self::lasting) has made.
    ///
    /// # Errors
    /// The file has another size.
    pub(crate) fn of(file: &OwnedFd) -> io::Result<Self> {
        if fstat(file)?.st_size as usize != size_of::<CallLedger>() {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Self::map(0, file.as_raw_fd())
    }

    fn map(flags: i32, file: i32) -> io::Result<Self> {
        // SAFETY: a fresh mapping at an address of the kernel's choice, of a file that is as long and is never cut.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size_of::<CallLedger>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | flags,
                file,
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let address = NonNull::new(address.cast());
        address.map(Self).ok_or(io::ErrorKind::OutOfMemory.into())
    }
}

impl Deref for MappedLedger {
    type Target = CallLedger;

    fn deref(&self) -> &CallLedger {
        // SAFETY: mapped by `new`, zeroed, page-aligned, unmapped only when dropped.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for MappedLedger {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, and nobody borrows it any more.
        unsafe { libc::munmap(self.0.as_ptr().cast(), size_of::<CallLedger>()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LISTENER: RawFd = -1;

    proptest! {
        #[test]
        fn a_call_that_waits_is_answered_wherever_the_supervisor_was_killed(
            first in 1..u64::MAX / 2,
            steps in proptest::collection::vec((0..3_usize, 0..8_usize, 1..10_000_000_u64), 1..200),
            killed_at in 0..200_usize,
            noted: bool,
        ) {
            let ledger = MappedLedger::new().unwrap();
            let (mut next, mut queued, mut waiting) = (first, Vec::new(), Vec::new());
            for (step, (what, which, others)) in steps.into_iter().enumerate() {
                match what {
                    // The receiver's, which may be killed between receiving and noting.
                    0 => {
                        queued.push(next);
                        if step >= killed_at && step > 0 {
                            if noted {
                                ledger.received(next);
                            }
                            break;
                        }
                        ledger.received(next);
                        next += 1;
                    }
                    // The event loop's.
                    1 => for id in queued.drain(..) {
                        if ledger.holds(id) {
                            waiting.push(id);
                        }
                        ledger.handled(id);
                    },
                    // Calls that come and go while others are held.
                    _ if queued.is_empty() && next > first => {
                        next += others;
                        ledger.received(next);
                        ledger.handled(next);
                        next += 1;
                    }
                    _ => {}
                }
                if which < waiting.len() {
                    ledger.answered(waiting.remove(which));
                }
                prop_assert_eq!(ledger.has_waiting(), !queued.is_empty() || !waiting.is_empty());
            }
            if ledger.has_begun() {
                let unanswered: std::collections::HashSet<u64> = ledger.unanswered().collect();
                prop_assert!(waiting.iter().chain(&queued).all(|id| unanswered.contains(id)));
            }
        }
    }

    #[test]
    fn a_damaged_ledger_keeps_nobody_busy() {
        let ledger = MappedLedger::new().unwrap();
        ledger.received(u64::MAX - 1);
        ledger.handled.store(0, SeqCst);
        assert!(ledger.unanswered().count() as u64 <= 2 * MAX_ANSWERED_CALLS + 1);
        ledger.handled.store(u64::MAX, SeqCst);
        assert!(ledger.unanswered().count() as u64 <= MAX_ANSWERED_CALLS);
    }

    #[test]
    fn no_more_calls_are_held_than_there_is_room_for() {
        let ledger = MappedLedger::new().unwrap();
        let most = MAX_HELD_CALLS as u64;
        assert!((1..=most).all(|id| ledger.holds(id)));
        assert!(!ledger.holds(most + 1));
        ledger.answered(7);
        assert!(ledger.holds(most + 1));
        ledger.received(most + 2);
        ledger.all_answered();
        assert!(!ledger.has_waiting() && ledger.holds(most + 3));
    }

    #[test]
    fn an_error_is_kept_until_a_call_of_its_file_was_told() {
        let ledger = MappedLedger::new().unwrap();
        let file = |number| FileInode { device: 1, number };
        ledger.lose(5, file(7), libc::EIO);
        assert!(!ledger.has_lost(), "its call is still to be told");
        ledger.answer(LISTENER, 4);
        assert!(!ledger.has_lost());
        // The answer does not arrive.
        ledger.answer(LISTENER, 5);
        assert!(ledger.has_lost());
        assert!(!ledger.tell_lost(LISTENER, 6, file(8)));
        for id in 6..9 {
            assert!(ledger.tell_lost(LISTENER, id, file(7)));
            assert!(ledger.has_lost());
        }
        for inode in 0..2 * MAX_LOST_ERRORS as u64 {
            ledger.lose(5, file(inode), libc::EIO);
        }
    }
}
