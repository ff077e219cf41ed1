//! The analysis: takes in events in the order of time, keeps a window of them, and reports.
//!
//! A call is complete when it returns, but what it waited for may be noted a little later: a commit's
//! last tracepoint, the bytes of the current 10 ms. So calls wait in a queue until [`CALL_DELAY_NS`] later,
//! commits until [`COMMIT_DELAY_NS`] later, and are then taken in for good.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::ops::ControlFlow;

use luc_events::codes::{CallKind, RequestKind, SyncKind};
use luc_events::tables::{
    BriefWait, Call, Commit, Data, FileSystem, Handle, Lost, Request, Row, Summary, Sync, Task,
    Trace, Wait,
};
use luc_events::{Cgroup, Dev, Event, Tgid, Transaction};

use crate::blame::{Ledger, Waited};
use crate::fast::FastMap;
use crate::file_system::FileSystemSums;
use crate::histogram::Histogram;
use crate::holders::{Holders, Names};
use crate::journal::Committed;
use crate::observe::{ExplainedCall, ExplainedCommit, ExplainedSync, Observer};
use crate::owners::{OwnerId, Owners};
use crate::parts::{Part, Parts};
use crate::report::Report;
use crate::service::Service;
use crate::split::{Piece, Span, Split};
use crate::summary::Sums;
use crate::thesis::{Class, classify};
use crate::threads::Threads;
use crate::traffic::{Shares, Traffic};

mod calls;
mod pending;
mod report;

use pending::{CALL_DELAY_NS, CallRow, Pending, STRIDE_NS};

/// How long a commit's bytes may still come in.
const COMMIT_DELAY_NS: u64 = 50_000_000;
/// A call without any wait is taken as blocked unseen if it lasted this long.
const UNSEEN_NS: u64 = 1_000_000_000;
/// Times from here on are not those of a machine (36 years of uptime): such a row is left out.
const IMPLAUSIBLE_NS: u64 = 1 << 60;
/// How many of the longest fsyncs are reported.
const SLOWEST: usize = 50;

/// One process' calls.
#[derive(Debug, Default)]
struct OwnerSums {
    syncs: u64,
    sync_ns: u64,
    sync_parts: Parts,
    calls: u64,
    call_ns: u64,
    call_parts: Parts,
}

/// One disk's requests.
#[derive(Debug, Default)]
struct DiskSums {
    by_kind: BTreeMap<RequestKind, Histogram>,
    queued: Histogram,
    service: Service,
    bytes: u64,
    errors: u64,
}

/// A long fsync.
#[derive(Clone, Debug)]
struct Slow {
    row: Sync,
    owner: OwnerId,
    parts: Parts,
    commits: Vec<(Transaction, u64)>,
}

impl Slow {
    fn length_ns(&self) -> u64 {
        self.row.exit_ns.saturating_sub(self.row.enter_ns)
    }
}

/// Takes in events and reports. Events must come in the order of their times, as
/// [`Event::time_ns`](luc_events::Event::time_ns) has it; a little disorder does no harm.
#[derive(Default)]
pub struct Analysis<'a> {
    trace: Trace,
    observer: Option<&'a mut dyn Observer>,
    now_ns: u64,
    next_due_ns: u64,
    events: u64,
    lost: BTreeMap<String, u64>,
    owners: Owners,
    threads: Threads,
    traffic: Traffic,
    ledger: Ledger,
    holders: Holders,
    file_systems: FastMap<Dev, FileSystemSums>,
    disks: FastMap<Dev, DiskSums>,
    by_owner: FastMap<OwnerId, OwnerSums>,
    pending: VecDeque<Pending>,
    /// The waits in the calls of `pending`, call by call.
    waits: VecDeque<Piece>,
    /// Those of the call that is being taken in, and its split.
    call_waits: Vec<Piece>,
    split: Split,
    /// Whose bytes were written during it.
    written_meanwhile: Shares,
    slowest: Vec<Slow>,
    summary: Sums,
    syncs_without_waits: u64,
    implausible: u64,
}

impl fmt::Debug for Analysis<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Analysis")
            .field("now_ns", &self.now_ns)
            .field("events", &self.events)
            .field("pending", &self.pending.len())
            .finish_non_exhaustive()
    }
}

impl<'a> Analysis<'a> {
    /// Begins the analysis of a trace with this description.
    pub fn new(trace: Trace) -> Self {
        let mut analysis = Self {
            trace,
            next_due_ns: u64::MAX,
            ..Self::default()
        };
        analysis.threads.begin_at(analysis.trace.start_ns);
        analysis
    }

    /// The same, with someone who sees every call.
    pub fn with_observer(trace: Trace, observer: &'a mut dyn Observer) -> Self {
        let mut analysis = Self::new(trace);
        analysis.observer = Some(observer);
        analysis
    }

    /// Takes in any event; tables that the analysis does not need are only counted.
    pub fn add(&mut self, event: Event) {
        match event {
            Event::Sync(row) => self.sync(&row),
            Event::Commit(row) => self.commit(&row),
            Event::Handle(row) => self.handle(&row),
            Event::Wait(row) => self.wait(&row),
            Event::BriefWait(row) => self.brief_wait(&row),
            Event::Call(row) => self.call(&row),
            Event::Request(row) => self.request(&row),
            Event::Data(row) => self.data(&row),
            Event::Task(row) => self.task(&row),
            Event::FileSystem(row) => self.file_system(&row),
            Event::Lost(row) => self.lost(&row),
            Event::Summary(row) => self.summary(&row),
            Event::Stack(_) | Event::Trace(_) => {
                self.events += 1;
            }
        }
    }

    /// What was found so far. Calls of the last 100 ms are not in it.
    pub fn report(&self) -> Report {
        report::report(self)
    }

    /// Takes in what is left in the window, and reports.
    pub fn finish(mut self) -> Report {
        self.advance(u64::MAX);
        for sums in self.file_systems.values_mut() {
            sums.journal.finish();
        }
        self.show_settled();
        self.report()
    }

    /// Shows the commits that no call waits for any more.
    fn show_settled(&mut self) {
        let journals = self.file_systems.values_mut().map(|sums| &mut sums.journal);
        let over: Vec<Committed> = journals
            .filter_map(|journal| journal.over.as_mut())
            .flat_map(std::mem::take)
            .collect();
        for commit in &over {
            let detail = report::detail(self, commit);
            if let Some(observer) = &mut self.observer {
                observer.settled(&detail);
            }
        }
    }

    /// Counts an event and takes in what is due by its time; false if it is to be left out.
    fn step(&mut self, row: &impl Row) -> bool {
        self.events += 1;
        if row.time_ns() >= IMPLAUSIBLE_NS {
            self.implausible += 1;
            return false;
        }
        self.now_ns = self.now_ns.max(row.time_ns());
        if self.now_ns >= self.next_due_ns {
            self.advance(self.now_ns);
        }
        true
    }

    /// Tells the observer how far the reading is; `Break` if it has seen enough.
    pub(crate) fn progress(&mut self, in_all: u64) -> ControlFlow<()> {
        match &mut self.observer {
            Some(observer) => observer.progress(self.events, in_all),
            None => ControlFlow::Continue(()),
        }
    }

    /// Takes in commits and calls that have waited long enough at `now_ns`.
    fn advance(&mut self, now_ns: u64) {
        let commits_until_ns = if now_ns == u64::MAX {
            now_ns
        } else {
            now_ns - COMMIT_DELAY_NS.min(now_ns)
        };
        let wants_settled = (self.observer.as_ref()).is_some_and(|seen| seen.wants_settled());
        for sums in self.file_systems.values_mut() {
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
            sums.journal
                .settle(commits_until_ns, &self.traffic, &mut self.owners, show);
        }
        self.show_settled();
        while let Some(pending) = self.pending.front() {
            if pending.exit_ns().saturating_add(CALL_DELAY_NS) > now_ns {
                break;
            }
            if let Some(pending) = self.pending.pop_front() {
                self.take_in(pending);
            }
        }
        self.next_due_ns = self.pending.front().map_or(u64::MAX, Pending::due_ns);
    }

    pub(crate) fn wait(&mut self, row: &Wait) {
        if !self.step(row) {
            return;
        }
        self.threads.add_wait(row);
        if let Some(observer) = &mut self.observer {
            observer.wait(row);
        }
    }

    pub(crate) fn brief_wait(&mut self, row: &BriefWait) {
        if !self.step(row) {
            return;
        }
        self.threads.add_brief_wait(row);
    }

    pub(crate) fn task(&mut self, row: &Task) {
        if !self.step(row) {
            return;
        }
        self.threads.add_task(row);
        if let Some(observer) = &mut self.observer {
            observer.task(row);
        }
    }

    pub(crate) fn file_system(&mut self, row: &FileSystem) {
        if !self.step(row) {
            return;
        }
        if let Some(observer) = &mut self.observer {
            observer.file_system(row);
        }
        let sums = self.file_systems.entry(row.dev).or_default();
        sums.journal.block_bytes = u64::from(row.block_bytes);
        sums.row = Some(row.clone());
    }

    pub(crate) fn handle(&mut self, row: &Handle) {
        if !self.step(row) {
            return;
        }
        let owner = self.owners.id(row.process, row.cgroup);
        let sums = self.file_systems.entry(row.dev).or_default();
        sums.journal.add_handle(row, owner);
    }

    pub(crate) fn data(&mut self, row: &Data) {
        if !self.step(row) {
            return;
        }
        self.traffic.add(row, &mut self.owners);
    }

    pub(crate) fn commit(&mut self, row: &Commit) {
        if !self.step(row) {
            return;
        }
        let mut row = row.clone();
        for at_ns in [&mut row.start_ns, &mut row.flushing_ns, &mut row.logging_ns] {
            *at_ns = (*at_ns).min(row.end_ns);
        }
        let due_ns = row.end_ns.saturating_add(CALL_DELAY_NS + STRIDE_NS);
        self.next_due_ns = self.next_due_ns.min(due_ns);
        let sums = self.file_systems.entry(row.dev).or_default();
        sums.journal.add_commit(row);
    }

    pub(crate) fn request(&mut self, row: &Request) {
        if !self.step(row) {
            return;
        }
        let disk = self.disks.entry(row.dev).or_default();
        let device_ns = row.complete_ns.saturating_sub(row.issue_ns);
        disk.service.add(row);
        disk.by_kind.entry(row.kind).or_default().record(device_ns);
        if row.insert_ns > 0 {
            disk.queued
                .record(row.issue_ns.saturating_sub(row.insert_ns));
        }
        disk.bytes = disk.bytes.saturating_add(row.bytes);
        disk.errors += u64::from(row.errno != 0);
    }

    pub(crate) fn lost(&mut self, row: &Lost) {
        if !self.step(row) {
            return;
        }
        *self.lost.entry(row.place.clone()).or_default() += row.count;
    }

    pub(crate) fn summary(&mut self, row: &Summary) {
        if !self.step(row) {
            return;
        }
        self.summary.add(row);
    }

    pub(crate) fn sync(&mut self, row: &Sync) {
        if !self.step(row) {
            return;
        }
        let mut row = row.clone();
        let exit_ns = row.exit_ns;
        row.enter_ns = row.enter_ns.min(exit_ns);
        let thread = self
            .threads
            .see(row.thread, row.process, row.cgroup, row.enter_ns);
        let waits = thread.take_waits(row.enter_ns, &mut self.waits);
        let inside = self.waits.range(self.waits.len() - waits..);
        let cycle = thread.end_cycle(exit_ns, inside);
        let sums = self.file_systems.entry(row.dev).or_default();
        sums.syncs
            .add(row.thread, row.kind, (row.enter_ns, exit_ns), row.errno);
        if needs_commit(row.kind)
            && let Some((thinking_ns, cpu_ns)) = cycle
        {
            sums.callers.cycle(thinking_ns, cpu_ns);
        }
        let owner = self.owners.id(row.process, row.cgroup);
        self.push(Pending {
            row: CallRow::Sync(row),
            owner,
            waits,
        });
    }

    pub(crate) fn call(&mut self, row: &Call) {
        if !self.step(row) {
            return;
        }
        let mut row = row.clone();
        row.enter_ns = row.enter_ns.min(row.exit_ns);
        let thread = self
            .threads
            .see(row.thread, row.process, row.cgroup, row.enter_ns);
        let waits = thread.take_waits(row.enter_ns, &mut self.waits);
        let owner = self.owners.id(row.process, row.cgroup);
        let row = CallRow::Call(row);
        self.push(Pending { row, owner, waits });
    }

    fn push(&mut self, pending: Pending) {
        self.next_due_ns = self.next_due_ns.min(pending.due_ns());
        self.pending.push_back(pending);
    }

    fn take_in(&mut self, pending: Pending) {
        let Pending { row, owner, waits } = pending;
        // Lent to the call, so that they are allocated once and not for each.
        let mut call_waits = std::mem::take(&mut self.call_waits);
        let mut split = std::mem::take(&mut self.split);
        call_waits.clear();
        call_waits.extend(self.waits.range(..waits));
        self.waits.drain(..waits);
        match row {
            CallRow::Sync(row) => self.explain_sync(row, owner, &call_waits, &mut split),
            CallRow::Call(row) => self.explain_call(&row, owner, &call_waits, &mut split),
        }
        self.call_waits = call_waits;
        self.split = split;
    }
}

/// Bytes or nanoseconds by owner, with the owners' ids.
fn named(shares: &[(OwnerId, u64)], owners: &Owners) -> Vec<(Tgid, Cgroup, u64)> {
    shares
        .iter()
        .map(|&(owner, amount)| {
            let (process, cgroup) = owners.get(owner);
            (process, cgroup, amount)
        })
        .collect()
}

/// Whether a call of this kind ends only when a transaction is committed.
fn needs_commit(kind: SyncKind) -> bool {
    kind != SyncKind::SyncFileRange
}
