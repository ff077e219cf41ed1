//! Threads that slept when recording began or ended: for what, and who holds it.

use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::LazyLock;

use luc_events::event_kinds::WaitState;
use luc_events::tables::AsleepThread;
use luc_events::{Cgroup, ConnectionId, Pid, StackId, Tgid, WaitCause};

use crate::decode;
use crate::ring_records;

/// File of this process' namespace of process ids, and its link in the initial namespace (`PROC_PID_INIT_INO`).
const PID_NAMESPACE: (&str, &str) = ("/proc/self/ns/pid", "pid:[4026531836]");
/// Mask of the operation in the second argument of the system call futex (`FUTEX_CMD_MASK`).
const OPERATION_MASK: i32 = !(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME);
/// Operation of `pthread_mutex_clocklock` on a mutex with priority inheritance, since Linux 5.14.
const FUTEX_LOCK_PI2: i32 = 13;
/// Mask of the owner in the word of a lock with priority inheritance (`FUTEX_TID_MASK`).
const OWNER_MASK: u32 = 0x3fff_ffff;
/// Word of a glibc lock that has an owner and a waiter.
const CONTENDED: u32 = 2;

/// Numbers of threads by process, and by the number that the thread has for itself: it differs in containers. Valid
/// for one visit of all threads. Each process is read once in it, although many of its threads may wait for one lock.
pub(crate) type ThreadNumbers = HashMap<u32, HashMap<u32, u32>>;

/// Makes the row of a sleeping thread.
pub(crate) fn row(
    raw: &ring_records::Asleep,
    stack: StackId,
    by_stack: WaitCause,
    numbers: &mut ThreadNumbers,
) -> AsleepThread {
    let by_call = decode::cause(raw.brief, None);
    let cause = if by_call == WaitCause::Other { by_stack } else { by_call };
    let holder = match cause {
        WaitCause::Flock => file_lock_holder(raw.process),
        _ => holder(raw, numbers),
    };
    AsleepThread {
        at_ns: raw.at_ns,
        thread: Pid(raw.thread),
        process: Tgid(raw.process),
        cgroup: Cgroup(raw.cgroup),
        since_ns: raw.since_ns,
        state: WaitState::from_code(raw.state as u8).unwrap_or(WaitState::Other),
        cause,
        stack,
        call: raw.call,
        argument: raw.argument,
        connection: ConnectionId(raw.connection),
        holder: Pid(holder.unwrap_or(0)),
    }
}

/// Returns the owner of the lock that a thread waits for; `None` for no lock, or a lock that does not store its owner.
fn holder(raw: &ring_records::Asleep, numbers: &mut ThreadNumbers) -> Option<u32> {
    if i64::from(raw.call) != libc::SYS_futex || !is_initial_namespace() {
        return None;
    }
    let mut bytes = [0; 16];
    File::open(format!("/proc/{}/mem", raw.process))
        .and_then(|memory| memory.read_exact_at(&mut bytes, raw.argument))
        .ok()?;
    let mut words = [0; 4];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(4)) {
        *word = bytes.try_into().map_or(0, u32::from_ne_bytes);
    }
    let own = owner(words, raw.operation as i32)?;
    let threads = numbers.entry(raw.process).or_insert_with(|| {
        let threads = format!("/proc/{}/task", raw.process);
        own_numbers(Path::new(&threads))
    });
    let holder = *threads.get(&own)?;
    // It may have been woken since: then these words say nothing about its sleep.
    (holder != raw.thread && still_waits(raw)).then_some(holder)
}

/// Returns the process that has the file's lock for which a process waits.
fn file_lock_holder(process: u32) -> Option<u32> {
    if !is_initial_namespace() {
        return None;
    }
    holder_in(&fs::read_to_string("/proc/locks").ok()?, process)
}

/// Finds it in the text of `/proc/locks`, where those that wait for a lock follow it, with an arrow.
fn holder_in(locks: &str, process: u32) -> Option<u32> {
    let mut holder = None;
    for line in locks.lines() {
        let mut words = line.split_whitespace().skip(1).peekable();
        let waits = words.next_if_eq(&"->").is_some();
        // Its kind, whether it is mandatory, and whether it is for writers.
        let owner: Option<u32> = words.nth(3).and_then(|owner| owner.parse().ok());
        if !waits {
            holder = owner;
        } else if owner == Some(process) {
            return holder.filter(|&holder| holder != process);
        }
    }
    None
}

/// Returns whether threads have the same numbers here as in the kernel.
fn is_initial_namespace() -> bool {
    static IS_INITIAL: LazyLock<bool> = LazyLock::new(|| {
        let (path, initial) = PID_NAMESPACE;
        fs::read_link(path).is_ok_and(|name| name == Path::new(initial))
    });
    *IS_INITIAL
}

/// Returns the owner of a lock, by its own number. The operation waits for the first of these four words.
///
/// A lock with priority inheritance has its owner in that word, as the kernel demands. A mutex of glibc (`struct
/// __pthread_mutex_s`) has it in the third word. The words before it are the lock word and the owner's lock count.
/// The fourth word is the number of users. Other locks have none of this, and the words behind them mean nothing.
fn owner([word, _, owner, users]: [u32; 4], operation: i32) -> Option<u32> {
    let own = match operation & OPERATION_MASK {
        libc::FUTEX_LOCK_PI | FUTEX_LOCK_PI2 => word & OWNER_MASK,
        libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET if word == CONTENDED && users > 0 => owner,
        _ => 0,
    };
    (own != 0).then_some(own)
}

/// Reads the threads of a process by their own numbers.
fn own_numbers(threads: &Path) -> HashMap<u32, u32> {
    let entries = fs::read_dir(threads).into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| {
        let status = fs::read_to_string(entry.path().join("status")).ok()?;
        let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
        let innermost: u32 = numbers.split_whitespace().next_back()?.parse().ok()?;
        let outermost = entry.file_name().to_str()?.parse().ok()?;
        Some((innermost, outermost))
    });
    numbers.collect()
}

/// Returns whether a thread is still in the same system call with the same argument.
fn still_waits(raw: &ring_records::Asleep) -> bool {
    let path = format!("/proc/{}/task/{}/syscall", raw.process, raw.thread);
    let now = fs::read_to_string(path).unwrap_or_default();
    now.starts_with(&format!("{} {:#x} ", raw.call, raw.argument))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_says_who_has_it_only_while_somebody_waits() {
        let private_wait = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
        assert_eq!(owner([2, 0, 77, 1], private_wait), Some(77));
        let until = libc::FUTEX_WAIT_BITSET | libc::FUTEX_CLOCK_REALTIME;
        assert_eq!(owner([2, 3, 77, 1], until), Some(77));
        // Free, locked without a waiter, without users, a condition variable.
        for words in [[0, 0, 77, 1], [1, 0, 77, 1], [2, 0, 77, 0], [2, 0, 0, 1]] {
            assert_eq!(owner(words, private_wait), None, "{words:?}");
        }
        assert_eq!(owner([2, 0, 77, 1], libc::FUTEX_WAKE), None);
    }

    #[test]
    fn a_lock_with_priority_inheritance_names_its_owner_in_its_word() {
        let waiters = 0x8000_0000;
        assert_eq!(owner([waiters | 78, 0, 0, 0], libc::FUTEX_LOCK_PI), Some(78));
        assert_eq!(owner([waiters | 78, 0, 5, 1], FUTEX_LOCK_PI2), Some(78));
    }

    #[test]
    fn the_holder_of_a_file_s_lock_comes_before_those_who_wait() {
        let locks = "1: FLOCK  ADVISORY  WRITE 900 fe:00:12 0 EOF\n\
                     2: FLOCK  ADVISORY  WRITE 901 fe:00:13 0 EOF\n\
                     2: -> FLOCK  ADVISORY  WRITE 902 fe:00:13 0 EOF\n\
                     2:  -> FLOCK  ADVISORY  WRITE 903 fe:00:13 0 EOF\n\
                     3: OFDLCK ADVISORY  WRITE -1 fe:00:14 0 EOF\n\
                     3: -> OFDLCK ADVISORY  WRITE 904 fe:00:14 0 EOF\n";
        let holders = [900, 902, 903, 904, 905].map(|process| holder_in(locks, process));
        assert_eq!(holders, [None, Some(901), Some(901), None, None]);
        assert_eq!(holder_in("1:\n-> ->\n", 1), None);
    }

    #[test]
    fn threads_are_found_by_their_own_numbers() {
        let folder = tempfile::tempdir().expect("a directory");
        for (outer, inner) in [("901", "901\t7"), ("902", "902\t8")] {
            let path = folder.path().join(outer);
            fs::create_dir(&path).expect("made");
            fs::write(path.join("status"), format!("Name:\ta\nNSpid:\t{inner}\n"))
                .expect("written");
        }
        let numbers = own_numbers(folder.path());
        assert_eq!(numbers, HashMap::from([(7, 901), (8, 902)]));
        assert!(own_numbers(&folder.path().join("none")).is_empty());
    }
}
