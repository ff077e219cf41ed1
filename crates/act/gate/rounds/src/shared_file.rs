//! Maps a shared file: created as zeros, owned by its user.
//!
//! Only `luc run` creates files ([`create`]); programs under the gate map what is there ([`map`]). So a
//! program's limits on the size of files, or a full /dev/shm, cannot end it in the middle of a call.

use core::ffi::{CStr, c_int};
use core::ptr::NonNull;

use crate::call_path_syscalls;
use crate::fixed_path::{FixedPath, decimal};
use crate::raw_syscall::{Errno, call};
use crate::rounds::user_rounds::LAYOUT_VERSION;

/// A type that may be mapped from a file of zeros.
///
/// # Safety
///
/// All bit patterns, all zeros among them, are valid, and every access is safe while other processes
/// change the memory (atomics, or cells with an owner protocol).
pub unsafe trait Shareable {}

// SAFETY: atomics and numbers throughout; each `control` has its owner protocol.
unsafe impl Shareable for crate::rounds::UserRounds {}
// SAFETY: atomics throughout.
unsafe impl Shareable for crate::figures::RunFigures {}

/// What processes of other users and roots share below a `luc run` of root: memory of that run alone.
#[repr(C)]
#[derive(Debug)]
pub struct OtherUsersMemory {
    pub rounds: crate::rounds::UserRounds,
    pub figures: crate::figures::RunFigures,
}

// SAFETY: of two shareable parts.
unsafe impl Shareable for OtherUsersMemory {}

/// Why a shared file cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapError {
    /// A system call failed with this `errno`.
    System(c_int),
    /// The file belongs to somebody else, may be written by others, or is no regular file.
    NotOurs,
    /// The file's size is not that of the expected layout.
    OtherLayout,
}

/// Maps the file at `path`, made as zeros if it does not exist, with all of its memory allocated. The
/// mapping stays until the process ends.
///
/// # Errors
///
/// [`MapError`]; nothing stays open or mapped then. `ENOSPC` if the file system has no room.
pub fn create<T: Shareable>(path: &CStr) -> Result<&'static T, MapError> {
    open_and_map(path, libc::O_CREAT, call_path_syscalls::user())
}

/// As [`create`], but the file has to be there, and to belong to `owner`. Async-signal-safe.
///
/// # Errors
///
/// [`MapError`]; nothing stays open or mapped then.
pub fn map<T: Shareable>(path: &CStr, owner: u32) -> Result<&'static T, MapError> {
    open_and_map(path, 0, owner)
}

impl From<Errno> for MapError {
    fn from(Errno(errno): Errno) -> Self {
        Self::System(errno)
    }
}

/// Seals without which whoever shares a file could take its memory away from the others.
const SEALS: c_int = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;

/// Makes memory without a name, whose size nobody can change, for whoever inherits the descriptor `fd` or above, which
/// stays open over `execve`.
///
/// # Errors
///
/// [`MapError::System`]; nothing stays open or mapped then.
pub fn create_sealed<T: Shareable>(
    name: &CStr,
    fd: c_int,
) -> Result<(&'static T, c_int), MapError> {
    let flags = (libc::MFD_ALLOW_SEALING | libc::MFD_CLOEXEC) as usize;
    // SAFETY: a C string.
    let first = unsafe { call(libc::SYS_memfd_create, [name.as_ptr() as usize, flags]) }? as c_int;
    let made = fill_sealed(first, fd);
    call_path_syscalls::close(first);
    made
}

fn fill_sealed<T: Shareable>(first: c_int, fd: c_int) -> Result<(&'static T, c_int), MapError> {
    let size = size_of::<T>() as libc::off_t;
    allocate(first, size)?;
    // SAFETY: plain integers.
    unsafe { call(libc::SYS_fcntl, [first as usize, libc::F_ADD_SEALS as usize, SEALS as usize]) }?;
    let mapped = map_descriptor(first)?;
    // SAFETY: plain integers.
    let kept =
        unsafe { call(libc::SYS_fcntl, [first as usize, libc::F_DUPFD as usize, fd as usize]) }?;
    Ok((mapped, kept as c_int))
}

/// Maps what [`create_sealed`] has made, of this user or of root. Async-signal-safe.
///
/// # Errors
///
/// [`MapError`]; the descriptor is something else.
pub fn map_sealed<T: Shareable>(fd: c_int) -> Result<&'static T, MapError> {
    let stat = call_path_syscalls::status(fd)?;
    let is_regular = stat.st_mode & libc::S_IFMT == libc::S_IFREG;
    if !is_regular || (stat.st_uid != 0 && stat.st_uid != call_path_syscalls::user()) {
        return Err(MapError::NotOurs);
    }
    if stat.st_size != size_of::<T>() as libc::off_t {
        return Err(MapError::OtherLayout);
    }
    // SAFETY: plain integers.
    let seals = unsafe { call(libc::SYS_fcntl, [fd as usize, libc::F_GET_SEALS as usize]) }?;
    if seals as c_int & SEALS != SEALS {
        return Err(MapError::NotOurs);
    }
    map_descriptor(fd)
}

/// Room for a unit's files: systemd's names have 255 bytes at most.
pub type SharedPath = FixedPath<320>;

/// Where a user's processes in systemd units find their rounds.
pub fn rounds_of_unit(user: u32) -> Option<SharedPath> {
    const SIZE: u32 = size_of::<crate::rounds::UserRounds>() as u32;
    path_in(
        user,
        &[
            b"rounds-auto-v",
            decimal(LAYOUT_VERSION, &mut [0; 10]),
            b"-",
            decimal(SIZE, &mut [0; 10]),
        ],
    )
}

/// Where they find the figures of a unit.
pub fn figures_of_unit(user: u32, unit: &CStr) -> Option<SharedPath> {
    path_in(user, &[b"unit-", unit.to_bytes()])
}

/// The path of these parts in a user's directory.
fn path_in(user: u32, parts: &[&[u8]]) -> Option<SharedPath> {
    let name = FixedPath::<288>::new(parts)?;
    SharedPath::new(&[
        b"/dev/shm/luc-gate-",
        decimal(user, &mut [0; 10]),
        b"/",
        name.as_c_str()?.to_bytes(),
    ])
}

fn open_and_map<T: Shareable>(
    path: &CStr,
    creation: c_int,
    owner: u32,
) -> Result<&'static T, MapError> {
    let flags = libc::O_RDWR | libc::O_CLOEXEC | libc::O_NOFOLLOW | creation;
    let fd = call_path_syscalls::open(path, flags, 0o600).map_err(MapError::from)?;
    let size = size_of::<T>() as libc::off_t;
    let mapped = if creation == 0 {
        is_of(owner, fd, &[size])
    } else {
        is_of(owner, fd, &[0, size]).and_then(|()| allocate(fd, size))
    }
    .and_then(|()| map_descriptor(fd));
    // A mapping outlives its descriptor.
    call_path_syscalls::close(fd);
    mapped
}

/// Whether `fd` is a regular file of `owner` alone, of one of these `sizes` in bytes.
fn is_of(owner: u32, fd: c_int, sizes: &[libc::off_t]) -> Result<(), MapError> {
    let stat = call_path_syscalls::status(fd)?;
    let regular = stat.st_mode & libc::S_IFMT == libc::S_IFREG;
    if !regular || stat.st_uid != owner || stat.st_mode & 0o077 != 0 {
        return Err(MapError::NotOurs);
    }
    if !sizes.contains(&stat.st_size) {
        return Err(MapError::OtherLayout);
    }
    Ok(())
}

/// Gives `fd` all of its `size` bytes. A page that tmpfs cannot give at the first touch is SIGBUS in
/// whoever touches it, so none may be left to be given then. Several processes may do this at once: the
/// file is zeros for all of them.
fn allocate(fd: c_int, size: libc::off_t) -> Result<(), MapError> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    let ask = [0, libc::RLIMIT_FSIZE as usize, 0, &raw mut limit as usize];
    // SAFETY: asks only; `limit` is valid for writes.
    unsafe { call(libc::SYS_prlimit64, ask) }?;
    if limit.rlim_cur < size as libc::rlim_t {
        // Asking all the same would end this process by SIGXFSZ.
        return Err(MapError::System(libc::EFBIG));
    }
    // SAFETY: plain integers.
    unsafe { call(libc::SYS_fallocate, [fd as usize, 0, 0, size as usize]) }?;
    Ok(())
}

/// Maps the whole of a file whose size was checked by [`is_of`] or set by [`allocate`].
fn map_descriptor<T: Shareable>(fd: c_int) -> Result<&'static T, MapError> {
    let size = size_of::<T>();
    let arguments = [
        0,
        size,
        (libc::PROT_READ | libc::PROT_WRITE) as usize,
        libc::MAP_SHARED as usize,
        fd as usize,
        0,
    ];
    // SAFETY: a fresh shared mapping at an address of the kernel's choice.
    let address = unsafe { call(libc::SYS_mmap, arguments) }?;
    let pointer = NonNull::new(address as *mut T).ok_or(MapError::System(libc::ENOMEM))?;
    // SAFETY: page-aligned, `size` bytes long, never unmapped; `T` is `Shareable`, so any content is
    // valid and may change under us.
    Ok(unsafe { pointer.as_ref() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sealed_memory_is_shared_and_nothing_else_is_taken_for_it() {
        let (made, fd) = create_sealed::<OtherUsersMemory>(c"test", 100).unwrap();
        made.figures.filters.store(7, core::sync::atomic::Ordering::Relaxed);
        let mapped = map_sealed::<OtherUsersMemory>(fd).unwrap();
        assert_eq!(mapped.figures.filters.load(core::sync::atomic::Ordering::Relaxed), 7);
        assert_eq!(map_sealed::<crate::rounds::UserRounds>(fd).unwrap_err(), MapError::OtherLayout);
        // SAFETY: plain integers.
        let shorter = unsafe { call(libc::SYS_ftruncate, [fd as usize, 0]) };
        assert_eq!(shorter, Err(Errno(libc::EPERM)));
        call_path_syscalls::close(fd);
        let file = tempfile::tempfile().unwrap();
        file.set_len(size_of::<OtherUsersMemory>() as u64).unwrap();
        let fd = std::os::fd::AsRawFd::as_raw_fd(&file);
        assert!(map_sealed::<OtherUsersMemory>(fd).is_err());
        assert!(map_sealed::<OtherUsersMemory>(-1).is_err());
    }
}
