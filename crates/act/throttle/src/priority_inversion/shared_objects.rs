//! Reads from `/proc` which objects processes share, and which system calls their threads are in.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// Largest numbers of open files and threads of a process that are read.
const MAX_FILES: usize = 1024;
const MAX_THREADS: usize = 256;

/// Kind of object that two processes may share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LinkKind {
    Pipe,
    Socket,
    Memory,
}

/// An object that processes may share.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SharedObject {
    pub(super) kind: LinkKind,
    pub(super) device: String,
    /// Inode of the object; for a connection, the smaller one of its two sockets.
    pub(super) inode: u64,
}

impl SharedObject {
    pub(super) fn new(kind: LinkKind, device: impl Into<String>, inode: u64) -> Self {
        Self { kind, device: device.into(), inode }
    }
}

/// A sleep of a thread. It is the same sleep as long as the number of sleeps is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ThreadSleep {
    pub(super) thread: u32,
    /// Number of times that the thread has gone to sleep.
    pub(super) sleeps: u64,
}

pub(super) fn proc_folder(process: u32) -> PathBuf {
    Path::new("/proc").join(process.to_string())
}

pub(super) fn process_of(thread: u32) -> Option<u32> {
    let status = fs::read(proc_folder(thread).join("status")).ok()?;
    let status = String::from_utf8_lossy(&status);
    let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
    line.trim().parse().ok()
}

/// Pipes and sockets that a process has open, and memory that it shares and may write.
pub(super) fn list_shared(folder: &Path, peers: &BTreeMap<u64, u64>) -> BTreeSet<SharedObject> {
    let files = fs::read_dir(folder.join("fd")).into_iter().flatten();
    let mut shares: BTreeSet<SharedObject> = files
        .flatten()
        .take(MAX_FILES)
        .filter_map(|file| endpoint_of(&file.path(), peers))
        .collect();
    let maps = fs::read(folder.join("maps")).unwrap_or_default();
    shares.extend(String::from_utf8_lossy(&maps).lines().filter_map(parse_memory));
    shares
}

/// The pipe or connection of an open file, if it is an end of one.
fn endpoint_of(path: &Path, peers: &BTreeMap<u64, u64>) -> Option<SharedObject> {
    let about = fs::metadata(path).ok()?;
    let (kind, inode) = (about.file_type(), about.ino());
    if kind.is_fifo() {
        return Some(SharedObject::new(LinkKind::Pipe, about.dev().to_string(), inode));
    }
    let peer = peers.get(&inode).filter(|_| kind.is_socket())?;
    Some(SharedObject::new(LinkKind::Socket, "", inode.min(*peer)))
}

/// Shared, writable memory of a line of `/proc/PID/maps`.
fn parse_memory(line: &str) -> Option<SharedObject> {
    let mut words = line.split_whitespace().skip(1);
    let (rights, _, device, inode) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let is_shared = rights.starts_with("rw") && rights.ends_with('s');
    let inode = inode.parse().ok().filter(|inode| *inode > 0)?;
    is_shared.then(|| SharedObject::new(LinkKind::Memory, device, inode))
}

/// Whether a process has exactly one thread.
pub(super) fn has_one_thread(process: u32) -> bool {
    // A folder has one more link for itself, one for its parent's entry, and one for each thread.
    fs::metadata(proc_folder(process).join("task")).is_ok_and(|about| about.nlink() == 3)
}

/// System calls that the threads of a process are in. `has_one_thread`: `process` is its only thread, or a thread that
/// is a task.
pub(super) fn list_calls(process: u32, has_one_thread: bool) -> Vec<BlockedCall> {
    let threads = proc_folder(process).join("task");
    if has_one_thread {
        return BlockedCall::of(threads.join(process.to_string())).into_iter().collect();
    }
    let threads = fs::read_dir(threads).into_iter().flatten().flatten();
    threads.take(MAX_THREADS).filter_map(|thread| BlockedCall::of(thread.path())).collect()
}

/// Reads the beginning of a file in `/proc`, in one read.
fn read_beginning(path: &Path) -> Option<String> {
    let mut bytes = [0; 4096];
    let length = File::open(path).ok()?.read(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes[..length]).into_owned())
}

/// A system call that a thread is in.
#[derive(Clone, Debug)]
pub(super) struct BlockedCall {
    /// Folder of the thread, below `/proc/PID/task`.
    folder: PathBuf,
    number: libc::c_long,
    /// Its first argument, which is the open file of a transfer.
    argument: Option<u64>,
    /// The thread whose end it waits for, if it is a futex call of pthread_join.
    joined: Option<u32>,
}

impl BlockedCall {
    /// Reads the call of the thread with this folder in `/proc`.
    fn of(folder: PathBuf) -> Option<Self> {
        let text = read_beginning(&folder.join("syscall"))?;
        Self::parse(folder, &text)
    }

    /// Parses `/proc/PID/syscall`. `None` for a call that cannot wait for another process.
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
            .and_then(|(operation, value)| find_joined(operation, value));
        is_known.then_some(Self { folder, number, argument, joined })
    }

    /// Whether it waits until a thread of its own process has ended. A thaw does not help it: the thread may have much
    /// to do before, and gets its turns for that.
    fn is_join(&self) -> bool {
        let thread = self.folder.parent().zip(self.joined);
        thread.is_some_and(|(threads, thread)| threads.join(thread.to_string()).exists())
    }

    /// Whether it may wait for one of these objects.
    pub(super) fn may_wait_for(&self, shared: &[SharedObject], peers: &BTreeMap<u64, u64>) -> bool {
        let fds = self.folder.join("fd");
        self.may_wait(shared, |file| endpoint_of(&fds.join(file.to_string()), peers))
    }

    fn may_wait(
        &self,
        shared: &[SharedObject],
        end_of: impl Fn(u64) -> Option<SharedObject>,
    ) -> bool {
        let has = |kind| shared.iter().any(|object| object.kind == kind);
        if self.number == libc::SYS_futex {
            return has(LinkKind::Memory) && !self.is_join();
        }
        if TRANSFERS.contains(&self.number) {
            let end = self.argument.and_then(end_of);
            return end.is_some_and(|end| shared.contains(&end));
        }
        has(LinkKind::Pipe) || has(LinkKind::Socket)
    }

    pub(super) fn sleep(&self) -> Option<ThreadSleep> {
        let id = self.folder.file_name()?.to_string_lossy().parse().ok()?;
        let status = read_beginning(&self.folder.join("status"))?;
        Some(ThreadSleep { thread: id, sleeps: count_sleeps(&status)? })
    }
}

/// The thread that a futex call may join. The kernel clears the word with a thread's number when that thread ends.
/// pthread_join of glibc waits while the word has that value.
fn find_joined(operation: u64, value: u64) -> Option<u32> {
    let command = operation as libc::c_int & libc::FUTEX_CMD_MASK;
    let waits = matches!(command, libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET);
    // The call's third argument is an int.
    waits.then_some(value as u32).filter(|thread| *thread > 0)
}

/// System calls that read or write the open file of their first argument.
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

/// Number of times that an interruptibly sleeping thread has gone to sleep, by `/proc/PID/status`.
fn count_sleeps(status: &str) -> Option<u64> {
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
        let pipe = SharedObject::new(LinkKind::Pipe, "12", 5);
        let memory = SharedObject::new(LinkKind::Memory, "fe:00", 6);
        let of = |file| (file == 10).then(|| pipe.clone());
        let both = [pipe.clone(), memory.clone()];
        let parse = |text: &str| BlockedCall::parse(PathBuf::from("/proc/1/task/1"), text);
        let may_wait = |number: libc::c_long, file: &str, shared: &[SharedObject]| {
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
        assert_eq!(parse_memory(line), Some(SharedObject::new(LinkKind::Memory, "fe:00", 1234)));
        assert_eq!(parse_memory(&line.replace("rw-s", "r--s")), None);
        assert_eq!(parse_memory(&line.replace("rw-s", "rw-p")), None);
        assert_eq!(parse_memory(""), None);
    }

    #[test]
    fn threads_are_counted() {
        let process = std::process::id();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || ended.recv());
        assert!(!has_one_thread(process));
        drop(end);
        assert!(thread.join().expect("ends").is_err());
        assert!(has_one_thread(1) || proc_folder(1).join("task/1").exists());
        assert!(!has_one_thread(u32::MAX));
    }

    #[test]
    fn whoever_joins_a_thread_does_not_wait_for_what_it_holds() {
        let memory = SharedObject::new(LinkKind::Memory, "", 6);
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let joined = std::thread::spawn(move || ended.recv());
        let joining = std::thread::spawn(move || joined.join().is_ok());
        let calls = || list_calls(std::process::id(), false);
        let begun = std::time::Instant::now();
        let mut joins = Vec::new();
        while joins.is_empty() && begun.elapsed() < std::time::Duration::from_secs(30) {
            joins = calls().into_iter().filter(BlockedCall::is_join).collect();
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert!(!joins.is_empty());
        assert!(joins.iter().all(|call| !call.may_wait(std::slice::from_ref(&memory), |_| None)));
        drop(end);
        assert!(joining.join().expect("ends"));
        // The value of any other word is no thread's number.
        let other = format!("{} 0x7f00 0x189 0x2 0x0 0x0 0xffffffff\n", libc::SYS_futex);
        let other = BlockedCall::parse(proc_folder(1).join("task/1"), &other).expect("a call");
        assert!(other.may_wait(&[memory], |_| None));
    }

    #[test]
    fn status_of_a_sleeper() {
        let status = "Name:\ta\nState:\tS (sleeping)\nvoluntary_ctxt_switches:\t12\n";
        assert_eq!(count_sleeps(status), Some(12));
        assert_eq!(count_sleeps(&status.replace("S (", "D (")), None);
    }
}
