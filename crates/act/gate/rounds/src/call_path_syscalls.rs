//! The few system calls of the call path: no allocation, no lock, no `errno`, no cancellation point.

use core::ffi::{CStr, c_int};
use core::sync::atomic::Ordering::{Acquire, Release};
use core::sync::atomic::{AtomicPtr, AtomicU32};

use crate::raw_syscall::{Errno, call, counted};
use crate::vdso_clock::{self, ClockFunction};

/// A path that is resolved from the process' folder.
const FROM_FOLDER: usize = libc::AT_FDCWD as usize;

/// The value of [`now_ns`] where a filter of system calls refuses the clock.
pub const NO_TIME_NS: u64 = 0;

/// CLOCK_MONOTONIC in nanoseconds, from the kernel itself: a library may interpose the C library's clock.
pub fn now_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let clock = CLOCK.load(Acquire);
    let is_told = if clock.is_null() {
        false
    } else {
        // SAFETY: `use_clock` has put a function of this type there.
        let clock = unsafe { core::mem::transmute::<*mut (), ClockFunction>(clock) };
        // SAFETY: `time` is valid for writes. Where the processor's clock is of no use it makes the system call itself.
        counted(|| unsafe { clock(libc::CLOCK_MONOTONIC, &raw mut time) }) == Some(0)
    };
    if !is_told {
        // SAFETY: `time` is valid for writes; the clock exists on every Linux.
        let _ = unsafe {
            call(libc::SYS_clock_gettime, [libc::CLOCK_MONOTONIC as usize, &raw mut time as usize])
        };
    }
    // A monotonic clock is never negative.
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The kernel's function that [`now_ns`] asks; null: the system call.
static CLOCK: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());

/// Has [`now_ns`] ask the clock of the image that the kernel has mapped into the process, if it has one.
///
/// # Safety
///
/// As [`vdso_clock::clock`].
pub unsafe fn use_clock(image: usize) {
    // SAFETY: as the caller promises.
    if let Some(clock) = unsafe { vdso_clock::clock(image) } {
        CLOCK.store(clock as *mut (), Release);
    }
}

/// The process' number in its own namespace.
pub fn process_id() -> u32 {
    // SAFETY: no arguments, no failure.
    unsafe { call(libc::SYS_getpid, []) }.map_or(0, |process| process as u32)
}

/// The effective user of this process.
pub fn user() -> u32 {
    // SAFETY: no arguments, no failure.
    unsafe { call(libc::SYS_geteuid, []) }.map_or(u32::MAX, |user| user as u32)
}

/// The calling thread's name, padded with zeros.
pub fn thread_name() -> [u8; 16] {
    let mut name = [0; 16];
    // SAFETY: PR_GET_NAME writes 16 bytes.
    let _ =
        unsafe { call(libc::SYS_prctl, [libc::PR_GET_NAME as usize, name.as_mut_ptr() as usize]) };
    name
}

/// Opens a file.
///
/// # Errors
///
/// The kernel's.
pub fn open(path: &CStr, flags: c_int, mode: u32) -> Result<c_int, Errno> {
    let arguments = [FROM_FOLDER, path.as_ptr() as usize, flags as usize, mode as usize];
    // SAFETY: the path ends in NUL.
    unsafe { call(libc::SYS_openat, arguments) }.map(|fd| fd as c_int)
}

/// Opens a file to read it; `None` if that fails. What may wait (a FIFO, a terminal) does not.
pub fn open_to_read(path: &CStr) -> Option<c_int> {
    let flags = libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_NOCTTY;
    open(path, flags, 0).ok()
}

/// Reads from a descriptor into `buffer`: how many bytes, 0 at the end; `None` if that fails.
pub fn read(fd: c_int, buffer: &mut [u8]) -> Option<usize> {
    let arguments = [fd as usize, buffer.as_mut_ptr() as usize, buffer.len()];
    // SAFETY: the kernel writes at most the length of `buffer` into it.
    unsafe { call(libc::SYS_read, arguments) }.ok()
}

/// Moves a descriptor's offset to `offset` bytes; `None` if that fails.
pub fn seek(fd: c_int, offset: usize) -> Option<usize> {
    let arguments = [fd as usize, offset, libc::SEEK_SET as usize];
    // SAFETY: plain integers.
    unsafe { call(libc::SYS_lseek, arguments) }.ok()
}

/// Closes a descriptor, which is not used after this.
pub fn close(fd: c_int) {
    // SAFETY: a plain integer, of a descriptor that the caller has opened.
    let _ = unsafe { call(libc::SYS_close, [fd as usize]) };
}

/// Reads the target of a link into `buffer`; `None` if that fails.
pub fn read_link<'b>(path: &CStr, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
    let arguments =
        [FROM_FOLDER, path.as_ptr() as usize, buffer.as_mut_ptr() as usize, buffer.len()];
    // SAFETY: the path ends in NUL and the kernel writes at most the buffer's length into it.
    let length = unsafe { call(libc::SYS_readlinkat, arguments) }.ok()?;
    buffer.get(..length)
}

/// The status of a descriptor's file. By `fstat`, which every program makes that reads or writes files: a
/// filter of system calls knows it.
///
/// # Errors
///
/// EBADF.
pub fn status(fd: c_int) -> Result<libc::stat, Errno> {
    let mut stat = core::mem::MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: the kernel fills the structure; it has the C library's layout on 64-bit processors.
    unsafe { call(libc::SYS_fstat, [fd as usize, stat.as_mut_ptr() as usize]) }?;
    // SAFETY: filled, and all-zero is valid, too.
    Ok(unsafe { stat.assume_init() })
}

/// The extended status of a descriptor's file; `None` if the kernel does not tell.
pub fn extended_status(fd: c_int) -> Option<libc::statx> {
    let mut stat = core::mem::MaybeUninit::<libc::statx>::zeroed();
    let mask = libc::STATX_BASIC_STATS | libc::STATX_BTIME;
    let arguments = [
        fd as usize,
        c"".as_ptr() as usize,
        libc::AT_EMPTY_PATH as usize,
        mask as usize,
        stat.as_mut_ptr() as usize,
    ];
    // SAFETY: a C string and a `statx` that is valid for writes; a bad descriptor is an error.
    unsafe { call(libc::SYS_statx, arguments) }.ok()?;
    // SAFETY: filled, and all-zero is valid, too.
    Some(unsafe { stat.assume_init() })
}

/// Whether a descriptor's file is on ext4.
pub fn is_on_ext4(fd: c_int) -> bool {
    let mut found = core::mem::MaybeUninit::<libc::statfs>::zeroed();
    // SAFETY: the kernel fills the structure; it has the C library's layout on 64-bit processors.
    let result = unsafe { call(libc::SYS_fstatfs, [fd as usize, found.as_mut_ptr() as usize]) };
    // SAFETY: filled, and all-zero is valid, too.
    let found = unsafe { found.assume_init() };
    result.is_ok() && found.f_type == libc::EXT4_SUPER_MAGIC
}

/// Asks a descriptor's driver.
///
/// # Safety
///
/// `argument` must be valid for what the driver does by `request`.
///
/// # Errors
///
/// The kernel's.
pub unsafe fn ioctl(fd: c_int, request: u32, argument: usize) -> Result<usize, Errno> {
    // SAFETY: as the caller promises.
    unsafe { call(libc::SYS_ioctl, [fd as usize, request as usize, argument]) }
}

/// Sleeps while `word` holds `expected`, until woken or until CLOCK_MONOTONIC reaches `until_ns`; may
/// return early (a signal handler ran). Shared between processes.
pub fn futex_wait_until(word: &AtomicU32, expected: u32, until_ns: u64) {
    let until = time_of(until_ns);
    let arguments = [
        word.as_ptr() as usize,
        libc::FUTEX_WAIT_BITSET as usize,
        expected as usize,
        &raw const until as usize,
        0,
        libc::FUTEX_BITSET_MATCH_ANY as u32 as usize,
    ];
    // SAFETY: `word` lives in a mapping that is never unmapped; the kernel only reads it and `until`.
    let _ = unsafe { call(libc::SYS_futex, arguments) };
}

/// Wakes everybody who sleeps on `word`, in all processes.
pub fn futex_wake_all(word: &AtomicU32) {
    let arguments = [word.as_ptr() as usize, libc::FUTEX_WAKE as usize, c_int::MAX as usize];
    // SAFETY: as in `futex_wait_until`.
    let _ = unsafe { call(libc::SYS_futex, arguments) };
}

/// Sleeps until `until_ns` or until a signal comes.
pub fn sleep_until(until_ns: u64) {
    let until = time_of(until_ns);
    let arguments = [
        libc::CLOCK_MONOTONIC as usize,
        libc::TIMER_ABSTIME as usize,
        &raw const until as usize,
        0,
    ];
    // SAFETY: `until` is valid for reads.
    let _ = unsafe { call(libc::SYS_clock_nanosleep, arguments) };
}

fn time_of(ns: u64) -> libc::timespec {
    libc::timespec {
        tv_sec: (ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (ns % 1_000_000_000) as libc::c_long,
    }
}

/// Lets others run on this processor first.
pub fn yield_processor() {
    // SAFETY: no arguments, no failure.
    let _ = unsafe { call(libc::SYS_sched_yield, []) };
}

/// Whether the calling thread runs on an alternate signal stack, which may be small.
pub fn is_on_signal_stack() -> bool {
    let mut stack = core::mem::MaybeUninit::<libc::stack_t>::zeroed();
    // SAFETY: asks only; `stack` is valid for writes.
    let result = unsafe { call(libc::SYS_sigaltstack, [0, stack.as_mut_ptr() as usize]) };
    // SAFETY: all-zero is a valid `stack_t`.
    let stack = unsafe { stack.assume_init() };
    result.is_ok() && stack.ss_flags & libc::SS_ONSTACK != 0
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

/// A part of a file that is contiguous on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceExtent {
    /// Where it ends in the file, in bytes; `None` if there is none, or it cannot be asked.
    pub end_bytes: Option<u64>,
    /// Whether its blocks were allocated ahead (`fallocate`) and not yet written to.
    pub unwritten: bool,
}

/// The first extent of the file at or after the byte `start_bytes`. Causes no I/O.
pub fn extent_at(fd: c_int, start_bytes: u64) -> DeviceExtent {
    let mut map = ExtentMap::new(start_bytes, 0);
    let is_there = map.ask(fd) == 0 && map.mapped_extents > 0;
    let Extent { logical, length, flags, .. } = map.extent;
    DeviceExtent {
        end_bytes: is_there.then(|| logical.saturating_add(length)),
        unwritten: is_there && flags & FIEMAP_EXTENT_UNWRITTEN != 0,
    }
}

const FIEMAP_FLAG_SYNC: u32 = 1;
const FIEMAP_EXTENT_UNWRITTEN: u32 = 0x800;
/// `_IOWR('f', 11, struct fiemap)` on most architectures. Where the numbers differ (PowerPC, MIPS, SPARC)
/// the kernel answers ENOTTY, and nobody is held.
const FS_IOC_FIEMAP: u32 = 0xc020_660b;

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

    /// Asks the kernel; 0 or an `errno` value.
    fn ask(&mut self, fd: c_int) -> c_int {
        // SAFETY: the kernel reads and writes `self`, with room for the one extent it is told of; a bad
        // descriptor is an error, not undefined.
        match unsafe { ioctl(fd, FS_IOC_FIEMAP, &raw mut *self as usize) } {
            Ok(_) => 0,
            Err(Errno(errno)) => errno,
        }
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
