//! A caller's file: looked at by its number, then taken over from the calling thread.
//!
//! A descriptor that is taken over has to be closed. Closing a file of a server (NFS, FUSE) may wait for the server:
//! FUSE is asked at each `close`. So an unknown file is looked at before it is taken over. Nothing here waits for a
//! server.

use std::ffi::CString;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};

use luc_gate::writeback_errors;
use rustix::fs::{AtFlags, CWD, Statx, StatxFlags, statx};
use rustix::io::Errno;

use crate::call_maker::process_of;
use crate::seccomp_unotify::{self, SyscallNotice};

/// Identity of a file in the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct FileInode {
    pub(crate) device: u64,
    pub(crate) number: u64,
}

/// Description of a caller's file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileStatus {
    /// `st_dev` and inode number.
    pub(crate) inode: FileInode,
    /// The mount that it was opened on.
    pub(crate) mount: u64,
    /// Whether it has data to write early; else it is a directory.
    pub(crate) is_regular: bool,
    /// Whether its file system is on no block device, so that closing it may wait for a server.
    pub(crate) may_wait: bool,
}

/// A caller's file, opened here, with its status.
#[derive(Debug)]
pub(crate) struct FetchedFile {
    /// The caller's open file.
    pub(crate) file: OwnedFd,
    pub(crate) look: FileStatus,
}

/// Reason why there is no file to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MissingFile {
    /// The descriptor is closed, or of no file or directory. The thread's next call may be of another one.
    NoFile,
    /// The thread's descriptors cannot be had.
    Denied,
}

const LOOKED_AT: StatxFlags = StatxFlags::TYPE.union(StatxFlags::INO).union(StatxFlags::MNT_ID);

/// Looks at the file or directory that a call synchronizes, without taking it over.
pub(crate) fn look(notice: &SyscallNotice) -> Result<FileStatus, MissingFile> {
    let flags = AtFlags::STATX_DONT_SYNC | AtFlags::NO_AUTOMOUNT;
    match statx(CWD, path_of(notice.thread, notice.fd), flags, LOOKED_AT) {
        Ok(status) => FileStatus::of(&status),
        Err(Errno::ACCESS | Errno::PERM) => Err(MissingFile::Denied),
        Err(_) => Err(MissingFile::NoFile),
    }
}

/// Takes over the file or directory that a call synchronizes.
pub(crate) fn fetch(listener: RawFd, notice: &SyscallNotice) -> Result<FetchedFile, MissingFile> {
    let caller = open_thread(notice.thread).ok_or(MissingFile::Denied)?;
    // Only a call that still waits has the thread that it names.
    if !seccomp_unotify::is_valid(listener, notice.id) {
        return Err(MissingFile::NoFile);
    }
    // SAFETY: plain numbers.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_getfd, caller.as_raw_fd(), notice.fd, 0) };
    let fd = match i32::try_from(fd) {
        Ok(fd) if fd >= 0 => fd,
        _ if writeback_errors::errno() == libc::EBADF => return Err(MissingFile::NoFile),
        _ => return Err(MissingFile::Denied),
    };
    // SAFETY: just opened, and owned by nobody else.
    let file = unsafe { OwnedFd::from_raw_fd(fd) };
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let status = statx(&file, c"", flags, LOOKED_AT).map_err(|_| MissingFile::NoFile)?;
    let look = FileStatus::of(&status)?;
    Ok(FetchedFile { file, look })
}

impl FileStatus {
    fn of(status: &Statx) -> Result<Self, MissingFile> {
        const KIND: u16 = 0o170_000;
        const REGULAR: u16 = 0o100_000;
        const DIRECTORY: u16 = 0o040_000;
        let kind = status.stx_mode & KIND;
        if !matches!(kind, REGULAR | DIRECTORY) {
            return Err(MissingFile::NoFile);
        }
        Ok(Self {
            inode: FileInode {
                device: libc::makedev(status.stx_dev_major, status.stx_dev_minor),
                number: status.stx_ino,
            },
            mount: status.stx_mnt_id,
            is_regular: kind == REGULAR,
            may_wait: status.stx_dev_major == 0,
        })
    }
}

/// Path in `/proc` of a thread's open file.
pub(crate) fn path_of(thread: u32, fd: i32) -> CString {
    CString::new(format!("/proc/{thread}/fd/{fd}")).unwrap_or_default()
}

/// Opens a pidfd of a thread. Before Linux 6.9 there are only those of processes.
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
        _ => Err(Errno::from_raw_os_error(writeback_errors::errno())),
    }
}

fn shares_files(process: u32, thread: u32) -> bool {
    const KCMP_FILES: i32 = 2;
    // SAFETY: plain numbers.
    unsafe { libc::syscall(libc::SYS_kcmp, process, thread, KCMP_FILES, 0, 0) == 0 }
}
