//! Who waits for which file lock, by `/proc/locks`.
//!
//! A lock whose waiters are shown is followed by a line with `->` for each of them, under the same number:
//!
//! ```text
//! 1: FLOCK  ADVISORY  WRITE 2312 fe:00:1234 0 EOF
//! 1: -> FLOCK  ADVISORY  WRITE 2313 fe:00:1234 0 EOF
//! ```
//!
//! The process shown is the one that took the lock. It may have ended, and left the open file with its lock to others
//! (`flock 9` in a shell), or it is not known (-1: locks of open files; 0: it is of another pid namespace). Who has
//! the open file then is told by `/proc/PID/fdinfo`, which shows the same line after `lock:`.

use std::fs;
use std::path::Path;

/// What the kernel knows all locks by.
const LOCKS: &str = "/proc/locks";
/// Open files of a process that are looked at, at most.
const MOST_FILES: usize = 4096;

/// A process that waits for a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wait {
    /// The process that waits, where the kernel knows it.
    pub(super) waiter: Option<u32>,
    /// The process that took the lock, where the kernel knows one.
    pub(super) holder: Option<u32>,
    /// The lock.
    pub(super) lock: Lock,
}

/// A lock, but for who has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lock {
    /// `FLOCK`, `POSIX` or `OFDLCK`.
    kind: String,
    /// Device and inode of the file, as the kernel writes them.
    file: String,
    /// First and last byte.
    range: String,
}

/// Everybody who waits for a lock now. Nobody where this cannot be read.
pub(super) fn waits() -> Vec<Wait> {
    fs::read(LOCKS).map_or_else(|_| Vec::new(), |bytes| parse(&bytes))
}

/// Whether a process has an open file that holds the lock.
pub(super) fn is_held_by(process: u32, lock: &Lock) -> bool {
    let folder = Path::new("/proc").join(process.to_string()).join("fdinfo");
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    files
        .take(MOST_FILES)
        .filter_map(|file| fs::read_to_string(file.path()).ok())
        .any(|info| has_lock(&info, lock))
}

fn has_lock(info: &str, lock: &Lock) -> bool {
    info.lines()
        .filter_map(|line| Line::parse(line.strip_prefix("lock:")?))
        .any(|line| !line.waits && line.lock == *lock)
}

fn parse(bytes: &[u8]) -> Vec<Wait> {
    let text = String::from_utf8_lossy(bytes);
    let mut waits = Vec::new();
    if !text.contains("->") {
        return waits;
    }
    let mut held: Option<Line> = None;
    for line in text.lines().filter_map(Line::parse) {
        if !line.waits {
            held = Some(line);
            continue;
        }
        // Those behind a waiter wait for the same lock in the end.
        let Some(held) = held.as_ref().filter(|held| held.number == line.number) else {
            continue;
        };
        waits.push(Wait {
            waiter: line.process,
            holder: held.process,
            lock: held.lock.clone(),
        });
    }
    waits
}

/// One line.
#[derive(Debug)]
struct Line {
    /// A lock and its waiters have the same.
    number: u64,
    waits: bool,
    process: Option<u32>,
    lock: Lock,
}

impl Line {
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
            lock: Lock {
                kind: kind.to_owned(),
                file: file.to_owned(),
                range: format!("{first} {last}"),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd as _;

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

    #[test]
    fn waiters_stand_behind_their_holder() {
        let waits = parse(TEXT.as_bytes());
        let pairs: Vec<_> = waits
            .iter()
            .map(|wait| (wait.holder, wait.waiter))
            .collect();
        assert_eq!(
            pairs,
            [
                (Some(2312), Some(2313)),
                (Some(2312), Some(2314)),
                (None, None),
                (None, Some(9))
            ]
        );
        assert_eq!(waits[2].lock.kind, "OFDLCK");
    }

    #[test]
    fn the_open_file_with_the_lock_is_found() {
        let info = "pos:\t0\nflags:\t02\nlock:\t1: OFDLCK ADVISORY  WRITE -1 fe:00:77 0 0\n";
        let lock = &parse(TEXT.as_bytes())[2].lock;
        assert!(has_lock(info, lock));
        assert!(!has_lock(&info.replace("77", "78"), lock));
        assert!(!has_lock(&info.replace(" 0 0", " 1 2"), lock));
    }

    #[test]
    fn this_process_has_its_own_lock() {
        let file = tempfile::tempfile().expect("a file");
        flock(&file, FlockOperation::NonBlockingLockExclusive).expect("locked");
        let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", file.as_raw_fd()));
        let line = info.expect("readable");
        let line = line.lines().find_map(|line| line.strip_prefix("lock:"));
        let line = Line::parse(line.expect("a lock")).expect("read");
        assert_eq!(line.process, Some(std::process::id()));
        assert!(is_held_by(std::process::id(), &line.lock));
        drop(file);
        assert!(!is_held_by(std::process::id(), &line.lock));
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(text: String, bytes: Vec<u8>) {
            parse(text.as_bytes());
            parse(&bytes);
        }

        #[test]
        fn no_line_makes_it_panic(
            words in proptest::collection::vec("(->|FLOCK|-?[0-9]{1,25}|[0-9]:|:|é| )", 0..40),
        ) {
            parse(words.join(" ").as_bytes());
            parse(words.concat().as_bytes());
            parse(words.join("\n1: -> ").as_bytes());
        }
    }
}
