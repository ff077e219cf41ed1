//! What the supervisor tells the keeper: a page that both have mapped.

use std::io;
use std::ops::{Deref, RangeInclusive};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicU32, AtomicU64};

use rustix::fs::{MemfdFlags, fstat, ftruncate, memfd_create};

use crate::uapi::SharedRoom;

/// Calls that the supervisor may have received and not noted when it was killed.
const UNNOTED: u64 = 2048;

/// The keeper answers no more numbers than this at once: a damaged ledger must not keep it busy for ever.
const MOST_ANSWERED: u64 = 1 << 22;

/// The page. All zeros is its beginning.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Ledger {
    /// The number of the call that was received last.
    last: AtomicU64,
    /// No call before this one waits for an answer.
    oldest: AtomicU64,
    /// Calls that wait for an answer.
    waiting: AtomicU32,
    /// Counts up as long as the supervisor works.
    beats: AtomicU32,
    /// The keeper's process number.
    keeper: AtomicU32,
    /// Filters of system calls that the first process under the filter was under when it had been set.
    filters: AtomicU32,
    /// The first call of all, which a keeper receives.
    first: SharedRoom,
}

impl Ledger {
    /// Notes that a call was received.
    pub(crate) fn received(&self, id: u64) {
        if self.last.swap(id, SeqCst) == 0 {
            self.oldest.store(id, SeqCst);
        }
    }

    /// The room into which a keeper receives the first call of all.
    pub(crate) fn first(&self) -> &SharedRoom {
        &self.first
    }

    /// Whether the first call of all was answered.
    pub(crate) fn has_begun(&self) -> bool {
        self.last.load(SeqCst) != 0
    }

    /// Notes the calls that wait: the oldest, and how many.
    pub(crate) fn waiting(&self, oldest: Option<u64>, count: usize) {
        let next = self.last.load(Relaxed).wrapping_add(1);
        self.oldest.store(oldest.unwrap_or(next), SeqCst);
        self.waiting
            .store(u32::try_from(count).unwrap_or(u32::MAX), SeqCst);
    }

    /// Notes that the supervisor works.
    pub(crate) fn beat(&self) {
        self.beats.fetch_add(1, SeqCst);
    }

    /// Changes as long as the supervisor works.
    pub(crate) fn beats(&self) -> u32 {
        self.beats.load(SeqCst)
    }

    /// Whether a call waits for the supervisor's answer.
    pub(crate) fn has_waiting(&self) -> bool {
        self.waiting.load(SeqCst) > 0
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

    /// How many these were; 0 if nobody has looked.
    pub(crate) fn filters(&self) -> u32 {
        self.filters.load(SeqCst)
    }

    /// The numbers of all calls that the supervisor may have received and not answered. Numbers count up by one, so
    /// a call that was received and never noted is among them, too.
    pub(crate) fn unanswered(&self) -> RangeInclusive<u64> {
        let last = self.last.load(SeqCst).saturating_add(UNNOTED);
        let oldest = self.oldest.load(SeqCst).saturating_sub(UNNOTED);
        oldest.max(last.saturating_sub(MOST_ANSWERED))..=last
    }
}

/// A ledger in memory that a forked process shares.
#[derive(Debug)]
pub(crate) struct SharedLedger(NonNull<Ledger>);

// SAFETY: the ledger is atomics throughout, and mapped as long as this value lives.
unsafe impl Send for SharedLedger {}
// SAFETY: as above.
unsafe impl Sync for SharedLedger {}

impl SharedLedger {
    /// A fresh one.
    ///
    /// # Errors
    /// If there is no memory.
    pub(crate) fn new() -> io::Result<Self> {
        Self::map(libc::MAP_ANONYMOUS, -1)
    }

    /// One that outlives this process, with the file that has it. `name` is for people.
    ///
    /// # Errors
    /// If there is no memory.
    pub(crate) fn lasting(name: &str) -> io::Result<(Self, OwnedFd)> {
        let file = memfd_create(name, MemfdFlags::CLOEXEC)?;
        ftruncate(&file, size_of::<Ledger>() as u64)?;
        Ok((Self::of(&file)?, file))
    }

    /// That of a file that [`lasting`](Self::lasting) has made.
    ///
    /// # Errors
    /// If it has another size.
    pub(crate) fn of(file: &OwnedFd) -> io::Result<Self> {
        if fstat(file)?.st_size as usize != size_of::<Ledger>() {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Self::map(0, file.as_raw_fd())
    }

    fn map(flags: i32, file: i32) -> io::Result<Self> {
        // SAFETY: a fresh mapping at an address of the kernel's choice, of a file that is as long and is never cut.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size_of::<Ledger>(),
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

impl Deref for SharedLedger {
    type Target = Ledger;

    fn deref(&self) -> &Ledger {
        // SAFETY: mapped by `new`, zeroed, page-aligned, unmapped only when dropped.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for SharedLedger {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, and nobody borrows it any more.
        unsafe { libc::munmap(self.0.as_ptr().cast(), size_of::<Ledger>()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_call_that_waits_is_answered_wherever_the_supervisor_was_killed(
            first in 1..u64::MAX / 2,
            steps in proptest::collection::vec((any::<bool>(), 0..8_usize), 1..200),
            killed_at in 0..200_usize,
            noted: bool,
        ) {
            let ledger = SharedLedger::new().unwrap();
            let (mut next, mut waiting) = (first, Vec::new());
            for (step, (receives, answered)) in steps.into_iter().enumerate() {
                if receives {
                    waiting.push(next);
                    let is_killed = step == killed_at;
                    if !is_killed || noted {
                        ledger.received(next);
                    }
                    if is_killed && step > 0 {
                        break;
                    }
                    next += 1;
                } else if answered < waiting.len() {
                    waiting.remove(answered);
                }
                ledger.waiting(waiting.first().copied(), waiting.len());
            }
            if ledger.last.load(SeqCst) != 0 {
                prop_assert!(waiting.iter().all(|id| ledger.unanswered().contains(id)));
            }
        }
    }

    #[test]
    fn a_damaged_ledger_keeps_nobody_busy() {
        let ledger = SharedLedger::new().unwrap();
        ledger.received(u64::MAX - 1);
        ledger.oldest.store(0, SeqCst);
        let range = ledger.unanswered();
        assert!(range.end() - range.start() <= MOST_ANSWERED);
    }
}
