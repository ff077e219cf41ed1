//! Observers, which see every call with its split.

use std::ops::ControlFlow;

use luc_events::tables::{
    FileCall, FsyncCall, JournalCommit, MountedFileSystem, OffCpuWait, ThreadInfo,
};
use luc_events::{Cgroup, Tgid, Transaction};

use crate::call_time_parts::{CallTimePart, CallTimeParts};
use crate::report::CommitDetail;

#[derive(Debug)]
pub struct ExplainedSync<'a> {
    pub row: &'a FsyncCall,
    /// Parts of its time.
    pub parts: &'a CallTimeParts,
    /// The parts in order from `enter_ns` on, in nanoseconds.
    pub pieces: &'a [(CallTimePart, u64)],
    /// The commit that it needed.
    pub own: Option<&'a JournalCommit>,
    /// The commits that it waited for, with times, in order.
    pub waited: &'a [(Transaction, u64)],
    /// Owners of the work that these waits were for, in nanoseconds, largest first. May include the caller.
    pub culprits: &'a [(Tgid, Cgroup, u64)],
}

/// A call other than an fsync.
#[derive(Debug)]
pub struct ExplainedCall<'a> {
    pub row: &'a FileCall,
    /// Parts of its time.
    pub parts: &'a CallTimeParts,
    /// The parts in order from `enter_ns` on, in nanoseconds.
    pub pieces: &'a [(CallTimePart, u64)],
    /// The commits that it waited for, with times, in order.
    pub waited: &'a [(Transaction, u64)],
}

#[derive(Debug)]
pub struct ExplainedCommit<'a> {
    pub row: &'a JournalCommit,
    /// Metadata and data bytes in it, by owner, in no order.
    pub bytes: &'a [(Tgid, Cgroup, u64)],
    /// The data among these bytes: written while the commit ran, or shortly before.
    pub data: &'a [(Tgid, Cgroup, u64)],
}

/// Observer of an analysis. The methods do nothing by default.
pub trait AnalysisObserver {
    /// Sees an fsync or the like.
    fn sync(&mut self, _sync: &ExplainedSync<'_>) {}

    /// Sees a commit, always before the calls that waited for it.
    fn commit(&mut self, _commit: &ExplainedCommit<'_>) {}

    /// Sees a commit after all calls that waited for it, when it is fully known.
    fn settled(&mut self, _commit: &CommitDetail) {}

    /// Returns whether the observer uses [`AnalysisObserver::settled`].
    fn wants_settled(&self) -> bool {
        false
    }

    fn call(&mut self, _call: &ExplainedCall<'_>) {}

    /// Sees a wait, inside a call or not, about 0.1 s before the call around it. From a stored trace it has no stack,
    /// device and transaction.
    fn wait(&mut self, _row: &OffCpuWait) {}

    /// Sees a thread's name, process and parent, roughly before the thread's other rows.
    fn task(&mut self, _row: &ThreadInfo) {}

    /// Sees a mounted file system.
    fn file_system(&mut self, _row: &MountedFileSystem) {}

    /// Called every few milliseconds while a stored trace is read: `read` of its `in_all` rows have been read.
    /// `Break` ends the analysis, and the report covers the rows until then.
    fn progress(&mut self, _read: u64, _in_all: u64) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}
