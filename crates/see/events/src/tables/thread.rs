//! What threads did: waits, calls, and who they are.

use super::table;
use crate::codes::{CallKind, WaitState};
use crate::{Cause, Cgroup, ConnectionId, Dev, Inode, Pid, StackId, Tgid, Transaction};

table! {
    /// One interval in which a thread was not on a processor. Complete at `on_ns`.
    pub struct Wait in "wait" by on_ns {
        /// The thread.
        pub thread: Pid,
        /// Its process.
        pub process: Tgid,
        /// Its cgroup.
        pub cgroup: Cgroup,
        /// When it left its processor.
        pub off_ns: u64,
        /// When it was woken and became runnable; 0: not seen, or it was runnable all along.
        pub woken_ns: u64,
        /// When it was on a processor again. With `record --fleet` also when the trace ends, for a thread that is awake
        /// then and was not seen on a processor since `off_ns`.
        pub on_ns: u64,
        /// In which state it left.
        pub state: WaitState,
        /// Why, by its kernel stack.
        pub cause: Cause,
        /// That stack; 0: not recorded.
        pub stack: StackId,
        /// The thread that woke it; 0: not seen, or a timer's interrupt.
        pub waker: Pid,
        /// The device that it waited for, if known.
        pub dev: Dev,
        /// The transaction that it waited for, if known.
        pub transaction: Transaction,
        /// The processor that it was on then: its number and 1; 0: not recorded, as in traces of schema versions before 5
        /// and of waits that end with the trace.
        pub processor: u32,
    }
}

table! {
    /// Brief waits of one thread and one cause, summed: waits below a threshold (1 ms, in the
    /// recorder) whose cause was told without a stack and that were not inside a sync. They are in no row
    /// of `wait`, so that an account of a thread needs both. Where the network is recorded, only sleeps
    /// for a time and waits for a processor are summed: who ended another wait tells for which request it
    /// worked. Complete at `until_ns`.
    pub struct BriefWait in "brief_wait" by until_ns {
        /// The thread.
        pub thread: Pid,
        /// Its process.
        pub process: Tgid,
        /// Its cgroup.
        pub cgroup: Cgroup,
        /// When the first of them began.
        pub since_ns: u64,
        /// When the sum was taken: later ones are in another.
        pub until_ns: u64,
        /// Why.
        pub cause: Cause,
        /// How many.
        pub count: u64,
        /// From leaving the processor to being woken, in all.
        pub blocked_ns: u64,
        /// From being woken to being on a processor again, in all; for `preempted` all of it.
        pub runnable_ns: u64,
    }
}

/// [`Asleep::call`] of a thread in no system call, or in one that is not known.
pub const NO_CALL: u32 = u32::MAX;

table! {
    /// A thread that slept when the trace began or ended, where the network is recorded: since when, and for what.
    /// Its sleep has no row of `wait` before the trace began; one that ends later has its row from then on.
    pub struct Asleep in "asleep" by at_ns {
        /// When it was looked at: just after the trace began, or when it ended.
        pub at_ns: u64,
        /// The thread.
        pub thread: Pid,
        /// Its process.
        pub process: Tgid,
        /// Its cgroup.
        pub cgroup: Cgroup,
        /// When it left its processor; 0: not known. Before the trace by the scheduler's counts, which may be some
        /// milliseconds off.
        pub since_ns: u64,
        /// In which state it slept.
        pub state: WaitState,
        /// Why, by its system call or its kernel stack.
        pub cause: Cause,
        /// That stack; 0: not recorded.
        pub stack: StackId,
        /// The number of the system call that it was in, on the host's architecture; 4294967295: in none, or not known.
        pub call: u32,
        /// That call's first argument: of a read or a receive the file, of a futex its address.
        pub argument: u64,
        /// The connection that it waited on; 0: on none, or on several, as `poll` does.
        pub connection: ConnectionId,
        /// The thread that had the lock that it waited for, where the lock says so: a mutex of glibc, or one with priority
        /// inheritance, in the process' own memory; 0: not known.
        pub holder: Pid,
    }
}

table! {
    /// One file-system call that is no sync, and that took part in a journal's transaction or waited uninterruptibly:
    /// others cannot be why anybody waits. So a read or an overwrite in memory has no row, and how many writes have one
    /// depends on the kernel: ext4 of 6.1 begins a handle for each write, that of 6.12 only for one that dirties a page
    /// anew or extends the file. Complete at `exit_ns`.
    pub struct Call in "call" by exit_ns {
        /// The calling thread.
        pub thread: Pid,
        /// Its process.
        pub process: Tgid,
        /// Its cgroup.
        pub cgroup: Cgroup,
        /// The call.
        pub kind: CallKind,
        /// When the system call began.
        pub enter_ns: u64,
        /// When it ended.
        pub exit_ns: u64,
        /// The file system, if known.
        pub dev: Dev,
        /// The file, if known.
        pub inode: Inode,
        /// Bytes written or read; 0 for other calls.
        pub bytes: u64,
        /// 0, or the error as a positive number.
        pub errno: u32,
    }
}

table! {
    /// A thread's name, family and processor times, as of `at_ns`: one row when it is first seen, one
    /// after exec, one when it exits or the trace ends.
    pub struct Task in "task" by at_ns {
        /// When the row was taken.
        pub at_ns: u64,
        /// The thread.
        pub thread: Pid,
        /// Its process.
        pub process: Tgid,
        /// Its process' parent.
        pub parent: Tgid,
        /// Its name (`comm`).
        pub comm: String,
        /// Its cgroup.
        pub cgroup: Cgroup,
        /// When it started.
        pub start_ns: u64,
        /// When it exited; 0: it had not.
        pub exit_ns: u64,
        /// Processor time in user mode from its start to `at_ns`.
        pub user_ns: u64,
        /// Processor time in the kernel from its start to `at_ns`.
        pub system_ns: u64,
    }
}

table! {
    /// A thread of a process with several, as it began or when the trace did, where the network is recorded: which thread
    /// made it, and which function it runs. A process' first thread has no row: see `program`.
    pub struct ThreadStart in "thread_start" by at_ns {
        /// When it began or was first seen.
        pub at_ns: u64,
        /// The thread.
        pub thread: Pid,
        /// Its process.
        pub process: Tgid,
        /// When it started.
        pub start_ns: u64,
        /// The thread that made it; 0: it began before the trace.
        pub creator: Pid,
        /// The function that it runs (glibc's `start_routine`): its name; without symbols its place in the file, as
        /// `+0x1f30`; empty: not known.
        pub routine: String,
        /// The file that this function is in; empty: not known.
        pub module: String,
    }
}

table! {
    /// What a process runs, where the network is recorded: one row when it is first seen, one after exec. A process that
    /// ends within milliseconds may have none.
    pub struct Program in "program" by at_ns {
        /// When it was first seen, or had begun the program.
        pub at_ns: u64,
        /// The process.
        pub process: Tgid,
        /// The program's file.
        pub path: String,
        /// Of an interpreter of Python, Java and the like: the script, module or class that it runs; else empty. Other
        /// arguments are not kept: they may be secrets.
        pub script: String,
    }
}
