//! Seeing every call with its split.

use std::ops::ControlFlow;

use luc_events::tables::{Call, Commit, FileSystem, Sync, Task, Wait};
use luc_events::{Cgroup, Tgid, Transaction};

use crate::parts::{Part, Parts};
use crate::report::CommitDetail;

#[derive(Debug)]
pub struct ExplainedSync<'a> {
    pub row: &'a Sync,
    /// What its time was made of.
    pub parts: &'a Parts,
    /// The same in the order of time, from `enter_ns` on, in nanoseconds.
    pub pieces: &'a [(Part, u64)],
    /// The commit it needed.
    pub own: Option<&'a Commit>,
    /// The commits it waited for, and how long, in order.
    pub waited: &'a [(Transaction, u64)],
    /// Whose work these waits were for, in nanoseconds, largest first; may include the caller.
    pub culprits: &'a [(Tgid, Cgroup, u64)],
}

/// One other call, explained.
#[derive(Debug)]
pub struct ExplainedCall<'a> {
    pub row: &'a Call,
    /// What its time was made of.
    pub parts: &'a Parts,
    /// The same in the order of time, from `enter_ns` on, in nanoseconds.
    pub pieces: &'a [(Part, u64)],
    /// The commits it waited for, and how long, in order.
    pub waited: &'a [(Transaction, u64)],
}

#[derive(Debug)]
pub struct ExplainedCommit<'a> {
    pub row: &'a Commit,
    /// Metadata and data bytes in it, by owner, in no order.
    pub bytes: &'a [(Tgid, Cgroup, u64)],
    /// The data among them: written while it ran, or shortly before.
    pub data: &'a [(Tgid, Cgroup, u64)],
}

/// Sees what the analysis sees. Each method does nothing unless implemented.
pub trait Observer {
    /// An fsync or the like.
    fn sync(&mut self, sync: &ExplainedSync<'_>) {
        let _ = sync;
    }

    /// A commit; always before the calls that waited for it.
    fn commit(&mut self, commit: &ExplainedCommit<'_>) {
        let _ = commit;
    }

    /// A commit after all calls that waited for it, when everything about it is known.
    fn settled(&mut self, commit: &CommitDetail) {
        let _ = commit;
    }

    /// Whether [`Observer::settled`] is of use.
    fn wants_settled(&self) -> bool {
        false
    }

    fn call(&mut self, call: &ExplainedCall<'_>) {
        let _ = call;
    }

    /// A wait, inside a call or not. It comes about 0.1 s before the call that it lies in. From a stored trace it has
    /// no stack, device and transaction.
    fn wait(&mut self, row: &Wait) {
        let _ = row;
    }

    /// A thread's name, process and parent; roughly before the thread's other rows.
    fn task(&mut self, row: &Task) {
        let _ = row;
    }

    /// A mounted file system.
    fn file_system(&mut self, row: &FileSystem) {
        let _ = row;
    }

    /// Called every few milliseconds while a stored trace is read: `read` of its `in_all` rows have been read.
    /// `Break` ends the analysis, and the report covers the rows until then.
    fn progress(&mut self, read: u64, in_all: u64) -> ControlFlow<()> {
        let _ = (read, in_all);
        ControlFlow::Continue(())
    }
}
