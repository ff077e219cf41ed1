//! Threads: waits, calls and identities.

use super::table;
use crate::event_kinds::{FileCallKind, WaitState};
use crate::{Cgroup, ConnectionId, Dev, Inode, Pid, StackId, Tgid, Transaction, WaitCause};

table! {
    /// An interval in which a thread was not on a processor. Complete at `on_ns`.
    pub struct OffCpuWait in "wait" by on_ns {
        /// Thread that waited.
        pub thread: Pid,
        /// Process of the thread.
        pub process: Tgid,
        /// Cgroup of the thread.
        pub cgroup: Cgroup,
        /// Time when it left its processor.
        pub off_ns: u64,
        /// Time when it was woken and became runnable; 0 if that was not seen, or if it stayed runnable.
        pub woken_ns: u64,
        /// Time when it was on a processor again. With `record --fleet` also the end of the trace: the thread is
        /// awake then and was not seen running since `off_ns`.
        pub on_ns: u64,
        /// State in which it left.
        pub state: WaitState,
        /// Cause of the wait, by its kernel stack.
        pub cause: WaitCause,
        /// Kernel stack; 0 if not recorded.
        pub stack: StackId,
        /// Thread that woke it; 0 if not seen, or for a timer's interrupt.
        pub waker: Pid,
        /// Device that it waited for, if known.
        pub dev: Dev,
        /// Transaction that it waited for, if known.
        pub transaction: Transaction,
        /// Processor that it was on then: its number plus 1. 0 if not recorded, as in traces of schema versions before
        /// 5 and for waits that end with the trace.
        pub processor: u32,
    }
}

table! {
    /// Brief waits of a thread by cause, summed: waits below a threshold (1 ms in the recorder) outside of syncs whose
    /// cause is known without a stack. A brief wait has no row in `wait`, so an account of a thread needs both tables.
    /// If the network is recorded, only sleeps for a time and waits for a processor are summed: the waker of another
    /// wait shows which request the thread worked for. Complete at `until_ns`.
    pub struct BriefWait in "brief_wait" by until_ns {
        /// Thread that waited.
        pub thread: Pid,
        /// Process of the thread.
        pub process: Tgid,
        /// Cgroup of the thread.
        pub cgroup: Cgroup,
        /// Begin of the first of them.
        pub since_ns: u64,
        /// Time when the sum was taken. Later waits are in another row.
        pub until_ns: u64,
        /// Cause of the waits.
        pub cause: WaitCause,
        /// Number of waits.
        pub count: u64,
        /// Time from leaving the processor to being woken, in all.
        pub blocked_ns: u64,
        /// Time from being woken to being on a processor again, in all; for `preempted` all of the time.
        pub runnable_ns: u64,
    }
}

/// [`AsleepThread::call`] of a thread in no system call, or in an unknown one.
pub const NO_CALL: u32 = u32::MAX;

table! {
    /// A thread that slept when the trace ended, with the begin and the cause of its sleep. If the network is recorded,
    /// one that slept when it began, too. Its sleep has no row of `wait` before the trace began. A sleep that ends later
    /// has its row of `wait` from then on.
    pub struct AsleepThread in "asleep" by at_ns {
        /// Time of the observation: just after the trace began, or when it ended.
        pub at_ns: u64,
        /// Thread that slept.
        pub thread: Pid,
        /// Process of the thread.
        pub process: Tgid,
        /// Cgroup of the thread.
        pub cgroup: Cgroup,
        /// Time when it left its processor; 0 if unknown. Before the trace it is by the scheduler's counts, which may
        /// be some milliseconds off.
        pub since_ns: u64,
        /// State in which it slept.
        pub state: WaitState,
        /// Cause of the sleep, by its system call or its kernel stack.
        pub cause: WaitCause,
        /// Kernel stack; 0 if not recorded.
        pub stack: StackId,
        /// Number of the system call that it was in, on the host's architecture; 4294967295 for none or unknown.
        pub call: u32,
        /// First argument of that call: the file of a read or a receive, the address of a futex.
        pub argument: u64,
        /// Connection that it waited on; 0 for none, or for several, as with `poll`.
        pub connection: ConnectionId,
        /// Thread that had the awaited lock, if the lock stores that: a mutex of glibc, or one with priority
        /// inheritance, in the process' own memory. Of a file's lock it is the process that took it. 0 if unknown.
        pub holder: Pid,
    }
}

table! {
    /// A file-system call other than a sync that took part in a journal's transaction or waited uninterruptibly.
    /// Other calls cannot make anybody wait. So a read or an overwrite in memory has no row. The number of writes
    /// with a row depends on the kernel: ext4 of 6.1 begins a handle for each write. That of 6.12 begins one only for
    /// a write that dirties a clean page or extends the file. Complete at `exit_ns`.
    pub struct FileCall in "call" by exit_ns {
        /// Thread that made the call.
        pub thread: Pid,
        /// Process of the thread.
        pub process: Tgid,
        /// Cgroup of the thread.
        pub cgroup: Cgroup,
        /// Kind of the call.
        pub kind: FileCallKind,
        /// Begin of the system call.
        pub enter_ns: u64,
        /// End of the system call.
        pub exit_ns: u64,
        /// File system of the file, if known.
        pub dev: Dev,
        /// Inode of the file, if known.
        pub inode: Inode,
        /// Number of bytes written or read; 0 for other calls.
        pub bytes: u64,
        /// Error as a positive number; 0 without one.
        pub errno: u32,
    }
}

table! {
    /// A thread's name, family and processor times at `at_ns`. There is a row when it is first seen, after exec, and
    /// when it exits or the trace ends.
    pub struct ThreadInfo in "task" by at_ns {
        /// Time when the row was taken.
        pub at_ns: u64,
        /// Thread of the row.
        pub thread: Pid,
        /// Process of the thread.
        pub process: Tgid,
        /// Parent of the process.
        pub parent: Tgid,
        /// Name of the thread (`comm`).
        pub comm: String,
        /// Cgroup of the thread.
        pub cgroup: Cgroup,
        /// Start of the thread.
        pub start_ns: u64,
        /// Exit of the thread; 0 until then.
        pub exit_ns: u64,
        /// Processor time in user mode from its start to `at_ns`.
        pub user_ns: u64,
        /// Processor time in the kernel from its start to `at_ns`.
        pub system_ns: u64,
    }
}

table! {
    /// A thread of a process with several threads, with its creator and its function; only if the network is recorded.
    /// The row is of its beginning, or of the beginning of the trace. A process' first thread has no row: see
    /// `program`.
    pub struct ThreadStart in "thread_start" by at_ns {
        /// Time when it began or was first seen.
        pub at_ns: u64,
        /// Thread that was started.
        pub thread: Pid,
        /// Process of the thread.
        pub process: Tgid,
        /// Start of the thread.
        pub start_ns: u64,
        /// Thread that created it; 0 if it began before the trace.
        pub creator: Pid,
        /// Name of the function that it runs (glibc's `start_routine`). Without symbols its offset in the file, as
        /// `+0x1f30`; empty if unknown.
        pub routine: String,
        /// File of this function; empty if unknown.
        pub module: String,
    }
}

table! {
    /// The program of a process; only if the network is recorded. There is a row when the process is first seen, and
    /// one after exec. A process that ends within milliseconds may have none.
    pub struct ProcessProgram in "program" by at_ns {
        /// Time when it was first seen, or had begun the program.
        pub at_ns: u64,
        /// Process that runs the program.
        pub process: Tgid,
        /// File of the program.
        pub path: String,
        /// Script, module or class that an interpreter runs (Python, Java and the like); empty for other programs.
        /// Other arguments are not kept: they may be secrets.
        pub script: String,
    }
}
