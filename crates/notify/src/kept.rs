//! The file of a call that waits, kept until its answer: what was looked at is what is synchronized.
//!
//! The kernel takes hold of a file as `fsync` begins. A call that is let go on looks its number up anew, and another
//! thread may have closed it meanwhile, or have opened another file by it. So the two are compared before the answer.
//! If they differ, the kept file is synchronized here, and the call is answered with what came of that.
//!
//! The file is closed just before the answer: a program that closes it next finds itself the last to do so.

use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

use luc_gate::figures::CallKind;
use luc_gate::sys;
use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
use rustix::io::Errno;

use crate::fetch::path_of;
use crate::who::Who;

/// A call's open file.
#[derive(Debug)]
pub(crate) struct KeptFile {
    file: Mutex<Option<OwnedFd>>,
    who: Who,
}

/// What has become of a call's descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Now {
    /// It is the file that was looked at, which is not kept any more.
    Same,
    /// It is closed, or another file, or it cannot be known.
    Other,
    /// The calling thread has ended.
    Gone,
}

impl KeptFile {
    pub(crate) fn new(file: OwnedFd, who: Who) -> Self {
        Self {
            file: Mutex::new(Some(file)),
            who,
        }
    }

    /// Closes the file if the caller still has it by its number. One that is not kept any more was given up so before.
    pub(crate) fn give_up(&self) -> Now {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let now = file
            .as_ref()
            .map_or(Now::Same, |file| now(&self.who, file.as_fd()));
        if now == Now::Same {
            *file = None;
        }
        now
    }

    /// Takes the file out.
    pub(crate) fn take(&self) -> Option<OwnedFd> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.take()
    }

    /// Keeps the file again.
    pub(crate) fn keep(&self, kept: OwnedFd) {
        *self.file.lock().unwrap_or_else(PoisonError::into_inner) = Some(kept);
    }
}

/// Synchronizes a file as its caller would have.
///
/// # Errors
/// Of the call.
pub(crate) fn synchronize(file: BorrowedFd<'_>, kind: CallKind) -> Result<(), Errno> {
    match kind {
        CallKind::Fdatasync => rustix::fs::fdatasync(file),
        _ => rustix::fs::fsync(file),
    }
}

/// What the descriptor of a call is now.
fn now(who: &Who, file: BorrowedFd<'_>) -> Now {
    /// From include/uapi/linux/kcmp.h.
    const KCMP_FILE: i32 = 0;
    let numbers = [file.as_raw_fd(), who.fd].map(|number| number as libc::c_ulong);
    // SAFETY: plain numbers.
    let result = unsafe {
        let own = libc::getpid();
        libc::syscall(
            libc::SYS_kcmp,
            own,
            who.thread,
            KCMP_FILE,
            numbers[0],
            numbers[1],
        )
    };
    match result {
        0 => Now::Same,
        1.. => Now::Other,
        _ => match Errno::from_raw_os_error(sys::errno()) {
            Errno::BADF => Now::Other,
            Errno::SRCH => Now::Gone,
            _ if is_same_inode(who, file) => Now::Same,
            _ => Now::Other,
        },
    }
}

/// Whether the descriptor of a call is of the same file at least, where the kernel compares no open files.
fn is_same_inode(who: &Who, file: BorrowedFd<'_>) -> bool {
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

    fn who(fd: i32) -> Who {
        Who {
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
        assert_eq!(kept.give_up(), Now::Same);
        assert!(kept.take().is_none());
        assert_eq!(kept.give_up(), Now::Same, "given up before");
    }

    #[test]
    fn a_number_that_is_another_file_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let (_file, fetched) = both(&folder);
        let other = File::create(folder.path().join("b")).unwrap();
        let kept = KeptFile::new(fetched, who(other.as_raw_fd()));
        assert_eq!(kept.give_up(), Now::Other);
        let fetched = kept.take().unwrap();
        assert!(!is_same_inode(&kept.who, fetched.as_fd()));
        assert!(is_same_inode(&kept.who, other.as_fd()));
        // The same file opened once more is another open file, with errors of its own.
        let again = File::open(folder.path().join("b")).unwrap();
        kept.keep(again.into());
        assert_eq!(kept.give_up(), Now::Other);
    }

    #[test]
    fn a_number_that_is_closed_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let (_file, fetched) = both(&folder);
        let kept = KeptFile::new(fetched, who(1_000_000));
        assert_eq!(kept.give_up(), Now::Other);
        assert!(!is_same_inode(&kept.who, kept.take().unwrap().as_fd()));
        let (_file, fetched) = both(&folder);
        let nobody = Who {
            thread: u32::MAX >> 1,
            ..who(0)
        };
        assert_eq!(KeptFile::new(fetched, nobody).give_up(), Now::Gone);
    }
}
