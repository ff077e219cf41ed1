//! The analysis of a stream of events.
//!
//! Events come in the order of time and stay in a window for a while. A commit is analysed [`COMMIT_DELAY_NS`] after
//! its end, and a call when the [`window`] releases it.

use std::fmt;
use std::ops::ControlFlow;

use luc_events::Event;
use luc_events::codes::SyncKind;
use luc_events::tables::{
    BriefWait, Call, Commit, Data, ExchangeSum, FileSystem, Handle, Lost, Request, Row, Summary,
    Sync, Task, Trace, Wait,
};

use crate::journal::Committed;
use crate::observe::{ExplainedCommit, Observer};
use crate::owners::Owners;
use crate::reach::Way;
use crate::report::Report;
use crate::split::{Piece, Split};

mod calls;
mod ledgers;
mod report;
mod totals;
mod window;

use totals::{Totals, named};
use window::{CallRow, Window};

/// Delay after a commit's end until all its bytes are known.
const COMMIT_DELAY_NS: u64 = 50_000_000;

/// Takes in events and reports. Events must come in the order of their times, as
/// [`Event::time_ns`](luc_events::Event::time_ns) has it; slight disorder does no harm.
#[derive(Default)]
pub struct Analysis<'a> {
    observer: Option<&'a mut dyn Observer>,
    window: Window,
    totals: Totals,
    /// Waits and split of the present call, kept so that their lists are allocated once.
    waits: Vec<Piece>,
    split: Split,
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
    pub fn new(trace: Trace) -> Self {
        let mut analysis = Self::default();
        analysis.totals.threads.begin_at(trace.start_ns);
        analysis.totals.trace = trace;
        analysis
    }

    /// Begins the analysis of a trace with an observer that sees every call.
    pub fn with_observer(trace: Trace, observer: &'a mut dyn Observer) -> Self {
        let mut analysis = Self::new(trace);
        analysis.observer = Some(observer);
        analysis
    }

    /// Takes in any event. Events that the analysis does not need are only counted.
    pub fn add(&mut self, event: Event) {
        match event {
            Event::Sync(row) => self.take(&row, Self::sync),
            Event::Commit(row) => self.take(&row, Self::commit),
            Event::Handle(row) => self.take(&row, Self::handle),
            Event::Wait(row) => self.take(&row, Self::wait),
            Event::BriefWait(row) => self.take(&row, Self::brief_wait),
            Event::Call(row) => self.take(&row, Self::call),
            Event::Request(row) => self.take(&row, Self::request),
            Event::Data(row) => self.take(&row, Self::data),
            Event::Task(row) => self.take(&row, Self::task),
            Event::FileSystem(row) => self.take(&row, Self::file_system),
            Event::Lost(row) => self.take(&row, Self::lost),
            Event::Summary(row) => self.take(&row, Self::summary),
            Event::ExchangeSum(row) => self.take(&row, Self::exchange_sum),
            // These matter only to the analysis of several hosts.
            Event::Asleep(_)
            | Event::ThreadStart(_)
            | Event::Program(_)
            | Event::Counter(_)
            | Event::Connection(_)
            | Event::Message(_)
            | Event::Packet(_)
            | Event::Token(_)
            | Event::ClockSample(_)
            | Event::Stack(_)
            | Event::Trace(_) => self.totals.rows.count += 1,
        }
    }

    /// Reports on the events so far, without the calls of the last 100 ms.
    pub fn report(&self) -> Report {
        report::report(&self.totals)
    }

    /// Analyses the rest of the window, and reports.
    pub fn finish(mut self) -> Report {
        self.advance(u64::MAX);
        for sums in self.totals.file_systems.values_mut() {
            sums.journal.finish();
        }
        self.show_settled();
        self.report()
    }

    /// Shows the commits that no call waits for any more.
    fn show_settled(&mut self) {
        let file_systems = self.totals.file_systems.values_mut();
        let over: Vec<Committed> = file_systems
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

    /// Counts a row, analyses the calls that are due at its time, and adds it to the sums. Implausible rows are left out.
    pub(crate) fn take<T: Row>(&mut self, row: &T, add: impl FnOnce(&mut Self, &T)) {
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
            let show = |commit: &Committed, owners: &Owners| {
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

    pub(crate) fn wait(&mut self, row: &Wait) {
        self.totals.threads.add_wait(row);
        if let Some(observer) = &mut self.observer {
            observer.wait(row);
        }
    }

    pub(crate) fn brief_wait(&mut self, row: &BriefWait) {
        self.totals.threads.add_brief_wait(row);
    }

    pub(crate) fn task(&mut self, row: &Task) {
        self.totals.threads.add_task(row);
        if let Some(observer) = &mut self.observer {
            observer.task(row);
        }
    }

    pub(crate) fn file_system(&mut self, row: &FileSystem) {
        if let Some(observer) = &mut self.observer {
            observer.file_system(row);
        }
        let sums = self.totals.file_systems.entry(row.dev).or_default();
        sums.journal.block_bytes = u64::from(row.block_bytes);
        sums.row = Some(row.clone());
    }

    pub(crate) fn handle(&mut self, row: &Handle) {
        let owner = self.totals.owners.id(row.process, row.cgroup);
        let sums = self.totals.file_systems.entry(row.dev).or_default();
        sums.journal.add_handle(row, owner);
    }

    pub(crate) fn data(&mut self, row: &Data) {
        let totals = &mut self.totals;
        totals.traffic.add(row, &mut totals.owners);
    }

    pub(crate) fn commit(&mut self, row: &Commit) {
        let mut row = row.clone();
        for at_ns in [&mut row.start_ns, &mut row.flushing_ns, &mut row.logging_ns] {
            *at_ns = (*at_ns).min(row.end_ns);
        }
        self.window.expect(row.end_ns);
        let sums = self.totals.file_systems.entry(row.dev).or_default();
        sums.journal.add_commit(row);
    }

    pub(crate) fn request(&mut self, row: &Request) {
        let totals = &mut self.totals;
        let disk = totals.disks.entry(row.dev).or_default();
        disk.add(row, &totals.threads);
    }

    pub(crate) fn lost(&mut self, row: &Lost) {
        *self.totals.rows.lost.entry(row.place.clone()).or_default() += row.count;
    }

    pub(crate) fn summary(&mut self, row: &Summary) {
        self.totals.summary.add(row);
    }

    pub(crate) fn exchange_sum(&mut self, row: &ExchangeSum) {
        let start_ns = self.totals.trace.start_ns;
        self.totals.services.add(row, start_ns);
    }

    pub(crate) fn sync(&mut self, row: &Sync) {
        let (enter_ns, exit_ns) = (row.enter_ns.min(row.exit_ns), row.exit_ns);
        let totals = &mut self.totals;
        let owner = totals.owners.id(row.process, row.cgroup);
        let way = Way::of(row.kind, totals.threads.thread_comm(row.thread));
        let thread = (totals.threads).see(row.thread, row.process, row.cgroup, enter_ns);
        let call = CallRow::Sync(Sync { enter_ns, ..row.clone() });
        let inside = self.window.push(call, enter_ns, owner, thread);
        let cycle = thread.end_cycle(exit_ns, inside);
        let sums = totals.file_systems.entry(row.dev).or_default();
        sums.syncs.add(row, way, enter_ns);
        if way == Way::Call
            && let Some((thinking_ns, cpu_ns)) = cycle
        {
            sums.callers.cycle(thinking_ns, cpu_ns);
        }
    }

    pub(crate) fn call(&mut self, row: &Call) {
        let enter_ns = row.enter_ns.min(row.exit_ns);
        let totals = &mut self.totals;
        let owner = totals.owners.id(row.process, row.cgroup);
        let thread = (totals.threads).see(row.thread, row.process, row.cgroup, enter_ns);
        let call = CallRow::Call(Call { enter_ns, ..row.clone() });
        let _ = self.window.push(call, enter_ns, owner, thread);
    }
}

/// Returns whether a call of this kind ends only when a transaction is committed.
fn needs_commit(kind: SyncKind) -> bool {
    kind != SyncKind::SyncFileRange
}
