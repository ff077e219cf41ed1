//! The report of an analysis, ready to be shown or written as JSON.

use std::collections::BTreeMap;

use luc_events::{Cgroup, Dev, Pid, Tgid, Transaction};
use serde::Serialize;

use crate::actor::Actor;
use crate::batching_prediction::BatchingPrediction;
use crate::call_time_parts::{CallTimePart, CallTimeParts};
use crate::disk_contention::reported_figures::DiskContention;
use crate::findings::{Finding, Remedy, Warning};
use crate::late_callers::LateCallers;
use crate::latency_histogram::LatencyDistribution;
use crate::service_latency::ServiceLatency;
use crate::sync_ways::SyncWayCounts;
use crate::thesis_models::{FsyncModel, WriteModel};

/// [`TraceInfo::mode`] of a trace that has sums only.
const SUMMARY_MODE: &str = "summary";

/// Everything. Times are nanoseconds; shares and gains are fractions of 1.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TraceReport {
    /// Version of this structure.
    pub version: u32,
    pub trace: TraceInfo,
    /// Events that the recorder could not keep, by table; empty is good.
    pub lost: BTreeMap<String, u64>,
    /// Data that the analysis had to leave out; all 0 is good.
    pub omitted: OmittedRows,
    pub findings: Vec<Finding>,
    /// Largest predicted gain first.
    pub remedies: Vec<Remedy>,
    /// Options in use, or often advised, that lose data, and other reasons for caution.
    pub warnings: Vec<Warning>,
    /// File systems that were synced or written to or that have a journal, busiest first.
    pub file_systems: Vec<FileSystemReport>,
    pub disks: Vec<DiskReport>,
    /// Latencies of services, most time first; only from a trace of sums with the network.
    pub services: Vec<ServiceLatency>,
    /// fsyncs and calls of each process, most time first.
    pub processes: Vec<ProcessReport>,
    /// Waits by victim and culprit, longest first.
    pub blame: Vec<BlameReport>,
    pub slowest: Vec<SlowSync>,
    /// Time of all threads.
    pub accounts: TimeAccounts,
    /// The part of it that findings are shares of.
    pub working: WorkingTime,
}

impl TraceReport {
    /// Returns whether the trace has only sums.
    pub(crate) fn is_of_sums(&self) -> bool {
        self.trace.mode == SUMMARY_MODE
    }
}

/// Time in which the recorded threads computed or waited for anything but new work. The kernel's threads do not count:
/// others wait for them.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct WorkingTime {
    pub total_ns: u64,
    /// Time on processors, of all threads that count.
    pub computed_ns: u64,
    /// Waits for files and disks, with those for threads that wait for them.
    pub storage_ns: u64,
    /// Part of `storage_ns` that is of threads which wait for others.
    pub behind_storage_ns: u64,
    /// Waits of unknown cause, most of them brief.
    pub unknown_ns: u64,
}

impl WorkingTime {
    /// Returns a part of it as a fraction of 1.
    pub(crate) fn share(&self, ns: u64) -> f64 {
        // A call without recorded waits may count for more.
        ns as f64 / self.total_ns.max(ns).max(1) as f64
    }
}

/// Origin of a trace.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TraceInfo {
    pub host: String,
    pub kernel: String,
    pub processors: u32,
    /// The recorded command; empty without one.
    pub command: String,
    /// Filters in words; empty: none.
    pub filters: String,
    /// `events`, or `summary`: then no call is known, only sums.
    pub mode: String,
    /// Start of the recording, CLOCK_MONOTONIC.
    pub start_ns: u64,
    /// End of the recording, or the last event if the recorder was killed.
    pub end_ns: u64,
    /// Add to a time to get CLOCK_REALTIME.
    pub realtime_offset_ns: u64,
    pub events: u64,
    /// Whether the recorder noted the end.
    pub complete: bool,
}

/// Data that was left out to bound memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct OmittedRows {
    /// Waits inside very long calls that are not in the calls' split.
    pub waits: u64,
    /// Pairs of victim and culprit beyond the first 65,536.
    pub blame: u64,
    /// Calls longer than a second whose waits for commits were not recorded.
    pub syncs_without_waits: u64,
    /// Rows with times that no machine has.
    pub implausible: u64,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct FileSystemReport {
    pub dev: Dev,
    /// The whole disk that it is on; 0:0 for none, several or unknown.
    pub disk: Dev,
    /// Type; empty if unknown.
    pub kind: String,
    pub mount_point: String,
    pub options: String,
    /// Size of the journal in bytes; 0 for none or unknown.
    pub journal_bytes: u64,
    /// Whether ext4's fast_commit is on.
    pub fast_commit: bool,
    /// fsync and the like.
    pub syncs: SyncReport,
    pub commits: CommitReport,
    /// Other calls, by name.
    pub calls: BTreeMap<&'static str, CallKindReport>,
    pub fsync_model: FsyncModel,
    /// Callers that come one after another while the journal rests.
    pub spread: LateCallers,
    pub write_model: WriteModel,
    pub batching: BatchingPrediction,
    /// Holders and their victims, longest first.
    pub held: Vec<HeldTime>,
    /// Losses by victim and part, held up by somebody or not, most first.
    pub lost: Vec<LostTime>,
}

impl FileSystemReport {
    /// Returns whether a call on it or a commit of it is in the trace.
    #[must_use]
    pub fn is_used(&self) -> bool {
        let calls = self.calls.values().map(|call| call.latency.count);
        let commits = [self.commits.full.count, self.commits.fast.count];
        calls.chain(commits).any(|count| count > 0) || self.syncs.latency.count > 0
    }
}

/// Time that one process' calls lost to one thing.
#[derive(Clone, Debug, Serialize)]
pub struct LostTime {
    /// Any part but running.
    pub part: CallTimePart,
    pub victim: Actor,
    pub ns: u64,
}

/// Time that a process' calls lost to another one: to commits that it asked for, to its locks, or to its handle,
/// which kept a transaction locked.
#[derive(Clone, Debug, Serialize)]
pub struct HeldTime {
    /// Part of the victim's time: predecessor, fast commit, write delay, lock-up or a lock.
    pub part: CallTimePart,
    pub victim: Actor,
    /// Actor that asked for the commits, or had the locks or the handle that was open longest. May be the victim
    /// itself.
    pub holder: Actor,
    pub ns: u64,
}

/// Calls of fsync and the like.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SyncReport {
    pub latency: LatencyDistribution,
    /// Calls per second between the first and the last.
    pub per_s: f64,
    pub errors: u64,
    /// Parts of their time; the sum is `latency.total_ns`.
    pub parts: CallTimeParts,
    /// Waits for the own commit, full or fast; without calls that did not wait.
    pub own_commit: LatencyDistribution,
    /// Calls whose waits were recorded and whose parts sum to their time within 1 %.
    pub closed: u64,
    /// Calls by kind; those through io_uring are one.
    pub kinds: BTreeMap<&'static str, u64>,
    /// Calls by their way: all but the first pass by `luc run`.
    pub ways: SyncWayCounts,
    /// Threads that were calling at a time, on average.
    pub concurrent: f64,
    /// Number of calls that found their data already committed.
    pub without_commit: u64,
    /// Threads that called twice or more.
    pub callers: u64,
}

/// Commits of one journal.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CommitReport {
    /// Durations of full commits.
    pub full: LatencyDistribution,
    /// Durations of fast commits.
    pub fast: LatencyDistribution,
    /// Sum of all full commits' times until data was sent out, in nanoseconds.
    pub locking_ns: u64,
    /// Sum of their times to send out data.
    pub flushing_ns: u64,
    /// Sum of their times to write the journal and wait for it and the data.
    pub logging_ns: u64,
    /// Commits that somebody asked for.
    pub asked: u64,
    /// Number of commits that an fsync waited for as its own.
    pub serving: u64,
    /// fsyncs that waited for their own commit.
    pub served: u64,
    pub syncs_per_commit: f64,
    /// Handles in all commits.
    pub handles: u64,
    /// Blocks written to the journal.
    pub blocks_logged: u64,
    /// Nanoseconds that a byte of data adds to a commit; 0 if no effect was seen.
    pub ns_per_data_byte: f64,
    /// Actors that asked for the commits, filled them, or owned data that they waited for.
    pub by: Vec<CommitActor>,
    /// Longest commits, longest first.
    pub longest: Vec<CommitDetail>,
}

/// A commit in full.
#[derive(Clone, Debug, Serialize)]
pub struct CommitDetail {
    pub dev: Dev,
    pub transaction: Transaction,
    pub kind: &'static str,
    pub start_ns: u64,
    pub duration_ns: u64,
    /// Time until data was sent out. A fast commit has 0 here and in the next two.
    pub locking_ns: u64,
    /// Time to send out data.
    pub flushing_ns: u64,
    /// Time to write the journal and wait for it and the data.
    pub logging_ns: u64,
    /// Actor that asked for it first, if any.
    pub asked_by: Option<Actor>,
    /// fsyncs that waited for it as their own.
    pub served: u32,
    /// Blocks written to the journal.
    pub blocks_logged: u32,
    /// Owners of its handles and data.
    pub by: Vec<CommitActor>,
}

/// A process' part in a commit, or in all commits of a journal.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CommitActor {
    #[serde(rename = "party")]
    pub actor: Actor,
    /// Commits it asked for first.
    pub asked: u64,
    pub handles: u64,
    /// Metadata blocks they made dirty.
    pub blocks: u64,
    /// Time that they were open in all.
    pub handles_open_ns: u64,
    /// Bytes of its data that were written while or shortly before commits ran.
    pub data_bytes: u64,
    /// Bytes of data that it made dirty; 0 in a single commit's entry.
    pub dirtied_bytes: u64,
}

/// Calls of one kind on one file system.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CallKindReport {
    pub latency: LatencyDistribution,
    pub errors: u64,
    pub bytes: u64,
    /// Parts of their time.
    pub parts: CallTimeParts,
    /// Calls that met the write delay.
    pub delayed: u64,
    /// Calls that met a locked-up transaction.
    pub locked_up: u64,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct DiskReport {
    pub dev: Dev,
    /// Device time by kind of request.
    pub device: BTreeMap<&'static str, LatencyDistribution>,
    /// Time that requests were queued before.
    pub queued: LatencyDistribution,
    /// Bytes read, written and discarded.
    pub bytes: u64,
    pub errors: u64,
    /// Tasks that share it; `None` if one task alone has used it.
    pub contention: Option<DiskContention>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct ProcessReport {
    #[serde(rename = "party")]
    pub actor: Actor,
    /// fsync and the like: how many and how long in all.
    pub syncs: u64,
    pub sync_ns: u64,
    /// Parts of that time.
    pub sync_parts: CallTimeParts,
    pub calls: u64,
    pub call_ns: u64,
    /// Parts of that time.
    pub call_parts: CallTimeParts,
}

/// The cost of one process' work to another.
#[derive(Clone, Debug, Serialize)]
pub struct BlameReport {
    pub dev: Dev,
    pub victim: Actor,
    /// Owner of the work; may be the victim itself.
    pub culprit: Actor,
    /// Culprit's share of the waits.
    pub waited_ns: u64,
    /// Time that the culprit's data added.
    pub load_ns: u64,
    pub waits: u64,
    /// The commit with the culprit's largest share.
    pub worst_transaction: Transaction,
    /// Culprit's share of that commit.
    pub worst_ns: u64,
}

#[derive(Clone, Debug, Serialize)]
pub struct SlowSync {
    pub thread: Pid,
    #[serde(rename = "party")]
    pub actor: Actor,
    pub dev: Dev,
    pub inode: u64,
    pub kind: &'static str,
    pub enter_ns: u64,
    pub duration_ns: u64,
    /// Parts of that time.
    pub parts: CallTimeParts,
    /// Transactions that it waited for, with times.
    pub commits: Vec<(Transaction, u64)>,
}

/// Time of all threads.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TimeAccounts {
    /// Number of threads; `threads` has at most 1,000 of them.
    pub threads_in_all: u64,
    pub threads: Vec<TimeAccount>,
    pub processes: Vec<TimeAccount>,
    pub cgroups: Vec<TimeAccount>,
}

/// Time of a thread, or of all threads of a process or cgroup.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TimeAccount {
    /// Set in accounts of threads.
    pub thread: Option<Pid>,
    /// Set in accounts of threads and processes.
    pub process: Option<Tgid>,
    pub cgroup: Cgroup,
    /// Name of the thread or the process.
    pub comm: String,
    /// Time from the first sight to the last, summed over threads.
    pub wall_ns: u64,
    /// Time on a processor in user mode; 0 if unknown.
    pub user_ns: u64,
    /// Time on a processor in the kernel; 0 if unknown.
    pub system_ns: u64,
    /// Runnable but not running.
    pub runnable_ns: u64,
    /// Part of `blocked` that is due to files and disks.
    pub storage_ns: u64,
    /// Blocked, by cause, without idleness.
    pub blocked: BTreeMap<&'static str, u64>,
    /// Number of times that its cgroup was frozen for 1 ms or more; for several threads, that of the thread with most.
    pub freezes: u64,
    /// Longest of these times, of any thread.
    pub longest_frozen_ns: u64,
    /// Waiting for work: sleeping, polling, reading pipes and sockets.
    pub idle_ns: u64,
    /// The same by cause.
    pub idle: BTreeMap<&'static str, u64>,
    /// Part of `wall_ns` that is missing; negative if there is too much.
    pub unaccounted_ns: i64,
}
