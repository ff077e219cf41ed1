//! The few system calls of the call path, raw: no allocation, no lock, no cancellation point. [`has_recorded_error`] is
//! for the notifier alone and allocates.

use std::ffi::{CStr, c_int, c_long};
use std::sync::atomic::AtomicU32;

/// CLOCK_MONOTONIC in nanoseconds.
pub fn now_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is valid for writes; the clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    // A monotonic clock is never negative.
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The calling thread's `errno`.
pub fn errno() -> c_int {
    // SAFETY: the C library gives every thread its own valid location.
    unsafe { *libc::__errno_location() }
}

/// Sets the calling thread's `errno`.
pub fn set_errno(value: c_int) {
    // SAFETY: as in `errno`.
    unsafe { *libc::__errno_location() = value }
}

/// The effective user that this process was started as. No system call: a filter may kill for `geteuid`, which the
/// dynamic loader does not make.
pub fn user_at_start() -> libc::uid_t {
    // SAFETY: no memory of ours; the kernel tells each program that it executes.
    let user = unsafe { libc::getauxval(libc::AT_EUID) };
    user as libc::uid_t
}

/// Opens a file to read it; `None`, and `errno` set, if that fails. What may wait (a FIFO, a terminal) does not.
pub fn open_to_read(path: &CStr) -> Option<c_int> {
    let flags = libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_NOCTTY;
    // SAFETY: the path ends in NUL; `openat` without O_CREAT takes no fourth argument.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_openat,
            c_long::from(libc::AT_FDCWD),
            path.as_ptr(),
            c_long::from(flags),
        )
    };
    c_int::try_from(fd).ok().filter(|&fd| fd >= 0)
}

/// Reads from a descriptor into `buffer`: how many bytes, 0 at the end; `None`, and `errno` set, if that fails.
pub fn read(fd: c_int, buffer: &mut [u8]) -> Option<usize> {
    // SAFETY: the kernel writes at most the length of `buffer` into it.
    let count = unsafe {
        libc::syscall(
            libc::SYS_read,
            c_long::from(fd),
            buffer.as_mut_ptr(),
            buffer.len(),
        )
    };
    usize::try_from(count).ok()
}

/// Closes a descriptor, which is not used after this. Changes `errno`.
pub fn close(fd: c_int) {
    // SAFETY: a plain integer, of a descriptor that the caller has opened.
    unsafe { libc::syscall(libc::SYS_close, c_long::from(fd)) };
}

/// Sleeps while `word` holds `expected`, until woken or until CLOCK_MONOTONIC reaches `until_ns`; may
/// return early (a signal handler ran). Shared between processes. Changes `errno`.
pub fn futex_wait_until(word: &AtomicU32, expected: u32, until_ns: u64) {
    let until = libc::timespec {
        tv_sec: (until_ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (until_ns % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: `word` lives in a mapping that is never unmapped; the kernel only reads it and `until`.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT_BITSET,
            expected,
            &raw const until,
            std::ptr::null::<u32>(),
            libc::FUTEX_BITSET_MATCH_ANY,
        );
    }
}

/// Wakes everybody who sleeps on `word`, in all processes. Changes `errno`.
pub fn futex_wake_all(word: &AtomicU32) {
    // SAFETY: as in `futex_wait_until`.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, c_int::MAX);
    }
}

/// Sleeps until `until_ns` or until a signal comes.
pub fn sleep_until(until_ns: u64) {
    let until = libc::timespec {
        tv_sec: (until_ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (until_ns % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: `until` is valid for reads. The raw call is no cancellation point, unlike the C library's
    // wrapper.
    unsafe {
        libc::syscall(
            libc::SYS_clock_nanosleep,
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            &raw const until,
            std::ptr::null::<libc::timespec>(),
        );
    }
}

/// Lets others run on this processor first.
pub fn yield_processor() {
    // SAFETY: no arguments, no failure.
    unsafe { libc::sched_yield() };
}

/// Whether the calling thread runs on an alternate signal stack, which may be small.
pub fn is_on_signal_stack() -> bool {
    // SAFETY: all-zero is a valid `stack_t`.
    let mut stack: libc::stack_t = unsafe { std::mem::zeroed() };
    // SAFETY: asks only; `stack` is valid for writes.
    let result = unsafe { libc::sigaltstack(std::ptr::null(), &raw mut stack) };
    result == 0 && stack.ss_flags & libc::SS_ONSTACK != 0
}

/// The result of an early write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EarlyWrite {
    /// The data has been written, or its failure is noted where the next `fsync` finds it.
    Done,
    /// Data was lost with this `errno` before it came to a block, which nobody else is told.
    Failed(c_int),
    /// The kernel, or a filter of system calls, did not do it.
    Refused,
}

/// Writes the file's dirty pages and waits for them, without a journal commit or a device flush.
///
/// By `FS_IOC_FIEMAP` with `FIEMAP_FLAG_SYNC`, which uses up no error: `filemap_write_and_wait()` leaves
/// the open file's place in the mapping's `errseq_t` alone, so the program's own call still reports a
/// block that could not be written. `sync_file_range()` with its WAIT flags would use the error up
/// (`file_check_and_advance_wb_err()`), and a thread that is cancelled after it would take the error
/// along. It opens nothing and needs no right on the file. It holds the inode's lock shared meanwhile, so
/// other threads' writes to this file wait for the early write, but not for the round. One extent is
/// asked for, since with none the kernel would walk them all to count them.
///
/// ext4 tells only its caller of blocks that could not be allocated (`mpage_map_and_submit_extent()` drops
/// the pages): such an error has to be reported by whoever asked for this write.
pub fn write_early(fd: c_int) -> EarlyWrite {
    let mut map = ExtentMap::new(0, FIEMAP_FLAG_SYNC);
    match map.ask(fd) {
        0 => EarlyWrite::Done,
        libc::EBADF
        | libc::ENOTTY
        | libc::EOPNOTSUPP
        | libc::EINVAL
        | libc::EFAULT
        | libc::EBADR
        | libc::ENOSYS
        | libc::EPERM
        | libc::EACCES => EarlyWrite::Refused,
        error => EarlyWrite::Failed(error),
    }
}

/// Whether the kernel has recorded a failed write of the file where the open file's next `fsync` finds it. An early
/// write that failed does not tell: its error may be of a block that could not be allocated, which is recorded nowhere.
///
/// Asks by an open file of its own, whose place in the mapping's `errseq_t` is before the error unless somebody has seen
/// it; the place of `fd`'s open file stays. Where that cannot be had, it is taken for recorded.
pub fn has_recorded_error(fd: c_int) -> bool {
    let path = format!("/proc/self/fd/{fd}");
    let flags = rustix::fs::OFlags::RDONLY
        | rustix::fs::OFlags::CLOEXEC
        | rustix::fs::OFlags::NONBLOCK
        | rustix::fs::OFlags::NOCTTY;
    let Ok(again) = rustix::fs::open(path, flags, rustix::fs::Mode::empty()) else {
        return true;
    };
    // SAFETY: plain integers. It waits for pages that are being written, and starts none.
    let result = unsafe {
        libc::sync_file_range(
            std::os::fd::AsRawFd::as_raw_fd(&again),
            0,
            0,
            libc::SYNC_FILE_RANGE_WAIT_BEFORE,
        )
    };
    if result == 0 && is_on_overlay(&again) {
        // What is recorded below is told to a call that gets there. It makes durable what the program is about to.
        return rustix::fs::fdatasync(&again).is_err();
    }
    result != 0
}

/// Whether a file is on an overlay, whose open files stand for those below.
fn is_on_overlay(file: &std::os::fd::OwnedFd) -> bool {
    rustix::fs::fstatfs(file).is_ok_and(|system| system.f_type == libc::OVERLAYFS_SUPER_MAGIC)
}

/// A part of a file that is contiguous on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtentAt {
    /// Where it ends in the file, in bytes; `None` if there is none, or it cannot be asked.
    pub end_bytes: Option<u64>,
    /// Whether its blocks were allocated ahead (`fallocate`) and not yet written to.
    pub unwritten: bool,
}

/// The first extent of the file at or after the byte `start_bytes`. Causes no I/O; changes `errno`.
pub fn extent_at(fd: c_int, start_bytes: u64) -> ExtentAt {
    let mut map = ExtentMap::new(start_bytes, 0);
    let is_there = map.ask(fd) == 0 && map.mapped_extents > 0;
    let Extent {
        logical,
        length,
        flags,
        ..
    } = map.extent;
    ExtentAt {
        end_bytes: is_there.then(|| logical.saturating_add(length)),
        unwritten: is_there && flags & FIEMAP_EXTENT_UNWRITTEN != 0,
    }
}

/// From include/uapi/linux/fiemap.h.
const FIEMAP_FLAG_SYNC: u32 = 1;
const FIEMAP_EXTENT_UNWRITTEN: u32 = 0x800;
/// `_IOWR('f', 11, struct fiemap)` on most architectures. Where the numbers differ (PowerPC, MIPS, SPARC)
/// the kernel answers ENOTTY, and nobody is held.
const FS_IOC_FIEMAP: libc::c_ulong = 0xc020_660b;

/// `struct fiemap` with room for one extent.
#[repr(C)]
struct ExtentMap {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
    extent: Extent,
}

/// `struct fiemap_extent`.
#[repr(C)]
#[derive(Default)]
struct Extent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

impl ExtentMap {
    /// A question for the first extent at or after the byte `start`.
    fn new(start: u64, flags: u32) -> Self {
        Self {
            start,
            length: u64::MAX - start,
            flags,
            mapped_extents: 0,
            extent_count: 1,
            reserved: 0,
            extent: Extent::default(),
        }
    }

    /// Asks the kernel; 0 or an `errno` value. The raw call is no cancellation point.
    fn ask(&mut self, fd: c_int) -> c_int {
        // SAFETY: the kernel reads and writes `self`, with room for the one extent it is told of; a bad
        // descriptor is an error, not undefined.
        let result = unsafe { libc::syscall(libc::SYS_ioctl, fd, FS_IOC_FIEMAP, &raw mut *self) };
        if result == 0 { 0 } else { errno() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::os::fd::AsRawFd as _;

    #[test]
    fn the_structures_have_the_kernel_s_sizes() {
        assert_eq!(size_of::<Extent>(), 56);
        assert_eq!(size_of::<ExtentMap>(), 32 + 56);
    }

    #[test]
    fn a_file_that_was_allocated_ahead_is_told_from_one_that_is_full() {
        // Of a file system with extents: the build's own, where that is one.
        let mut file = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        // SAFETY: plain integers.
        if unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, 8192) } != 0
            || write_early(file.as_raw_fd()) == EarlyWrite::Refused
        {
            luc_testkit::skipped!("this file system has no extents");
            return;
        }
        let last = extent_at(file.as_raw_fd(), 8191);
        assert_eq!((last.end_bytes, last.unwritten), (Some(8192), true));
        file.write_all(&[1; 8192]).unwrap();
        assert_eq!(write_early(file.as_raw_fd()), EarlyWrite::Done);
        assert!(!extent_at(file.as_raw_fd(), 8191).unwritten);
        assert_eq!(extent_at(file.as_raw_fd(), 8192).end_bytes, None);
    }

    #[test]
    fn what_is_no_file_is_refused() {
        let (pipe, _other) = rustix::pipe::pipe().unwrap();
        assert_eq!(write_early(pipe.as_raw_fd()), EarlyWrite::Refused);
        assert_eq!(write_early(-1), EarlyWrite::Refused);
    }
}
