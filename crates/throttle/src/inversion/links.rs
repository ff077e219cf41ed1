//! Who waits for a task with which it shares a pipe, a socket or memory.
//!
//! Two tasks are linked by a pipe (named or not) that both have open, by the two ends of a Unix socket, and by memory
//! that both have mapped shared and may write, as a futex is in; threads of one process that are tasks of their own by
//! all of its memory. Links are looked for every [`SCAN_EVERY_NS`]. A thread of a running task waits for a frozen one
//! that is linked with its process if it sleeps at two successive looks, without having run in between: for memory in
//! futex, for the others in a read or write of it, or in poll and the like.
//!
//! That is a guess where a thread polls much else. So whoever did not wake when the other was thawed for it is not
//! listened to for a time that doubles each time.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use luc_control::throttle::sample::TaskId;

use super::sockets::peers;
use crate::cgroup::Cgroup;
use crate::clock;

/// How often links are looked for, ns, and how many times as long as looking took passes before at least: reading all
/// files and memory maps of a hundred tasks is dear.
const SCAN_EVERY_NS: u64 = 1_000_000_000;
const SCAN_REST: u64 = 400;
/// A thaw should have woken the waiter within this time, ns.
const HELPS_WITHIN_NS: u64 = 250_000_000;
/// A waiter that thaws did not wake is not listened to for at most this long, ns.
const LONGEST_DEAF_NS: u64 = 60_000_000_000;
/// A pair for which so many thaws helped is coupled.
const COUPLED_AFTER: u32 = 2;
/// Processes of a task, open files and threads of a process that are looked at, at most.
const MOST_PROCESSES: usize = 64;
const MOST_FILES: usize = 1024;
const MOST_THREADS: usize = 256;

/// What two processes may share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Pipe,
    Socket,
    Memory,
}

/// Something that may be shared: its kind, device and inode. Of two sockets that are connected the smaller inode.
type Shared = (Kind, String, u64);

/// A thread that sleeps, and how often it did before: while that is so, it has not run.
type Sleep = (u32, u64);

/// Somebody who waits for a frozen task.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) holder: TaskId,
    pub(super) waiter: TaskId,
    pub(super) kind: Kind,
    /// Whether it was so before, and a thaw helped.
    pub(super) is_usual: bool,
}

/// The links of all tasks, and what is remembered of their waits.
#[derive(Debug, Default)]
pub(super) struct Links {
    scan_ns: u64,
    /// Inodes of connected sockets.
    peers: BTreeMap<u64, u64>,
    processes: Vec<Process>,
    /// Of the holder and the waiter.
    pairs: BTreeMap<(TaskId, TaskId), Pair>,
}

#[derive(Debug)]
struct Process {
    task: TaskId,
    /// Of the process, or of the one thread of it that is this task.
    id: u32,
    /// The process of a thread that is a task.
    of: Option<u32>,
    shares: BTreeSet<Shared>,
}

#[derive(Debug, Default)]
struct Pair {
    asleep: BTreeSet<Sleep>,
    /// For whom the holder was thawed last, and when, ns.
    thawed_for: Option<(Sleep, u64)>,
    helped: u32,
    in_vain: u32,
    /// It is not thawed for the waiter before, ns.
    deaf_until_ns: u64,
}

impl Links {
    /// Who waits for a frozen one of these tasks, given with their cgroups and whether they are frozen.
    pub(super) fn look(&mut self, tasks: &[(TaskId, &Cgroup, bool)], now_ns: u64) -> Vec<Found> {
        if now_ns >= self.scan_ns {
            let begun_ns = clock::now_ns();
            self.scan(tasks);
            let rest_ns = SCAN_REST * clock::now_ns().saturating_sub(begun_ns);
            self.scan_ns = now_ns + rest_ns.max(SCAN_EVERY_NS);
        }
        let mut found = Vec::new();
        let is_frozen = |id| tasks.iter().any(|task| task.0 == id && task.2);
        let (frozen, running): (Vec<_>, Vec<_>) = self
            .processes
            .iter()
            .partition(|process| is_frozen(process.task));
        for holder in &frozen {
            for waiter in &running {
                let is_of_one = holder.of.is_some() && holder.of == waiter.of;
                // Threads have all files in common, and seldom talk by them.
                let is_meant = |shared: &&Shared| !is_of_one || shared.0 == Kind::Memory;
                let common = || holder.shares.intersection(&waiter.shares).filter(is_meant);
                let Some((kind, _, _)) = common().next() else {
                    continue;
                };
                let asleep = asleep(waiter, &common().collect::<Vec<_>>(), &self.peers);
                let pair = self.pairs.entry((holder.task, waiter.task)).or_default();
                if pair.waits(asleep, now_ns) {
                    found.push(Found {
                        holder: holder.task,
                        waiter: waiter.task,
                        kind: *kind,
                        is_usual: pair.helped >= COUPLED_AFTER,
                    });
                }
            }
        }
        found
    }

    fn scan(&mut self, tasks: &[(TaskId, &Cgroup, bool)]) {
        self.processes.clear();
        self.peers = peers();
        let mut of_processes: BTreeMap<u32, BTreeSet<Shared>> = BTreeMap::new();
        for (task, cgroup, _) in tasks {
            let processes = cgroup.processes().unwrap_or_default();
            for id in processes.into_iter().take(MOST_PROCESSES) {
                let shares = shares(&folder(id), &self.peers);
                self.processes.push(Process {
                    task: *task,
                    id,
                    of: None,
                    shares,
                });
            }
            for id in cgroup.single_threads().unwrap_or_default() {
                let Some(process) = process_of(id) else {
                    continue;
                };
                let of_process = of_processes
                    .entry(process)
                    .or_insert_with(|| shares(&folder(process), &self.peers));
                let mut shares = of_process.clone();
                shares.insert((Kind::Memory, String::new(), process.into()));
                self.processes.push(Process {
                    task: *task,
                    id,
                    of: Some(process),
                    shares,
                });
            }
        }
        let is_there = |id| tasks.iter().any(|task| task.0 == id);
        self.pairs
            .retain(|(holder, waiter), _| is_there(*holder) && is_there(*waiter));
    }
}

impl Pair {
    /// Whether one of the threads that sleep now did so at the last look, and the holder is to be thawed for it.
    fn waits(&mut self, asleep: BTreeSet<Sleep>, now_ns: u64) -> bool {
        let before = std::mem::replace(&mut self.asleep, asleep);
        let still = self.asleep.intersection(&before).next().copied();
        if let Some((sleep, at_ns)) = self.thawed_for {
            if !self.asleep.contains(&sleep) {
                self.thawed_for = None;
                self.helped += 1;
                self.in_vain = 0;
            } else if now_ns < at_ns + HELPS_WITHIN_NS {
                return false;
            } else {
                self.thawed_for = None;
                self.in_vain += 1;
                let deaf_ns = HELPS_WITHIN_NS << self.in_vain.min(20);
                self.deaf_until_ns = now_ns + deaf_ns.min(LONGEST_DEAF_NS);
            }
        }
        if now_ns < self.deaf_until_ns {
            return false;
        }
        self.thawed_for = still.map(|sleep| (sleep, now_ns));
        still.is_some()
    }
}

fn folder(process: u32) -> PathBuf {
    Path::new("/proc").join(process.to_string())
}

/// The process of a thread.
fn process_of(thread: u32) -> Option<u32> {
    let status = fs::read(folder(thread).join("status")).ok()?;
    let status = String::from_utf8_lossy(&status);
    let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
    line.trim().parse().ok()
}

/// Pipes and sockets that a process has open, and memory that it shares and may write.
fn shares(folder: &Path, peers: &BTreeMap<u64, u64>) -> BTreeSet<Shared> {
    let files = fs::read_dir(folder.join("fd")).into_iter().flatten();
    let mut shares: BTreeSet<Shared> = files
        .flatten()
        .take(MOST_FILES)
        .filter_map(|file| end(&file.path(), peers))
        .collect();
    let maps = fs::read(folder.join("maps")).unwrap_or_default();
    shares.extend(String::from_utf8_lossy(&maps).lines().filter_map(memory));
    shares
}

/// The pipe or the connection of which an open file is an end, if it is one.
fn end(path: &Path, peers: &BTreeMap<u64, u64>) -> Option<Shared> {
    let about = fs::metadata(path).ok()?;
    let (kind, inode) = (about.file_type(), about.ino());
    if kind.is_fifo() {
        return Some((Kind::Pipe, about.dev().to_string(), inode));
    }
    let peer = peers.get(&inode).filter(|_| kind.is_socket())?;
    Some((Kind::Socket, String::new(), inode.min(*peer)))
}

/// The shared, writable memory that a line of `/proc/PID/maps` tells of.
fn memory(line: &str) -> Option<Shared> {
    let mut words = line.split_whitespace().skip(1);
    let (rights, _, device, inode) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let is_shared = rights.starts_with("rw") && rights.ends_with('s');
    let inode = inode.parse().ok().filter(|inode| *inode > 0)?;
    is_shared.then(|| (Kind::Memory, device.to_owned(), inode))
}

/// Threads of a process that sleep in a system call that may wait for one of these.
fn asleep(process: &Process, shared: &[&Shared], peers: &BTreeMap<u64, u64>) -> BTreeSet<Sleep> {
    let folder = folder(process.id);
    let threads = fs::read_dir(folder.join("task")).into_iter().flatten();
    let own = process.id.to_string();
    threads
        .flatten()
        .filter(|thread| process.of.is_none() || thread.file_name() == *own)
        .take(MOST_THREADS)
        .filter_map(|thread| {
            let id = thread.file_name().to_string_lossy().parse().ok()?;
            let call = fs::read_to_string(thread.path().join("syscall")).ok()?;
            let end_of = |file: &str| end(&folder.join("fd").join(file), peers);
            if !may_wait(&call, shared, end_of) {
                return None;
            }
            let status = fs::read(thread.path().join("status")).ok()?;
            Some((id, sleeps(&String::from_utf8_lossy(&status))?))
        })
        .collect()
}

/// Whether a system call, as `/proc/PID/syscall` shows it, may wait for one of these.
fn may_wait(call: &str, shared: &[&Shared], end_of: impl Fn(&str) -> Option<Shared>) -> bool {
    let mut words = call.split_whitespace();
    let Some(number) = words.next().and_then(|word| word.parse().ok()) else {
        // It runs.
        return false;
    };
    let has = |kind| shared.iter().any(|(other, _, _)| *other == kind);
    if number == libc::SYS_futex {
        return has(Kind::Memory);
    }
    if TRANSFERS.contains(&number) {
        let file = words.next().and_then(|word| word.strip_prefix("0x"));
        let file = file.and_then(|digits| u64::from_str_radix(digits, 16).ok());
        let end = file.and_then(|file| end_of(&file.to_string()));
        return end.is_some_and(|end| shared.contains(&&end));
    }
    (has(Kind::Pipe) || has(Kind::Socket)) && POLLS.contains(&number)
}

const TRANSFERS: [libc::c_long; 8] = [
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_write,
    libc::SYS_writev,
];
#[cfg(target_arch = "x86_64")]
const POLLS: [libc::c_long; 6] = [
    libc::SYS_poll,
    libc::SYS_ppoll,
    libc::SYS_select,
    libc::SYS_pselect6,
    libc::SYS_epoll_wait,
    libc::SYS_epoll_pwait,
];
#[cfg(not(target_arch = "x86_64"))]
const POLLS: [libc::c_long; 3] = [libc::SYS_ppoll, libc::SYS_pselect6, libc::SYS_epoll_pwait];

/// How often a thread that sleeps interruptibly has gone to sleep, by `/proc/PID/status`.
fn sleeps(status: &str) -> Option<u64> {
    let value = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
    if !value("State:")?.trim().starts_with('S') {
        return None;
    }
    value("voluntary_ctxt_switches:")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn only(sleeps: u64) -> BTreeSet<Sleep> {
        BTreeSet::from([(7, sleeps)])
    }

    #[test]
    fn one_look_is_not_enough_and_thaws_that_help_count() {
        let mut pair = Pair::default();
        for round in 0..3 {
            let now_ns = round * 300 * MS;
            assert!(!pair.waits(only(round), now_ns));
            assert!(pair.waits(only(round), now_ns + 20 * MS));
            assert!(!pair.waits(only(round), now_ns + 40 * MS), "give it time");
        }
        assert_eq!((pair.helped, pair.in_vain), (2, 0));
    }

    #[test]
    fn who_does_not_wake_is_listened_to_ever_more_rarely() {
        let mut pair = Pair::default();
        let thaws = (0..6_000).filter(|look| pair.waits(only(1), look * 20 * MS));
        let thaws = thaws.count();
        assert!((4..10).contains(&thaws), "{thaws} in two minutes");
        assert_eq!(pair.helped, 0);
    }

    #[test]
    fn a_thread_that_ran_in_between_does_not_wait() {
        let mut pair = Pair::default();
        for sleeps in 0..50 {
            assert!(!pair.waits(only(sleeps), sleeps * 20 * MS));
        }
    }

    #[test]
    fn calls_that_may_wait() {
        let pipe: Shared = (Kind::Pipe, "12".to_owned(), 5);
        let memory: Shared = (Kind::Memory, "fe:00".to_owned(), 6);
        let of = |file: &str| (file == "10").then(|| pipe.clone());
        let both = [&pipe, &memory];
        let line =
            |number: libc::c_long, file: &str| format!("{number} {file} 0x1 0x2 0x7f 0x7f\n");
        assert!(may_wait(&line(libc::SYS_read, "0xa"), &both, of));
        assert!(!may_wait(&line(libc::SYS_read, "0xb"), &both, of));
        assert!(may_wait(&line(libc::SYS_ppoll, "0x7f00"), &[&pipe], of));
        assert!(!may_wait(&line(libc::SYS_ppoll, "0x7f00"), &[&memory], of));
        assert!(may_wait(&line(libc::SYS_futex, "0x7f00"), &both, of));
        assert!(!may_wait(&line(libc::SYS_futex, "0x7f00"), &[&pipe], of));
        assert!(!may_wait(&line(libc::SYS_nanosleep, "0x7f"), &both, of));
        assert!(!may_wait("running\n", &both, of));
    }

    #[test]
    fn shared_memory_is_what_both_may_write() {
        let line = "7f00-7f01 rw-s 00000000 fe:00 1234   /tmp/a file";
        assert_eq!(memory(line), Some((Kind::Memory, "fe:00".to_owned(), 1234)));
        assert_eq!(memory(&line.replace("rw-s", "r--s")), None);
        assert_eq!(memory(&line.replace("rw-s", "rw-p")), None);
        assert_eq!(memory(""), None);
    }

    #[test]
    fn status_of_a_sleeper() {
        let status = "Name:\ta\nState:\tS (sleeping)\nvoluntary_ctxt_switches:\t12\n";
        assert_eq!(sleeps(status), Some(12));
        assert_eq!(sleeps(&status.replace("S (", "D (")), None);
    }
}
