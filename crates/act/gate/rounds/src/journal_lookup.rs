//! Which journal stands behind a device, answered without allocation, locks or the standard
//! library, so that a preloaded library may ask on the first use of a device, from any thread and
//! from a signal handler. Only system calls on fixed stack buffers.
//!
//! # Which file tells what
//!
//! Found on Linux 6.18 (as root and as an unprivileged user) and in the sources since 5.10:
//!
//! | question | file | reliable | who may read |
//! |---|---|---|---|
//! | is it ext4's driver? | `/sys/fs/ext4/NAME/` exists | yes | everyone |
//! | is there a journal? | `/sys/fs/ext4/NAME/journal_task`: a number, or `<none>` | yes | everyone |
//! | the same, where that file is missing (before 4.17) | `/proc/fs/ext4/NAME/options` has a line `data=` | yes | everyone |
//! | fast commit off for certain? | the same file says `data=journal`, which switches it off | yes | everyone |
//! | fast commit on? | the same file says `fc_debug_force`, but only under `CONFIG_EXT4_DEBUG` (Debian's kernels lack it) | if present | everyone |
//! | fast commit on or off? | ioctl `EXT4_IOC_GET_TUNE_SB_PARAM` on any open file, Linux >= 6.18 | yes | everyone |
//! | fast commit on or off? | the superblock: `s_feature_compat & 0x400` | yes | root |
//! | fast commit on? | `/proc/fs/ext4/NAME/fc_info`: a counter is above 0 once a file was fsynced since the mount; the file itself is always there | if above 0 | everyone |
//!
//! `NAME` is the last part of the link `/sys/dev/block/MAJOR:MINOR`. `/proc/fs/jbd2/` lists
//! journals but by the journal's device, which may be another one, so it is not used.
//!
//! What is left in doubt: an unprivileged program before Linux 6.18, on a file system that has seen
//! no fsync since its mount, is told [`JournalKind::Jbd2`] although fast commit may be on. Asking
//! once more after a first real fsync settles it.

use core::ffi::c_int;

use crate::call_path_syscalls;
use crate::fixed_path::decimal;

/// The journal behind a device, as a plain number that fits an atomic or shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum JournalKind {
    /// It could not be found out: no such device, or `/sys` is not there.
    Unknown = 0,
    /// ext4's driver without a journal: ext2, or ext4 made with `-O ^has_journal`.
    None = 1,
    /// ext4's driver with a jbd2 journal and no sign of fast commit.
    Jbd2 = 2,
    /// ext4 with a jbd2 journal and fast commit, where most fsyncs start no journal commit.
    FastCommit = 3,
    /// Not a block device with ext4's driver on it: tmpfs, overlay, btrfs, XFS, NFS and so on.
    NotExt4 = 4,
}

pub const FEATURE_COMPAT_FAST_COMMIT: u32 = 0x400;
/// A fixed prefix, a device's name (at most 32), a file's name.
type FixedPath = crate::fixed_path::FixedPath<128>;
/// Room for a file of /proc or /sys; ext4's options take about 500 bytes. Kept small, since a
/// signal handler's stack may be.
const FILE_BYTES: usize = 1024;
/// Room for the target of a link below /sys/dev/block; about 100 bytes for a disk behind bridges.
const LINK_BYTES: usize = 512;

/// The journal behind the block device `major`:`minor`.
///
/// Async-signal-safe; allocates nothing, takes no lock. Some twenty system calls
/// at most, so remember the answer. It opens files: a program under a seccomp filter that kills on
/// `openat` must not be asked about from inside.
#[must_use]
pub fn journal_of_device_raw(major: u32, minor: u32) -> JournalKind {
    journal(major, minor, None)
}

/// The journal behind the file system of the open file or directory `fd`, as
/// [`journal_of_device_raw`] but surer: on Linux >= 6.18 it sees fast commit without privileges.
/// [`JournalKind::NotExt4`] for pipes, sockets and devices, [`JournalKind::Unknown`] for a closed
/// descriptor.
#[must_use]
pub fn journal_of_file_raw(fd: c_int) -> JournalKind {
    let Ok(stat) = call_path_syscalls::status(fd) else {
        return JournalKind::Unknown;
    };
    if !matches!(stat.st_mode & libc::S_IFMT, libc::S_IFREG | libc::S_IFDIR) {
        return JournalKind::NotExt4;
    }
    journal(libc::major(stat.st_dev), libc::minor(stat.st_dev), Some(fd))
}

fn journal(major: u32, minor: u32, fd: Option<c_int>) -> JournalKind {
    if major == 0 {
        return JournalKind::NotExt4; // an anonymous device: no block device below
    }
    let mut link = [0; LINK_BYTES];
    let Some(name) = name_of_device(major, minor, &mut link) else {
        return JournalKind::Unknown;
    };
    let mut buffer = [0; FILE_BYTES];

    let task = FixedPath::new(&[b"/sys/fs/ext4/", name, b"/journal_task"])
        .and_then(|path| read_file(&path, &mut buffer));
    let has_journal = task.map(|text| !text.starts_with(b"<none>"));
    if has_journal == Some(false) {
        return JournalKind::None;
    }

    let options = FixedPath::new(&[b"/proc/fs/ext4/", name, b"/options"])
        .and_then(|path| read_file(&path, &mut buffer));
    match options {
        None if has_journal.is_none() => return JournalKind::NotExt4,
        None => {}
        Some(text) => {
            if has_line(text, b"fc_debug_force") {
                return JournalKind::FastCommit;
            }
            if has_line(text, b"data=journal") {
                return JournalKind::Jbd2;
            }
            let data = text.split(|&byte| byte == b'\n').any(|line| line.starts_with(b"data="));
            if has_journal.is_none() && !data {
                return JournalKind::None;
            }
        }
    }

    let features = fd.and_then(features_by_ioctl);
    match features.or_else(|| features_by_superblock(major, minor, name)) {
        Some(features) if features & FEATURE_COMPAT_FAST_COMMIT != 0 => JournalKind::FastCommit,
        Some(_) => JournalKind::Jbd2,
        None if has_seen_fast_commits(name) => JournalKind::FastCommit,
        None => JournalKind::Jbd2,
    }
}

/// `loop0` from the link `/sys/dev/block/7:0`, which ends in `/loop0`.
fn name_of_device(major: u32, minor: u32, buffer: &mut [u8; LINK_BYTES]) -> Option<&[u8]> {
    let (mut first, mut second) = ([0; 10], [0; 10]);
    let path = FixedPath::new(&[
        b"/sys/dev/block/",
        decimal(major, &mut first),
        b":",
        decimal(minor, &mut second),
    ])?;
    let target = call_path_syscalls::read_link(path.as_c_str()?, buffer)?;
    target.rsplit(|&byte| byte == b'/').next().filter(|name| !name.is_empty())
}

/// `s_feature_compat`, asked of the file system itself (Linux >= 6.18); no privileges needed.
pub fn features_by_ioctl(fd: c_int) -> Option<u32> {
    /// Where `feature_compat` is in `struct ext4_tune_sb_params` (include/uapi/linux/ext4.h).
    const FEATURE_COMPAT_AT: usize = 64;
    /// `_IOR('f', 45, [u8; SIZE])`; 32-bit x86 at first had 228 bytes where all others have 232.
    const REQUESTS: [u32; 2] = [request(232), request(228)];
    const fn request(size: u32) -> u32 {
        // The values that most architectures share; where `_IOC_READ` differs (PowerPC, MIPS,
        // SPARC) the kernel answers ENOTTY and the other sources decide.
        (2 << 30) | (size << 16) | ((b'f' as u32) << 8) | 45
    }
    let mut parameters = [0_u8; 256];
    REQUESTS.iter().find_map(|&request| {
        // SAFETY: the kernel writes at most the 232 bytes that the request's number names.
        let answer =
            unsafe { call_path_syscalls::ioctl(fd, request, parameters.as_mut_ptr() as usize) };
        let field = parameters.get(FEATURE_COMPAT_AT..)?.first_chunk()?;
        answer.ok().map(|_| u32::from_ne_bytes(*field))
    })
}

/// `s_feature_compat` from the superblock on the device; needs root. The block is in the device's
/// page cache for as long as the file system is mounted, so this causes no I/O.
pub fn features_by_superblock(major: u32, minor: u32, name: &[u8]) -> Option<u32> {
    /// The superblock begins at 1024; s_magic is at 0x38 and s_feature_compat at 0x5c in it.
    const SUPERBLOCK_AT: usize = 1024;
    const MAGIC: [u8; 2] = [0x53, 0xef];
    let device = Fd::open(&FixedPath::new(&[b"/dev/", name])?)?;
    let stat = call_path_syscalls::status(device.0).ok()?;
    if stat.st_mode & libc::S_IFMT != libc::S_IFBLK
        || (libc::major(stat.st_rdev), libc::minor(stat.st_rdev)) != (major, minor)
    {
        return None;
    }
    let at = call_path_syscalls::seek(device.0, SUPERBLOCK_AT);
    let mut block = [0; 0x60];
    if at != Some(SUPERBLOCK_AT) || device.read_up_to(&mut block).len() < 0x60 {
        return None;
    }
    let magic = block.get(0x38..)?.first_chunk::<2>()?;
    let features = block.get(0x5c..)?.first_chunk()?;
    (*magic == MAGIC).then(|| u32::from_le_bytes(*features))
}

/// Whether any counter at the head of `fc_info` (commits, ineligible, numblks) is above zero: they
/// count from the mount on, and only with fast commit.
pub fn has_seen_fast_commits(name: &[u8]) -> bool {
    let mut buffer = [0; 256];
    let info = FixedPath::new(&[b"/proc/fs/ext4/", name, b"/fc_info"])
        .and_then(|path| read_file(&path, &mut buffer));
    let counts: [&[u8]; 3] = [b" commits", b" ineligible", b" numblks"];
    info.is_some_and(|text| {
        text.split(|&byte| byte == b'\n').any(|line| {
            line.first().is_some_and(|digit| (b'1'..=b'9').contains(digit))
                && counts.iter().any(|count| line.ends_with(count))
        })
    })
}

fn has_line(text: &[u8], wanted: &[u8]) -> bool {
    text.split(|&byte| byte == b'\n').any(|line| line == wanted)
}

fn read_file<'b>(path: &FixedPath, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
    Some(Fd::open(path)?.read_up_to(buffer))
}

/// A descriptor that is closed when it goes.
struct Fd(c_int);

impl Fd {
    fn open(path: &FixedPath) -> Option<Self> {
        call_path_syscalls::open_to_read(path.as_c_str()?).map(Self)
    }

    /// What is there to read, up to the buffer's length; an error ends it like the end of file.
    fn read_up_to<'b>(&self, buffer: &'b mut [u8]) -> &'b [u8] {
        let mut length = 0;
        while let Some(rest) = buffer.get_mut(length..).filter(|rest| !rest.is_empty()) {
            match call_path_syscalls::read(self.0, rest) {
                Some(count) if count > 0 => length += count,
                _ => break,
            }
        }
        buffer.get(..length).unwrap_or_default()
    }
}

impl Drop for Fd {
    fn drop(&mut self) {
        call_path_syscalls::close(self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_that_are_none_are_told() {
        assert_eq!(journal_of_device_raw(0, 42), JournalKind::NotExt4);
        assert_eq!(journal_of_device_raw(4095, 1_048_575), JournalKind::Unknown);
        assert_eq!(journal_of_file_raw(-1), JournalKind::Unknown);
    }

    #[test]
    fn a_pipe_has_no_journal_to_gate() {
        use std::os::fd::AsRawFd;
        let (reader, _writer) = std::io::pipe().unwrap();
        assert_eq!(journal_of_file_raw(reader.as_raw_fd()), JournalKind::NotExt4);
    }
}
