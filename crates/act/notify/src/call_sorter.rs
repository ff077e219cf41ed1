//! The first step of a call after its receipt: it goes on at once, or its file is taken over.
//!
//! The kernel takes hold of a file as `fsync` begins. A notified call has begun for its program and holds nothing:
//! until its file is taken over, another thread may close it, or open another file by its number. So the sorter lets
//! a call go on if nobody is going to hold it. It takes over the file of any other call. The event loop learns of
//! both.

use std::collections::HashMap;
use std::os::fd::RawFd;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use luc_gate::gate_policy::GatePolicy;
use luc_gate::rounds::FileSystemRounds;

use crate::deferred_close::FilesToClose;
use crate::fetch_file::{FetchedFile, FileStatus, MissingFile, fetch, look};
use crate::seccomp_filter;
use crate::seccomp_unotify::{SyscallNotice, ThreadFd};
use crate::synced_file_systems::FileSystemId;

/// Number of calls of a file between two looks at it, while no call of it is held. Fetching its descriptor costs as
/// much as the rest of a call.
const SKIPPED_CALLS: u8 = 15;

/// Maximum number of threads' files that are remembered. Beyond it all are forgotten: to look again is cheap.
const MAX_FILES: usize = 16384;

/// A received call with its file, or the reason why it has none.
#[derive(Debug)]
pub(crate) struct ReceivedCall {
    pub(crate) notice: SyscallNotice,
    pub(crate) received_ns: u64,
    pub(crate) found: SortResult,
}

impl ReceivedCall {
    /// Closes the file, if it was taken over. Closing a server's may wait for ever, so a thread does it.
    pub(crate) fn close(self) {
        if let SortResult::Taken(fetched) = self.found {
            close(fetched);
        }
    }
}

/// Closes a file that was taken over.
pub(crate) fn close(fetched: FetchedFile) {
    if fetched.look.may_wait {
        // Without a thread it is closed here.
        let closes = thread::Builder::new().name("close".to_owned());
        let _ = closes.spawn(move || drop(fetched));
    }
}

/// State of a call after sorting.
#[derive(Debug)]
pub(crate) enum SortResult {
    /// It goes on; its file is taken for the one of the last look.
    Passes(DescriptorTarget),
    /// It goes on, because closing its file may wait for a server.
    Seen(FileStatus),
    /// It goes on, and there is no file.
    Missing(MissingFile),
    /// It waits; its file was taken over.
    Taken(FetchedFile),
}

/// Kind of a descriptor when it was last looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DescriptorTarget {
    /// Nothing that can gain by company.
    Nothing,
    /// A file of this place.
    At(FileSystemId),
}

/// Last look at a descriptor.
#[derive(Clone, Copy, Debug)]
struct File {
    target: DescriptorTarget,
    /// Rounds of its place, if it has some.
    rounds: Option<&'static FileSystemRounds>,
    /// Number of calls that need no look yet.
    skips: u8,
}

#[derive(Debug, Default)]
struct Known {
    files: HashMap<ThreadFd, File>,
    /// Devices of the overlays whose lower device is known.
    overlays: Vec<u64>,
}

/// Decides which received calls go on at once, and takes over the files of the others.
#[derive(Debug)]
pub(crate) struct CallSorter {
    policy: GatePolicy,
    closing: FilesToClose,
    known: Mutex<Known>,
}

impl CallSorter {
    pub(crate) fn new(policy: GatePolicy, closing: FilesToClose) -> Self {
        Self { policy, closing, known: Mutex::default() }
    }

    /// Finds a call's file. With `must_take`, the call does not go on before its file has been looked at.
    pub(crate) fn sort(
        &self,
        listener: RawFd,
        notice: &SyscallNotice,
        must_take: bool,
        now_ns: u64,
    ) -> SortResult {
        if seccomp_filter::kind_of(notice.architecture, notice.number).is_none() {
            return SortResult::Passes(DescriptorTarget::Nothing);
        }
        let file = self.file(notice);
        if let Some(file) = file
            && file.skips > 0
            && !must_take
            && !file.is_gated(&self.policy, now_ns)
        {
            return SortResult::Passes(file.target);
        }
        let is_known = file.is_some_and(|file| file.rounds.is_some());
        self.take(listener, notice, is_known, must_take).unwrap_or_else(SortResult::Missing)
    }

    /// Takes a file over, unless it may be a server's. A file that `is_known` most likely is none.
    fn take(
        &self,
        listener: RawFd,
        notice: &SyscallNotice,
        is_known: bool,
        must_take: bool,
    ) -> Result<SortResult, MissingFile> {
        if !is_known || self.closing.are_some() {
            let look = look(notice)?;
            if look.may_wait && !self.is_overlay(look.inode.device, must_take) {
                return Ok(SortResult::Seen(look));
            }
        }
        if self.closing.are_many() {
            return Ok(SortResult::Passes(DescriptorTarget::Nothing));
        }
        fetch(listener, notice).map(SortResult::Taken)
    }

    /// The remembered file of a call, and one call less until the next look. `None` while the event loop has the lock:
    /// it may be kept from its processor meanwhile, so it is not waited for.
    fn file(&self, notice: &SyscallNotice) -> Option<File> {
        let mut known = self.known.try_lock().ok()?;
        let file = known.files.get_mut(&notice.of_thread())?;
        let before = *file;
        file.skips = file.skips.saturating_sub(1);
        Some(before)
    }

    /// Whether a device is a known overlay's. Waits for the event loop only if it `must` be found out.
    fn is_overlay(&self, device: u64, must: bool) -> bool {
        let known = if must { Some(self.lock()) } else { self.known.try_lock().ok() };
        known.is_some_and(|known| known.overlays.contains(&device))
    }

    /// Notes the kind of a descriptor. The next look is after [`SKIPPED_CALLS`] calls if the kind `is_final`, else at
    /// the next call.
    pub(crate) fn note(
        &self,
        of: ThreadFd,
        target: DescriptorTarget,
        rounds: Option<&'static FileSystemRounds>,
        is_final: bool,
    ) {
        let file = File { target, rounds, skips: if is_final { SKIPPED_CALLS } else { 0 } };
        let mut known = self.lock();
        if known.files.len() >= MAX_FILES {
            known.files.clear();
        }
        known.files.insert(of, file);
    }

    /// Forgets a descriptor that is closed, or of nothing that can be synchronized.
    pub(crate) fn forget(&self, of: ThreadFd) {
        self.lock().files.remove(&of);
    }

    /// Notes that a device is an overlay's, and that the device below is known.
    pub(crate) fn note_overlay(&self, device: u64) {
        let mut known = self.lock();
        if !known.overlays.contains(&device) {
            known.overlays.push(device);
        }
    }

    /// A thread that panics leaves nothing half-done here.
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl File {
    /// Whether a call at `now_ns` may be held.
    fn is_gated(&self, policy: &GatePolicy, now_ns: u64) -> bool {
        self.rounds.is_some_and(|rounds| {
            rounds.commits.is_gated(policy, now_ns) || rounds.flushes.is_gated(policy, now_ns)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd as _;

    use super::*;

    fn notice(fd: i32) -> SyscallNotice {
        SyscallNotice {
            id: 1,
            thread: rustix::thread::gettid().as_raw_nonzero().get() as u32,
            architecture: 0xc000_003e,
            number: 75,
            fd,
        }
    }

    fn sorter(policy: &str) -> CallSorter {
        CallSorter::new(policy.parse().unwrap(), FilesToClose::default())
    }

    fn sort(sorter: &CallSorter, notice: &SyscallNotice, must_take: bool) -> SortResult {
        // No call waits at this listener, so no file is taken over.
        sorter.sort(-1, notice, must_take, 1)
    }

    #[test]
    fn one_call_in_sixteen_is_looked_at() {
        let sorter = sorter("auto");
        let notice = notice(8);
        let mut looks = 0;
        for _ in 0..160 {
            if !matches!(
                sort(&sorter, &notice, false),
                SortResult::Passes(DescriptorTarget::At(FileSystemId(0)))
            ) {
                looks += 1;
                sorter.note(notice.of_thread(), DescriptorTarget::At(FileSystemId(0)), None, true);
            }
        }
        assert_eq!(looks, 10);
    }

    #[test]
    fn what_may_be_held_or_has_an_error_is_always_looked_at() {
        let sorter = sorter("delay:5ms");
        // SAFETY: all zeros is the valid initial state.
        let rounds: &'static FileSystemRounds = Box::leak(Box::new(unsafe { std::mem::zeroed() }));
        rounds.commits.start(&sorter.policy);
        let notice = notice(-1);
        let of = notice.of_thread();
        sorter.note(of, DescriptorTarget::At(FileSystemId(0)), Some(rounds), true);
        assert!(matches!(sort(&sorter, &notice, false), SortResult::Missing(_)));
        sorter.note(of, DescriptorTarget::At(FileSystemId(0)), None, true);
        assert!(matches!(sort(&sorter, &notice, false), SortResult::Passes(_)));
        assert!(matches!(sort(&sorter, &notice, true), SortResult::Missing(_)));
        sorter.note(of, DescriptorTarget::At(FileSystemId(0)), None, false);
        assert!(matches!(sort(&sorter, &notice, false), SortResult::Missing(_)));
        sorter.forget(of);
        assert!(matches!(sort(&sorter, &notice, false), SortResult::Missing(_)));
    }

    #[test]
    fn what_is_known_is_not_waited_for() {
        let sorter = sorter("auto");
        let notice = notice(-1);
        sorter.note(notice.of_thread(), DescriptorTarget::Nothing, None, true);
        let known = sorter.lock();
        assert!(matches!(sort(&sorter, &notice, false), SortResult::Missing(_)));
        drop(known);
        assert!(matches!(sort(&sorter, &notice, false), SortResult::Passes(_)));
    }

    #[test]
    fn what_may_be_a_server_s_is_not_taken_over() {
        let sorter = sorter("auto");
        // It is on no block device.
        let file = std::fs::File::open("/proc/self/status").unwrap();
        let notice = notice(file.as_raw_fd());
        let SortResult::Seen(look) = sort(&sorter, &notice, false) else {
            panic!("taken over");
        };
        sorter.note_overlay(look.inode.device);
        let found = sort(&sorter, &notice, false);
        assert!(matches!(found, SortResult::Missing(_)), "{found:?}");
    }
}
