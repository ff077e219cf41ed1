//! The file of a call that waits, kept until its answer: the file that was looked at is the one that is synchronized.
//!
//! The kernel takes hold of a file as `fsync` begins. A call that is let go on looks its descriptor up anew. Meanwhile
//! another thread may have closed it, or have opened another file by its number. So the two are compared before the
//! answer. If they differ, the kept file is synchronized here, and the call is answered with the result.
//!
//! The file is closed just before the answer: a program that closes it next finds itself the last to do so.

use std::mem;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use luc_gate::figures::GatedCallKind;
use luc_gate::writeback_errors;
use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
use rustix::io::Errno;

use crate::call_maker::CallMaker;
use crate::fetch_file::path_of;

/// A call's open file.
#[derive(Debug)]
pub(crate) struct KeptFile {
    state: Mutex<FileState>,
    who: CallMaker,
}

/// Holder of the file.
#[derive(Debug)]
enum FileState {
    Here(OwnedFd),
    /// A thread that may wait works on it.
    Taken,
    /// Closed, as the call goes on.
    GivenUp,
}

/// State of a call's descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DescriptorState {
    /// It still is the file that was looked at, which is not kept any more.
    Same,
    /// It is closed, or another file, or this cannot be known.
    Other,
    Gone,
    /// A thread works on the file that was looked at, and decides on the call.
    Taken,
}

impl KeptFile {
    pub(crate) fn new(file: OwnedFd, who: CallMaker) -> Self {
        Self { state: Mutex::new(FileState::Here(file)), who }
    }

    /// Closes the file if the caller still has it by its number. A file that was given up before counts as the same.
    pub(crate) fn give_up(&self) -> DescriptorState {
        let (now, same) = self.give_back();
        drop(same);
        now
    }

    /// Gives the file up like [`give_up`](Self::give_up), but returns it instead of closing it: that may wait.
    pub(crate) fn give_back(&self) -> (DescriptorState, Option<OwnedFd>) {
        let mut state = self.lock();
        let now = match &*state {
            FileState::Here(file) => compare(&self.who, file.as_fd()),
            FileState::Taken => DescriptorState::Taken,
            FileState::GivenUp => DescriptorState::Same,
        };
        if now != DescriptorState::Same {
            return (now, None);
        }
        match mem::replace(&mut *state, FileState::GivenUp) {
            FileState::Here(file) => (now, Some(file)),
            FileState::Taken | FileState::GivenUp => (now, None),
        }
    }

    pub(crate) fn take(&self) -> Option<OwnedFd> {
        let mut state = self.lock();
        if !matches!(*state, FileState::Here(_)) {
            return None;
        }
        match mem::replace(&mut *state, FileState::Taken) {
            FileState::Here(file) => Some(file),
            FileState::Taken | FileState::GivenUp => None,
        }
    }

    pub(crate) fn keep(&self, kept: OwnedFd) {
        *self.lock() = FileState::Here(kept);
    }

    /// Whether a thread works on it.
    pub(crate) fn is_taken(&self) -> bool {
        matches!(*self.lock(), FileState::Taken)
    }

    fn lock(&self) -> MutexGuard<'_, FileState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Synchronizes a file by the call that its caller made.
///
/// # Errors
/// Those of the call.
pub(crate) fn synchronize(file: BorrowedFd<'_>, kind: GatedCallKind) -> Result<(), Errno> {
    match kind {
        GatedCallKind::Fdatasync => rustix::fs::fdatasync(file),
        _ => rustix::fs::fsync(file),
    }
}

/// Compares the descriptor of a call with the kept file.
fn compare(who: &CallMaker, file: BorrowedFd<'_>) -> DescriptorState {
    const KCMP_FILE: i32 = 0;
    let numbers = [file.as_raw_fd(), who.fd].map(|number| number as libc::c_ulong);
    // SAFETY: plain numbers.
    let result = unsafe {
        let own = libc::getpid();
        libc::syscall(libc::SYS_kcmp, own, who.thread, KCMP_FILE, numbers[0], numbers[1])
    };
    match result {
        0 => DescriptorState::Same,
        1.. => DescriptorState::Other,
        _ => match Errno::from_raw_os_error(writeback_errors::errno()) {
            Errno::BADF => DescriptorState::Other,
            Errno::SRCH => DescriptorState::Gone,
            _ if is_same_inode(who, file) => DescriptorState::Same,
            _ => DescriptorState::Other,
        },
    }
}

/// Whether the descriptor of a call at least has the same inode, where the kernel compares no open files.
fn is_same_inode(who: &CallMaker, file: BorrowedFd<'_>) -> bool {
    let flags = AtFlags::STATX_DONT_SYNC | AtFlags::NO_AUTOMOUNT;
    let theirs = statx(CWD, path_of(who.thread, who.fd), flags, StatxFlags::INO);
    let ours = statx(file, c"", flags | AtFlags::EMPTY_PATH, StatxFlags::INO);
    let name =
        |status: rustix::fs::Statx| (status.stx_dev_major, status.stx_dev_minor, status.stx_ino);
    matches!((theirs.map(name), ours.map(name)), (Ok(theirs), Ok(ours)) if theirs == ours)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    fn who(fd: i32) -> CallMaker {
        CallMaker {
            thread: rustix::thread::gettid().as_raw_nonzero().get() as u32,
            process: std::process::id(),
            number: 0,
            fd,
        }
    }

    /// A file, and the same open file as a supervisor has it.
    fn both(folder: &tempfile::TempDir) -> (OwnedFd, OwnedFd) {
        let file: OwnedFd = File::create(folder.path().join("a")).unwrap().into();
        let fetched = file.try_clone().unwrap();
        (file, fetched)
    }

    #[test]
    fn a_file_is_given_up_while_its_caller_has_it() {
        let folder = tempfile::tempdir().unwrap();
        let (file, fetched) = both(&folder);
        let kept = KeptFile::new(fetched, who(file.as_raw_fd()));
        assert!(is_same_inode(&kept.who, file.as_fd()));
        assert_eq!(kept.give_up(), DescriptorState::Same);
        assert!(kept.take().is_none());
        assert_eq!(kept.give_up(), DescriptorState::Same, "given up before");
    }

    #[test]
    fn what_a_thread_is_at_is_not_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let (file, fetched) = both(&folder);
        let kept = KeptFile::new(fetched, who(file.as_raw_fd()));
        let taken = kept.take().unwrap();
        assert!(kept.is_taken() && kept.take().is_none());
        assert_eq!(kept.give_up(), DescriptorState::Taken);
        kept.keep(taken);
        let (now, back) = kept.give_back();
        assert!(now == DescriptorState::Same && back.is_some() && !kept.is_taken());
    }

    #[test]
    fn a_number_that_is_another_file_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let (_file, fetched) = both(&folder);
        let other = File::create(folder.path().join("b")).unwrap();
        let kept = KeptFile::new(fetched, who(other.as_raw_fd()));
        assert_eq!(kept.give_up(), DescriptorState::Other);
        let fetched = kept.take().unwrap();
        assert!(!is_same_inode(&kept.who, fetched.as_fd()));
        assert!(is_same_inode(&kept.who, other.as_fd()));
        // The same file opened once more is another open file, with errors of its own.
        let again = File::open(folder.path().join("b")).unwrap();
        kept.keep(again.into());
        assert_eq!(kept.give_up(), DescriptorState::Other);
    }

    #[test]
    fn a_number_that_is_closed_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let (_file, fetched) = both(&folder);
        let kept = KeptFile::new(fetched, who(1_000_000));
        assert_eq!(kept.give_up(), DescriptorState::Other);
        assert!(!is_same_inode(&kept.who, kept.take().unwrap().as_fd()));
        let (_file, fetched) = both(&folder);
        let nobody = CallMaker { thread: u32::MAX >> 1, ..who(0) };
        assert_eq!(KeptFile::new(fetched, nobody).give_up(), DescriptorState::Gone);
    }
}
