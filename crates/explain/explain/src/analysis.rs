//! The analysis of a stream of events.
//!
//! Events come in the order of time and stay in a window for a while. A commit is analysed [`COMMIT_DELAY_NS`] after
//! its end, and a call when the [`pending_calls`] releases it.

use std::borrow::Cow;
use std::fmt;
use std::ops::ControlFlow;

use luc_events::event_kinds::SyncKind;
use luc_events::tables::{
    AsleepThread, BlockRequest, BriefWait, ExchangeSum, FileCall, FileData, FsyncCall,
    JournalCommit, JournalHandle, LostEvents, MountedFileSystem, OffCpuWait, SummaryCount,
    TableRow, ThreadInfo, TraceDescription,
};
use luc_events::{TraceEvent, WaitCause};

use crate::analysis_observer::{AnalysisObserver, ExplainedCommit};
use crate::call_split::{CallSplit, SplitWait};
use crate::journal_history::CommitContent;
use crate::owners::Owners;
use crate::report::TraceReport;
use crate::sync_ways::SyncWay;

mod call_analysis;
mod loss_ledgers;
mod pending_calls;
mod report;
mod trace_totals;

use pending_calls::{CallRow, PendingCalls};
use trace_totals::{TraceTotals, named};

/// Delay after a commit's end until all its bytes are known.
const COMMIT_DELAY_NS: u64 = 50_000_000;

/// Takes in events and reports. Events must come in the order of their times, as
/// [`TraceEvent::time_ns`](luc_events::TraceEvent::time_ns) has it; slight disorder does no harm.
#[derive(Default)]
pub struct Analysis<'a> {
    observer: Option<&'a mut dyn AnalysisObserver>,
    window: PendingCalls,
    totals: TraceTotals,
    /// Waits and split of the present call, kept so that their lists are allocated once.
    waits: Vec<SplitWait>,
    split: CallSplit,
}

impl fmt::Debug for Analysis<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Analysis")
            .field("now_ns", &self.totals.rows.latest_ns)
            .field("events", &self.totals.rows.count)
            .field("pending", &self.window.len())
            .finish_non_exhaustive()
    }
}

impl<'a> Analysis<'a> {
    /// Begins the analysis of a trace.
    pub fn new(trace: TraceDescription) -> Self {
        let mut analysis = Self::default();
        analysis.totals.threads.begin_at(trace.start_ns);
        analysis.totals.roots.begin_at(trace.start_ns);
        analysis.totals.trace = trace;
        analysis
    }

    /// Begins the analysis of a trace with an observer that sees every call.
    pub fn with_observer(trace: TraceDescription, observer: &'a mut dyn AnalysisObserver) -> Self {
        let mut analysis = Self::new(trace);
        analysis.observer = Some(observer);
        analysis
    }

    /// Takes in any event. Events that the analysis does not need are only counted.
    pub fn add(&mut self, event: TraceEvent) {
        match event {
            TraceEvent::FsyncCall(row) => self.take(&row, Self::sync),
            TraceEvent::JournalCommit(row) => self.take(&row, Self::commit),
            TraceEvent::JournalHandle(row) => self.take(&row, Self::handle),
            TraceEvent::OffCpuWait(row) => self.take(&row, Self::wait),
            TraceEvent::BriefWait(row) => self.take(&row, Self::brief_wait),
            TraceEvent::FileCall(row) => self.take(&row, Self::call),
            TraceEvent::BlockRequest(row) => self.take(&row, Self::request),
            TraceEvent::FileData(row) => self.take(&row, Self::data),
            TraceEvent::ThreadInfo(row) => self.take(&row, Self::task),
            TraceEvent::MountedFileSystem(row) => self.take(&row, Self::file_system),
            TraceEvent::LostEvents(row) => self.take(&row, Self::lost),
            TraceEvent::SummaryCount(row) => self.take(&row, Self::summary),
            TraceEvent::ExchangeSum(row) => self.take(&row, Self::exchange_sum),
            // These matter only to the analysis of several hosts.
            TraceEvent::AsleepThread(row) => self.take(&row, Self::asleep),
            TraceEvent::ThreadStart(_)
            | TraceEvent::ProcessProgram(_)
            | TraceEvent::HardwareCount(_)
            | TraceEvent::SocketConnection(_)
            | TraceEvent::ConnectionMessage(_)
            | TraceEvent::TcpPacket(_)
            | TraceEvent::RequestToken(_)
            | TraceEvent::ClockSample(_)
            | TraceEvent::KernelStack(_)
            | TraceEvent::TraceDescription(_) => self.totals.rows.count += 1,
        }
    }

    /// Reports on the events so far, without the calls of the last 100 ms.
    pub fn report(&self) -> TraceReport {
        report::report(&self.totals)
    }

    /// Analyses the rest of the window, and reports.
    pub fn finish(mut self) -> TraceReport {
        self.advance(u64::MAX);
        self.totals.roots.finish();
        for sums in self.totals.file_systems.values_mut() {
            sums.journal.finish();
        }
        self.show_settled();
        self.report()
    }

    /// Shows the commits that no call waits for any more.
    fn show_settled(&mut self) {
        let file_systems = self.totals.file_systems.values_mut();
        let over: Vec<CommitContent> = file_systems
            .filter_map(|sums| sums.journal.over.as_mut())
            .flat_map(std::mem::take)
            .collect();
        for commit in &over {
            let detail = report::detail(&self.totals, commit);
            if let Some(observer) = &mut self.observer {
                observer.settled(&detail);
            }
        }
    }

    /// Counts a row, analyses the calls that are due at its time, and adds it to the sums. Implausible rows are left
    /// out.
    pub(crate) fn take<T: TableRow>(&mut self, row: &T, add: impl FnOnce(&mut Self, &T)) {
        if !self.totals.rows.add(row) {
            return;
        }
        let now_ns = self.totals.rows.latest_ns;
        if self.window.is_due(now_ns) {
            self.advance(now_ns);
        }
        add(self, row);
    }

    /// Passes the number of read events to the observer. Returns `Break` if it wants no more.
    pub(crate) fn progress(&mut self, in_all: u64) -> ControlFlow<()> {
        match &mut self.observer {
            Some(observer) => observer.progress(self.totals.rows.count, in_all),
            None => ControlFlow::Continue(()),
        }
    }

    /// Analyses the commits and calls that have waited long enough at `now_ns`.
    fn advance(&mut self, now_ns: u64) {
        let commits_until_ns =
            if now_ns == u64::MAX { now_ns } else { now_ns - COMMIT_DELAY_NS.min(now_ns) };
        let wants_settled = (self.observer.as_ref()).is_some_and(|seen| seen.wants_settled());
        let totals = &mut self.totals;
        for sums in totals.file_systems.values_mut() {
            if wants_settled {
                sums.journal.over.get_or_insert_default();
            }
            let observer = &mut self.observer;
            let show = |commit: &CommitContent, owners: &Owners| {
                if let Some(observer) = observer {
                    let (bytes, data) = (named(&commit.bytes, owners), named(&commit.data, owners));
                    observer.commit(&ExplainedCommit {
                        row: &commit.row,
                        bytes: &bytes,
                        data: &data,
                    });
                }
            };
            sums.journal.settle(commits_until_ns, &totals.traffic, &mut totals.owners, show);
        }
        self.show_settled();
        while let Some((row, owner)) = self.window.pop(now_ns, &mut self.waits) {
            match row {
                CallRow::Sync(row) => self.explain_sync(row, owner),
                CallRow::Call(row) => self.explain_call(&row, owner),
            }
        }
    }

    pub(crate) fn wait(&mut self, row: &OffCpuWait) {
        let found = self.find_cause(row);
        let row = &if found == row.cause {
            Cow::Borrowed(row)
        } else {
            Cow::Owned(OffCpuWait { cause: found, ..row.clone() })
        };
        self.totals.threads.add_wait(row);
        self.totals.roots.add_wait(row, &self.totals.threads);
        if let Some(observer) = &mut self.observer {
            observer.wait(row);
        }
    }

    /// Finds the cause of a wait. A file system's kind and the disks' requests may tell more than the thread's stack.
    fn find_cause(&self, row: &OffCpuWait) -> WaitCause {
        let is_for_requests =
            matches!(row.cause, WaitCause::Device | WaitCause::DataWriteback | WaitCause::AsyncIo);
        if !is_for_requests {
            return row.cause;
        }
        let totals = &self.totals;
        let file_system = totals.file_systems.get(&row.dev).and_then(|sums| sums.row.as_ref());
        match file_system {
            Some(mounted) if mounted.is_served() && row.cause != WaitCause::AsyncIo => {
                WaitCause::FileServer
            }
            _ => totals.in_flight.find_cause(row, file_system.map(|mounted| mounted.disk)),
        }
    }

    /// Takes in a sleep that the end of the trace cuts, as a wait until then.
    pub(crate) fn asleep(&mut self, row: &AsleepThread) {
        let trace = &self.totals.trace;
        let off_ns = row.since_ns.max(trace.start_ns);
        // On a whole machine a job that was stopped long ago is nobody's trouble.
        let is_of_all = trace.filters.is_empty() && trace.command.is_empty();
        let is_at_rest = is_of_all
            && off_ns > row.since_ns
            && matches!(row.cause, WaitCause::Stopped | WaitCause::Frozen);
        if row.since_ns == 0 || off_ns >= row.at_ns || is_at_rest {
            return;
        }
        self.wait(&OffCpuWait {
            thread: row.thread,
            process: row.process,
            cgroup: row.cgroup,
            off_ns,
            woken_ns: row.at_ns,
            on_ns: row.at_ns,
            state: row.state,
            cause: row.cause,
            stack: row.stack,
            waker: row.holder,
            ..OffCpuWait::default()
        });
    }

    pub(crate) fn brief_wait(&mut self, row: &BriefWait) {
        self.totals.threads.add_brief_wait(row);
    }

    pub(crate) fn task(&mut self, row: &ThreadInfo) {
        self.totals.threads.add_task(row);
        self.totals.roots.add_task(row);
        if let Some(observer) = &mut self.observer {
            observer.task(row);
        }
    }

    pub(crate) fn file_system(&mut self, row: &MountedFileSystem) {
        if let Some(observer) = &mut self.observer {
            observer.file_system(row);
        }
        let sums = self.totals.file_systems.entry(row.dev).or_default();
        sums.journal.block_bytes = u64::from(row.block_bytes);
        sums.row = Some(row.clone());
    }

    pub(crate) fn handle(&mut self, row: &JournalHandle) {
        let owner = self.totals.owners.id(row.process, row.cgroup);
        let sums = self.totals.file_systems.entry(row.dev).or_default();
        sums.journal.add_handle(row, owner);
    }

    pub(crate) fn data(&mut self, row: &FileData) {
        let totals = &mut self.totals;
        totals.traffic.add(row, &mut totals.owners);
    }

    pub(crate) fn commit(&mut self, row: &JournalCommit) {
        let mut row = row.clone();
        for at_ns in [&mut row.start_ns, &mut row.flushing_ns, &mut row.logging_ns] {
            *at_ns = (*at_ns).min(row.end_ns);
        }
        self.window.expect(row.end_ns);
        let sums = self.totals.file_systems.entry(row.dev).or_default();
        sums.journal.add_commit(row);
    }

    pub(crate) fn request(&mut self, row: &BlockRequest) {
        let totals = &mut self.totals;
        totals.in_flight.add(row);
        let disk = totals.disks.entry(row.dev).or_default();
        disk.add(row, &totals.threads);
    }

    pub(crate) fn lost(&mut self, row: &LostEvents) {
        *self.totals.rows.lost.entry(row.place.clone()).or_default() += row.count;
    }

    pub(crate) fn summary(&mut self, row: &SummaryCount) {
        self.totals.summary.add(row);
    }

    pub(crate) fn exchange_sum(&mut self, row: &ExchangeSum) {
        let start_ns = self.totals.trace.start_ns;
        self.totals.services.add(row, start_ns);
    }

    pub(crate) fn sync(&mut self, row: &FsyncCall) {
        let (enter_ns, exit_ns) = (row.enter_ns.min(row.exit_ns), row.exit_ns);
        let totals = &mut self.totals;
        let owner = totals.owners.id(row.process, row.cgroup);
        let way = SyncWay::of(row.kind, totals.threads.thread_comm(row.thread));
        let thread = (totals.threads).see(row.thread, row.process, row.cgroup, enter_ns);
        let call = CallRow::Sync(FsyncCall { enter_ns, ..row.clone() });
        let inside = self.window.push(call, enter_ns, owner, thread);
        let cycle = thread.end_cycle(exit_ns, inside);
        let sums = totals.file_systems.entry(row.dev).or_default();
        sums.syncs.add(row, way, enter_ns);
        if way == SyncWay::Call
            && let Some((thinking_ns, cpu_ns)) = cycle
        {
            sums.callers.cycle(thinking_ns, cpu_ns);
        }
    }

    pub(crate) fn call(&mut self, row: &FileCall) {
        let enter_ns = row.enter_ns.min(row.exit_ns);
        let totals = &mut self.totals;
        let owner = totals.owners.id(row.process, row.cgroup);
        let thread = (totals.threads).see(row.thread, row.process, row.cgroup, enter_ns);
        let call = CallRow::Call(FileCall { enter_ns, ..row.clone() });
        let _ = self.window.push(call, enter_ns, owner, thread);
    }
}

/// Returns whether a call of this kind ends only when a transaction is committed.
fn needs_commit(kind: SyncKind) -> bool {
    kind != SyncKind::SyncFileRange
}
