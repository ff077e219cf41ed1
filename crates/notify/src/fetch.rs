//! A caller's file: its descriptor, taken over from the calling thread.
//!
//! The descriptor refers to the caller's own open file. It is closed before the call is answered, so a program that
//! closes the file next finds itself the last to do so: its locks go then, and a file that it wrote can be executed.
//! Nothing here waits for a server: the event loop serves all programs.

use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};

use luc_gate::sys;
use rustix::fs::{AtFlags, StatxFlags, statx};
use rustix::io::Errno;

use crate::uapi::{self, Notice};
use crate::who::process_of;

/// A caller's file.
#[derive(Debug)]
pub(crate) struct Fetched {
    /// The caller's open file.
    pub(crate) file: OwnedFd,
    /// `st_dev` of its file system.
    pub(crate) device: u64,
    /// Whether it has data to write early; else it is a directory.
    pub(crate) is_regular: bool,
    /// Whether its file system is on no block device, so that closing it may wait for a server.
    pub(crate) may_wait: bool,
}

/// Why there is no file to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// The descriptor is none, or not of a file or directory: the thread's next call may be of another one.
    NoFile,
    /// The thread's descriptors cannot be had.
    Denied,
}

/// The file or directory that a call synchronizes.
pub(crate) fn fetch(listener: RawFd, notice: &Notice) -> Result<Fetched, Missing> {
    const KIND: u16 = 0o170_000;
    const REGULAR: u16 = 0o100_000;
    const DIRECTORY: u16 = 0o040_000;

    let caller = open_thread(notice.thread).ok_or(Missing::Denied)?;
    // Only a call that still waits has the thread that it names.
    if !uapi::is_valid(listener, notice.id) {
        return Err(Missing::NoFile);
    }
    // SAFETY: plain numbers.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_getfd, caller.as_raw_fd(), notice.fd, 0) };
    let fd = match i32::try_from(fd) {
        Ok(fd) if fd >= 0 => fd,
        _ if sys::errno() == libc::EBADF => return Err(Missing::NoFile),
        _ => return Err(Missing::Denied),
    };
    // SAFETY: just opened, and owned by nobody else.
    let file = unsafe { OwnedFd::from_raw_fd(fd) };
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let status = statx(&file, c"", flags, StatxFlags::TYPE).map_err(|_| Missing::NoFile)?;
    let kind = status.stx_mode & KIND;
    if !matches!(kind, REGULAR | DIRECTORY) {
        return Err(Missing::NoFile);
    }
    Ok(Fetched {
        device: libc::makedev(status.stx_dev_major, status.stx_dev_minor),
        is_regular: kind == REGULAR,
        may_wait: status.stx_dev_major == 0,
        file,
    })
}

/// A descriptor of a thread. Before Linux 6.9 there are only those of processes.
fn open_thread(thread: u32) -> Option<OwnedFd> {
    match pidfd_open(thread, libc::PIDFD_THREAD) {
        Err(Errno::INVAL) => {
            let process = process_of(thread)?;
            // A thread may have its own table of files.
            (process == thread || shares_files(process, thread))
                .then(|| pidfd_open(process, 0).ok())
                .flatten()
        }
        opened => opened.ok(),
    }
}

fn pidfd_open(number: u32, flags: u32) -> Result<OwnedFd, Errno> {
    // SAFETY: plain numbers.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, number, flags) };
    match i32::try_from(fd) {
        // SAFETY: just opened, and owned by nobody else.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(Errno::from_raw_os_error(sys::errno())),
    }
}

fn shares_files(process: u32, thread: u32) -> bool {
    /// From include/uapi/linux/kcmp.h.
    const KCMP_FILES: i32 = 2;
    // SAFETY: plain numbers.
    unsafe { libc::syscall(libc::SYS_kcmp, process, thread, KCMP_FILES, 0, 0) == 0 }
}
