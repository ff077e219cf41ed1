//! Reads `/proc/locks`: which process waits for which file lock.
//!
//! A lock is followed by a line with `->` for each of its waiters, under the same number:
//!
//! ```text
//! 1: FLOCK  ADVISORY  WRITE 2312 fe:00:1234 0 EOF
//! 1: -> FLOCK  ADVISORY  WRITE 2313 fe:00:1234 0 EOF
//! ```
//!
//! The process shown is the one that took the lock. It may have ended and left the open file with its lock to others
//! (`flock 9` in a shell). Or it is unknown: -1 for locks of open files, 0 in another pid namespace. Then
//! `/proc/PID/fdinfo` shows which process has the open file: it has the same line after `lock:`.
//!
//! Reading is expensive. It delays all calls that take a file lock, and takes 3 ms after 20 ms without a read.

use std::fs;
use std::path::Path;

use luc_probe::disk_contention::RefusedLock;

/// The kernel's list of all file locks.
const LOCKS: &str = "/proc/locks";
/// Largest number of open files of a process that are searched.
const MAX_FILES: usize = 4096;

/// A wait of a process for a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LockWait {
    /// The process that waits, if the kernel knows it.
    pub(super) waiter: Option<u32>,
    /// The process that took the lock, if the kernel knows one.
    pub(super) holder: Option<u32>,
    pub(super) lock: LockIdentity,
}

/// A lock, without its holder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LockIdentity {
    /// `FLOCK`, `POSIX` or `OFDLCK`, as the kernel writes it.
    kind: String,
    /// Device and inode of the file, as the kernel writes them.
    file: String,
    /// First and last byte of the lock.
    range: (u64, u64),
}

impl LockIdentity {
    /// Whether this lock may refuse one of another process on the same file.
    fn may_refuse(&self, refused: &RefusedLock) -> bool {
        let is_of_this_kind = match self.kind.as_str() {
            "FLOCK" => refused.is_flock,
            "POSIX" | "OFDLCK" => !refused.is_flock,
            _ => false,
        };
        let (first, last) = self.range;
        is_of_this_kind && first <= refused.last_byte && refused.first_byte <= last
    }
}

/// All locks at one moment.
#[derive(Debug, Default)]
pub(super) struct ProcLocks(Vec<LockLine>);

impl ProcLocks {
    /// Reads all locks; none if that fails.
    pub(super) fn read() -> Self {
        fs::read(LOCKS).map_or_else(|_| Self::default(), |bytes| Self::parse(&bytes))
    }

    fn parse(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        Self(text.lines().filter_map(LockLine::parse).collect())
    }

    /// All processes that sleep until a lock is free.
    pub(super) fn waits(&self) -> Vec<LockWait> {
        let mut waits = Vec::new();
        let mut held: Option<&LockLine> = None;
        for line in &self.0 {
            if !line.waits {
                held = Some(line);
            } else if let Some(held) = held.filter(|held| held.number == line.number) {
                // A process that waits behind a waiter waits for the same lock in the end.
                waits.push(held.wait_of(line.process));
            }
        }
        waits
    }

    /// Locks that conflict with a refused one.
    pub(super) fn in_the_way_of(&self, refused: &RefusedLock) -> Vec<LockWait> {
        let (major, minor) = (refused.dev.major(), refused.dev.minor());
        let file = format!("{major:02x}:{minor:02x}:{}", refused.inode);
        let held = self.0.iter().filter(|line| !line.waits);
        held.filter(|line| line.lock.file == file && line.lock.may_refuse(refused))
            .map(|line| line.wait_of(Some(refused.process)))
            .collect()
    }
}

/// Whether a process has an open file that holds the lock.
pub(super) fn is_held_by(process: u32, lock: &LockIdentity) -> bool {
    let folder = Path::new("/proc").join(process.to_string()).join("fdinfo");
    let files = fs::read_dir(folder).into_iter().flatten().flatten().take(MAX_FILES);
    let mut infos = files.filter_map(|file| fs::read_to_string(file.path()).ok());
    infos.any(|info| has_lock(&info, lock))
}

fn has_lock(info: &str, lock: &LockIdentity) -> bool {
    info.lines()
        .filter_map(|line| LockLine::parse(line.strip_prefix("lock:")?))
        .any(|line| !line.waits && line.lock == *lock)
}

/// A line of `/proc/locks`.
#[derive(Debug)]
struct LockLine {
    /// Number that a lock and its waiters share.
    number: u64,
    waits: bool,
    process: Option<u32>,
    lock: LockIdentity,
}

impl LockLine {
    /// A wait for this lock.
    fn wait_of(&self, waiter: Option<u32>) -> LockWait {
        LockWait { waiter, holder: self.process, lock: self.lock.clone() }
    }

    fn parse(line: &str) -> Option<Self> {
        let (number, rest) = line.split_once(':')?;
        let mut words = rest.split_whitespace().peekable();
        let waits = words.next_if_eq(&"->").is_some();
        let kind = words.next()?;
        // Advisory or not, and to read or to write: the holder's and the waiter's differ.
        let (_, _) = (words.next()?, words.next()?);
        let process: i64 = words.next()?.parse().ok()?;
        let (file, first, last) = (words.next()?, words.next()?, words.next()?);
        Some(Self {
            number: number.trim().parse().ok()?,
            waits,
            process: u32::try_from(process).ok().filter(|process| *process > 0),
            lock: LockIdentity {
                kind: kind.to_owned(),
                file: file.to_owned(),
                range: (first.parse().ok()?, parse_last_byte(last)?),
            },
        })
    }
}

/// Parses the last byte of a lock, which may be `EOF`.
fn parse_last_byte(word: &str) -> Option<u64> {
    if word == "EOF" { Some(u64::MAX) } else { word.parse().ok() }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd as _;

    use luc_events::Dev;
    use rustix::fs::{FlockOperation, flock};

    use super::*;

    const TEXT: &str = "1: POSIX  ADVISORY  READ 700 fe:00:5 1073741826 1073742335\n\
                        2: FLOCK  ADVISORY  WRITE 2312 fe:00:1234 0 EOF\n\
                        2: -> FLOCK  ADVISORY  WRITE 2313 fe:00:1234 0 EOF\n\
                        2:  -> FLOCK  ADVISORY  READ  2314 fe:00:1234 0 EOF\n\
                        3: OFDLCK ADVISORY  WRITE -1 fe:00:77 0 0\n\
                        3: -> OFDLCK ADVISORY  WRITE -1 fe:00:77 0 0\n\
                        3: -> POSIX  ADVISORY  WRITE 9 fe:00:77 0 0\n\
                        4: LEASE  ACTIVE    READ 12 fe:00:9 0 EOF\n";

    fn waits(text: &str) -> Vec<LockWait> {
        ProcLocks::parse(text.as_bytes()).waits()
    }

    #[test]
    fn waiters_stand_behind_their_holder() {
        let waits = waits(TEXT);
        let pairs: Vec<_> = waits.iter().map(|wait| (wait.holder, wait.waiter)).collect();
        assert_eq!(
            pairs,
            [(Some(2312), Some(2313)), (Some(2312), Some(2314)), (None, None), (None, Some(9))]
        );
        assert_eq!(waits[2].lock.kind, "OFDLCK");
    }

    #[test]
    fn the_open_file_with_the_lock_is_found() {
        let info = "pos:\t0\nflags:\t02\nlock:\t1: OFDLCK ADVISORY  WRITE -1 fe:00:77 0 0\n";
        let lock = &waits(TEXT)[2].lock;
        assert!(has_lock(info, lock));
        assert!(!has_lock(&info.replace("77", "78"), lock));
        assert!(!has_lock(&info.replace(" 0 0", " 1 2"), lock));
    }

    #[test]
    fn a_refused_lock_has_those_in_its_way_that_overlap_and_are_of_its_kind() {
        let refused = |inode, first_byte, last_byte, is_flock| RefusedLock {
            cgroup: 1,
            process: 9,
            dev: Dev::new(0xfe, 0),
            inode,
            first_byte,
            last_byte,
            is_flock,
            refusals: 2,
            takings: 0,
            takings_by_others: 0,
            last_ns: 1,
        };
        let locks = ProcLocks::parse(TEXT.as_bytes());
        let holders = |refused: RefusedLock| -> Vec<Option<u32>> {
            let held = locks.in_the_way_of(&refused);
            held.iter().map(|wait| wait.holder).collect()
        };
        // SQLite's shared range.
        let shared = refused(5, 1_073_741_826, 1_073_742_335, false);
        assert_eq!(holders(shared), [Some(700)]);
        let whole = refused(5, 0, i64::MAX as u64, false);
        assert_eq!(holders(whole), [Some(700)]);
        assert_eq!(holders(refused(5, 1_073_741_825, 1_073_741_825, false)), []);
        assert_eq!(holders(refused(5, 0, i64::MAX as u64, true)), []);
        assert_eq!(holders(refused(6, 0, i64::MAX as u64, false)), []);
        assert_eq!(holders(refused(1234, 0, i64::MAX as u64, true)), [Some(2312)]);
        assert_eq!(holders(refused(77, 0, 5, false)), [None]);
        let elsewhere = RefusedLock { dev: Dev::new(0xfe, 1), ..shared };
        assert_eq!(holders(elsewhere), []);
    }

    #[test]
    fn this_process_has_its_own_lock() {
        let file = tempfile::tempfile().expect("a file");
        flock(&file, FlockOperation::NonBlockingLockExclusive).expect("locked");
        let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", file.as_raw_fd()));
        let line = info.expect("readable");
        let line = line.lines().find_map(|line| line.strip_prefix("lock:"));
        let line = LockLine::parse(line.expect("a lock")).expect("read");
        assert_eq!(line.process, Some(std::process::id()));
        assert!(is_held_by(std::process::id(), &line.lock));
        drop(file);
        assert!(!is_held_by(std::process::id(), &line.lock));
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(text: String, bytes: Vec<u8>) {
            ProcLocks::parse(text.as_bytes()).waits();
            ProcLocks::parse(&bytes).waits();
        }

        #[test]
        fn no_line_makes_it_panic(
            words in proptest::collection::vec("(->|FLOCK|-?[0-9]{1,25}|[0-9]:|:|é| )", 0..40),
        ) {
            waits(&words.join(" "));
            waits(&words.concat());
            waits(&words.join("\n1: -> "));
        }
    }
}
