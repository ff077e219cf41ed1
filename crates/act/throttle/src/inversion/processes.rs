//! What processes share, and what their threads wait for, by `/proc`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// Open files and threads of a process that are looked at, at most.
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
pub(super) type Shared = (Kind, String, u64);

/// A thread that sleeps, and how often it did before: while that is so, it has not run.
pub(super) type Sleep = (u32, u64);

pub(super) fn folder(process: u32) -> PathBuf {
    Path::new("/proc").join(process.to_string())
}

/// The process of a thread.
pub(super) fn process_of(thread: u32) -> Option<u32> {
    let status = fs::read(folder(thread).join("status")).ok()?;
    let status = String::from_utf8_lossy(&status);
    let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
    line.trim().parse().ok()
}

/// Pipes and sockets that a process has open, and memory that it shares and may write.
pub(super) fn shares(folder: &Path, peers: &BTreeMap<u64, u64>) -> BTreeSet<Shared> {
    let files = fs::read_dir(folder.join("fd")).into_iter().flatten();
    let mut shares: BTreeSet<Shared> =
        files.flatten().take(MOST_FILES).filter_map(|file| end(&file.path(), peers)).collect();
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

/// Whether a process has one thread only.
pub(super) fn has_one_thread(process: u32) -> bool {
    // A folder has one more link for itself, one for its parent's entry, and one for each thread.
    fs::metadata(folder(process).join("task")).is_ok_and(|about| about.nlink() == 3)
}

/// What the threads of a process are in the middle of; of one that is a task, or its process' only one, that one.
pub(super) fn calls(process: u32, has_one_thread: bool) -> Vec<Call> {
    let threads = folder(process).join("task");
    if has_one_thread {
        return Call::of(threads.join(process.to_string())).into_iter().collect();
    }
    let threads = fs::read_dir(threads).into_iter().flatten().flatten();
    threads.take(MOST_THREADS).filter_map(|thread| Call::of(thread.path())).collect()
}

/// The beginning of a file in /proc, in one read.
fn beginning(path: &Path) -> Option<String> {
    let mut bytes = [0; 4096];
    let length = File::open(path).ok()?.read(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes[..length]).into_owned())
}

/// A system call in which a thread is.
#[derive(Clone, Debug)]
pub(super) struct Call {
    /// Of the thread, below `/proc/PID/task`.
    folder: PathBuf,
    number: libc::c_long,
    /// Its first argument: the open file of a transfer.
    argument: Option<u64>,
    /// Whose end it waits for, if it is a futex call as pthread_join makes it.
    joined: Option<u32>,
}

impl Call {
    /// That of a thread whose folder in /proc this is.
    fn of(folder: PathBuf) -> Option<Self> {
        let text = beginning(&folder.join("syscall"))?;
        Self::parse(folder, &text)
    }

    /// What `/proc/PID/syscall` shows, of those that may wait for somebody.
    fn parse(folder: PathBuf, text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        // A thread that runs has no number.
        let number = words.next()?.parse().ok()?;
        let is_known =
            number == libc::SYS_futex || TRANSFERS.contains(&number) || POLLS.contains(&number);
        let mut arguments = words.map(|word| {
            let digits = word.strip_prefix("0x")?;
            u64::from_str_radix(digits, 16).ok()
        });
        let argument = arguments.next().flatten();
        let (operation, value) = (arguments.next().flatten(), arguments.next().flatten());
        let joined = operation
            .zip(value)
            .filter(|_| number == libc::SYS_futex)
            .and_then(|(operation, value)| joined(operation, value));
        is_known.then_some(Self { folder, number, argument, joined })
    }

    /// Whether it waits until a thread of its own process has ended. A thaw does not help it: the thread may have much
    /// to do before, and gets its turns for that.
    fn is_join(&self) -> bool {
        let threads = self.folder.parent();
        let thread = threads.zip(self.joined);
        thread.is_some_and(|(threads, thread)| threads.join(thread.to_string()).exists())
    }

    /// Whether it may wait for one of these.
    pub(super) fn may_wait_for(&self, shared: &[Shared], peers: &BTreeMap<u64, u64>) -> bool {
        let fds = self.folder.join("fd");
        self.may_wait(shared, |file| end(&fds.join(file.to_string()), peers))
    }

    fn may_wait(&self, shared: &[Shared], end_of: impl Fn(u64) -> Option<Shared>) -> bool {
        let has = |kind| shared.iter().any(|(other, _, _)| *other == kind);
        if self.number == libc::SYS_futex {
            return has(Kind::Memory) && !self.is_join();
        }
        if TRANSFERS.contains(&self.number) {
            let end = self.argument.and_then(end_of);
            return end.is_some_and(|end| shared.contains(&end));
        }
        has(Kind::Pipe) || has(Kind::Socket)
    }

    /// The thread, if it sleeps.
    pub(super) fn sleep(&self) -> Option<Sleep> {
        let id = self.folder.file_name()?.to_string_lossy().parse().ok()?;
        let status = beginning(&self.folder.join("status"))?;
        Some((id, sleeps(&status)?))
    }
}

/// The thread that a futex call may join: the kernel clears the word with its number when it ends, and glibc's
/// pthread_join waits while the word has that value.
fn joined(operation: u64, value: u64) -> Option<u32> {
    let command = operation as libc::c_int & libc::FUTEX_CMD_MASK;
    let waits = matches!(command, libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET);
    // The call's third argument is an int.
    waits.then_some(value as u32).filter(|thread| *thread > 0)
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

    #[test]
    fn calls_that_may_wait() {
        let pipe: Shared = (Kind::Pipe, "12".to_owned(), 5);
        let memory: Shared = (Kind::Memory, "fe:00".to_owned(), 6);
        let of = |file| (file == 10).then(|| pipe.clone());
        let both = [pipe.clone(), memory.clone()];
        let parse = |text: &str| Call::parse(PathBuf::from("/proc/1/task/1"), text);
        let may_wait = |number: libc::c_long, file: &str, shared: &[Shared]| {
            parse(&format!("{number} {file} 0x1 0x2 0x7f 0x7f\n"))
                .is_some_and(|call| call.may_wait(shared, of))
        };
        let (only_pipe, only_memory) = (&both[..1], &both[1..]);
        assert!(may_wait(libc::SYS_read, "0xa", &both));
        assert!(!may_wait(libc::SYS_read, "0xb", &both));
        assert!(may_wait(libc::SYS_ppoll, "0x7f00", only_pipe));
        assert!(!may_wait(libc::SYS_ppoll, "0x7f00", only_memory));
        assert!(may_wait(libc::SYS_futex, "0x7f00", &both));
        assert!(!may_wait(libc::SYS_futex, "0x7f00", only_pipe));
        assert!(!may_wait(libc::SYS_nanosleep, "0x7f", &both));
        assert!(parse("running\n").is_none());
        assert!(parse("").is_none());
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
    fn threads_are_counted() {
        let process = std::process::id();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || ended.recv());
        assert!(!has_one_thread(process));
        drop(end);
        assert!(thread.join().expect("ends").is_err());
        assert!(has_one_thread(1) || folder(1).join("task/1").exists());
        assert!(!has_one_thread(u32::MAX));
    }

    #[test]
    fn whoever_joins_a_thread_does_not_wait_for_what_it_holds() {
        let memory: Shared = (Kind::Memory, String::new(), 6);
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let joined = std::thread::spawn(move || ended.recv());
        let joining = std::thread::spawn(move || joined.join().is_ok());
        let calls = || calls(std::process::id(), false);
        let begun = std::time::Instant::now();
        let mut joins = Vec::new();
        while joins.is_empty() && begun.elapsed() < std::time::Duration::from_secs(30) {
            joins = calls().into_iter().filter(Call::is_join).collect();
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert!(!joins.is_empty());
        assert!(joins.iter().all(|call| !call.may_wait(std::slice::from_ref(&memory), |_| None)));
        drop(end);
        assert!(joining.join().expect("ends"));
        // The value of any other word is no thread's number.
        let other = format!("{} 0x7f00 0x189 0x2 0x0 0x0 0xffffffff\n", libc::SYS_futex);
        let other = Call::parse(folder(1).join("task/1"), &other).expect("a call");
        assert!(other.may_wait(&[memory], |_| None));
    }

    #[test]
    fn status_of_a_sleeper() {
        let status = "Name:\ta\nState:\tS (sleeping)\nvoluntary_ctxt_switches:\t12\n";
        assert_eq!(sleeps(status), Some(12));
        assert_eq!(sleeps(&status.replace("S (", "D (")), None);
    }
}
