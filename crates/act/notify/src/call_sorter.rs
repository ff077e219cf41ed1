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

use luc_gate::policy::Policy;
use luc_gate::rounds::FileSystemRounds;

use crate::closing::Closing;
use crate::fetch::{Fetched, Look, Missing, fetch, look};
use crate::filter;
use crate::places::PlaceId;
use crate::uapi::{Notice, ThreadFd};

/// Number of calls of a file between two looks at it, while no call of it is held. Fetching its descriptor costs as much
/// as the rest of a call.
const SKIPPED_CALLS: u8 = 15;

/// Maximum number of threads' files that are remembered. Beyond it all are forgotten: to look again is cheap.
const MAX_FILES: usize = 16384;

#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) notice: Notice,
    pub(crate) received_ns: u64,
    pub(crate) found: Found,
}

impl Received {
    /// Closes the file, if it was taken over. Closing a server's may wait for ever, so a thread does it.
    pub(crate) fn close(self) {
        if let Found::Taken(fetched) = self.found {
            close(fetched);
        }
    }
}

/// Closes a file that was taken over.
pub(crate) fn close(fetched: Fetched) {
    if fetched.look.may_wait {
        // Without a thread it is closed here.
        let closes = thread::Builder::new().name("close".to_owned());
        let _ = closes.spawn(move || drop(fetched));
    }
}

/// State of a call after sorting.
#[derive(Debug)]
pub(crate) enum Found {
    /// It goes on; its file is taken for the one of the last look.
    Passes(Target),
    /// It goes on, because closing its file may wait for a server.
    Seen(Look),
    /// It goes on, and there is no file.
    Missing(Missing),
    /// It waits; its file was taken over.
    Taken(Fetched),
}

/// Kind of a descriptor when it was last looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// Nothing that can gain by company.
    Nothing,
    /// A file of this place.
    At(PlaceId),
}

/// Last look at a descriptor.
#[derive(Clone, Copy, Debug)]
struct File {
    target: Target,
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

#[derive(Debug)]
pub(crate) struct Sorter {
    policy: Policy,
    closing: Closing,
    known: Mutex<Known>,
}

impl Sorter {
    pub(crate) fn new(policy: Policy, closing: Closing) -> Self {
        Self { policy, closing, known: Mutex::default() }
    }

    /// Finds a call's file. With `must_take`, the call does not go on before its file has been looked at.
    pub(crate) fn sort(
        &self,
        listener: RawFd,
        notice: &Notice,
        must_take: bool,
        now_ns: u64,
    ) -> Found {
        if filter::kind_of(notice.architecture, notice.number).is_none() {
            return Found::Passes(Target::Nothing);
        }
        let file = self.file(notice);
        if let Some(file) = file
            && file.skips > 0
            && !must_take
            && !file.is_gated(&self.policy, now_ns)
        {
            return Found::Passes(file.target);
        }
        let is_known = file.is_some_and(|file| file.rounds.is_some());
        self.take(listener, notice, is_known, must_take).unwrap_or_else(Found::Missing)
    }

    /// Takes a file over, unless it may be a server's. A file that `is_known` most likely is none.
    fn take(
        &self,
        listener: RawFd,
        notice: &Notice,
        is_known: bool,
        must_take: bool,
    ) -> Result<Found, Missing> {
        if !is_known || self.closing.are_some() {
            let look = look(notice)?;
            if look.may_wait && !self.is_overlay(look.inode.device, must_take) {
                return Ok(Found::Seen(look));
            }
        }
        if self.closing.are_many() {
            return Ok(Found::Passes(Target::Nothing));
        }
        fetch(listener, notice).map(Found::Taken)
    }

    /// The remembered file of a call, and one call less until the next look. `None` while the event loop has the lock: it
    /// may be kept from its processor meanwhile, so it is not waited for.
    fn file(&self, notice: &Notice) -> Option<File> {
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

    /// Notes the kind of a descriptor. The next look is after [`SKIPPED_CALLS`] calls if the kind `is_final`, else at the
    /// next call.
    pub(crate) fn note(
        &self,
        of: ThreadFd,
        target: Target,
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
    fn is_gated(&self, policy: &Policy, now_ns: u64) -> bool {
        self.rounds.is_some_and(|rounds| {
            rounds.commits.is_gated(policy, now_ns) || rounds.flushes.is_gated(policy, now_ns)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd as _;

    use super::*;

    fn notice(fd: i32) -> Notice {
        Notice {
            id: 1,
            thread: rustix::thread::gettid().as_raw_nonzero().get() as u32,
            architecture: 0xc000_003e,
            number: 75,
            fd,
        }
    }

    fn sorter(policy: &str) -> Sorter {
        Sorter::new(policy.parse().unwrap(), Closing::default())
    }

    fn sort(sorter: &Sorter, notice: &Notice, must_take: bool) -> Found {
        // No call waits at this listener, so no file is taken over.
        sorter.sort(-1, notice, must_take, 1)
    }

    #[test]
    fn one_call_in_sixteen_is_looked_at() {
        let sorter = sorter("auto");
        let notice = notice(8);
        let mut looks = 0;
        for _ in 0..160 {
            if !matches!(sort(&sorter, &notice, false), Found::Passes(Target::At(PlaceId(0)))) {
                looks += 1;
                sorter.note(notice.of_thread(), Target::At(PlaceId(0)), None, true);
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
        sorter.note(of, Target::At(PlaceId(0)), Some(rounds), true);
        assert!(matches!(sort(&sorter, &notice, false), Found::Missing(_)));
        sorter.note(of, Target::At(PlaceId(0)), None, true);
        assert!(matches!(sort(&sorter, &notice, false), Found::Passes(_)));
        assert!(matches!(sort(&sorter, &notice, true), Found::Missing(_)));
        sorter.note(of, Target::At(PlaceId(0)), None, false);
        assert!(matches!(sort(&sorter, &notice, false), Found::Missing(_)));
        sorter.forget(of);
        assert!(matches!(sort(&sorter, &notice, false), Found::Missing(_)));
    }

    #[test]
    fn what_is_known_is_not_waited_for() {
        let sorter = sorter("auto");
        let notice = notice(-1);
        sorter.note(notice.of_thread(), Target::Nothing, None, true);
        let known = sorter.lock();
        assert!(matches!(sort(&sorter, &notice, false), Found::Missing(_)));
        drop(known);
        assert!(matches!(sort(&sorter, &notice, false), Found::Passes(_)));
    }

    #[test]
    fn what_may_be_a_server_s_is_not_taken_over() {
        let sorter = sorter("auto");
        // It is on no block device.
        let file = std::fs::File::open("/proc/self/status").unwrap();
        let notice = notice(file.as_raw_fd());
        let Found::Seen(look) = sort(&sorter, &notice, false) else {
            panic!("taken over");
        };
        sorter.note_overlay(look.inode.device);
        let found = sort(&sorter, &notice, false);
        assert!(matches!(found, Found::Missing(_)), "{found:?}");
    }
}
