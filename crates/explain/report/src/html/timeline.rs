//! Data of the timelines: sums over the whole trace, and some periods in detail.
//!
//! The trace is cut into periods while it is read. Kept are the period with the slowest fsync and a few others at even
//! distances. The typical period is the one of these whose mean fsync is nearest to that of all.

use std::collections::{BTreeMap, HashMap, VecDeque};

use luc_events::event_kinds::CommitKind;
use luc_events::tables::{FileCall, FsyncCall, JournalCommit, ThreadInfo};
use luc_events::{Dev, Pid, Tgid, Transaction};
use luc_explain::{CallTimePart, ExplainedCall, ExplainedSync};
use serde_json::{Value, json};

use super::script_data::clipped;
use super::timeline_bins::TimelineBins;

/// Maximum number of file systems with timelines: the first that were synced.
const MAX_FILE_SYSTEMS: usize = 16;
/// Maximum number of pieces of calls in a period.
pub(super) const MAX_PIECES: usize = 6_000;
/// Maximum number of calls in a period.
const MAX_CALLS: usize = 2_000;
/// Maximum number of commits in a period.
const MAX_COMMITS: usize = 1_500;
/// Maximum number of periods to choose a typical one from.
const MAX_SAMPLES: usize = 8;
/// Maximum number of shown threads of a period: those with most time in calls.
const MAX_LANES: usize = 64;
/// Minimum time of a call other than a sync that is shown although it did not wait.
pub(super) const BRIEF_NS: u64 = 100_000;

#[derive(Clone, Debug)]
struct Bar {
    thread: Pid,
    process: Tgid,
    kind: &'static str,
    enter_ns: u64,
    exit_ns: u64,
    own: Option<Transaction>,
    pieces: Vec<(CallTimePart, u64)>,
}

#[derive(Clone, Debug)]
struct CommitBar {
    row: JournalCommit,
    served: u64,
}

/// Calls and commits of a part of the trace.
#[derive(Clone, Debug, Default)]
struct Period {
    calls: Vec<Bar>,
    commits: Vec<CommitBar>,
    pieces: usize,
    syncs: u64,
    sync_ns: u64,
    slowest_ns: u64,
}

impl Period {
    fn is_full(&self) -> bool {
        self.pieces >= MAX_PIECES || self.calls.len() >= MAX_CALLS
    }

    /// Returns the beginning of the first call and the end of the last one.
    fn span(&self) -> (u64, u64) {
        let from_ns = self.calls.iter().map(|call| call.enter_ns).min();
        let to_ns = self.calls.iter().map(|call| call.exit_ns).max();
        (from_ns.unwrap_or(0), to_ns.unwrap_or(0))
    }

    fn mean_ns(&self) -> u64 {
        self.sync_ns.checked_div(self.syncs).unwrap_or(0)
    }
}

/// Timeline of one file system: sums over the trace, and some periods.
#[derive(Debug)]
pub(super) struct FileSystemTimeline {
    pub(super) bins: TimelineBins,
    current: Period,
    recent: VecDeque<CommitBar>,
    samples: Vec<Period>,
    slowest: Option<Period>,
    /// One of this many periods is kept.
    every: u64,
    closed: u64,
    syncs: u64,
    sync_ns: u64,
    brief: u64,
}

/// Timelines of all file systems.
#[derive(Debug)]
pub(super) struct HtmlTimelines {
    origin_ns: u64,
    names: HashMap<Pid, String>,
    lanes: BTreeMap<Dev, FileSystemTimeline>,
}

impl HtmlTimelines {
    pub(super) fn new(origin_ns: u64) -> Self {
        Self { origin_ns, names: HashMap::new(), lanes: BTreeMap::new() }
    }

    /// Returns the timeline of a file system.
    pub(super) fn lane(&self, dev: Dev) -> Option<&FileSystemTimeline> {
        self.lanes.get(&dev)
    }

    fn lane_mut(&mut self, dev: Dev) -> Option<&mut FileSystemTimeline> {
        if !self.lanes.contains_key(&dev) && self.lanes.len() >= MAX_FILE_SYSTEMS {
            return None;
        }
        let origin_ns = self.origin_ns;
        Some(self.lanes.entry(dev).or_insert_with(|| FileSystemTimeline::new(origin_ns)))
    }

    pub(super) fn task(&mut self, row: &ThreadInfo) {
        self.names.insert(row.thread, clipped(&row.comm));
    }

    pub(super) fn commit(&mut self, row: &JournalCommit) {
        let Some(lane) = self.lane_mut(row.dev) else {
            return;
        };
        lane.bins.commit(row.start_ns, row.end_ns);
        lane.recent.push_back(CommitBar { row: row.clone(), served: 0 });
        if lane.recent.len() > MAX_COMMITS {
            lane.recent.pop_front();
        }
    }

    pub(super) fn sync(&mut self, sync: &ExplainedSync<'_>) {
        let row = sync.row;
        let Some(lane) = self.lane_mut(row.dev) else {
            return;
        };
        let length_ns = row.exit_ns.saturating_sub(row.enter_ns);
        let bin = lane.bins.at(row.exit_ns);
        bin.syncs += 1;
        bin.sync_ns = bin.sync_ns.saturating_add(length_ns);
        let predecessor_ns = sync.parts.get(CallTimePart::Predecessor);
        bin.predecessor_ns = bin.predecessor_ns.saturating_add(predecessor_ns);
        bin.longest_ns = bin.longest_ns.max(length_ns);
        lane.syncs += 1;
        lane.sync_ns = lane.sync_ns.saturating_add(length_ns);
        if let Some(own) = sync.own {
            let mut recent = lane.recent.iter_mut().rev();
            if let Some(commit) = recent.find(|commit| commit.row == *own) {
                commit.served += 1;
            }
        }
        let period = &mut lane.current;
        period.syncs += 1;
        period.sync_ns = period.sync_ns.saturating_add(length_ns);
        period.slowest_ns = period.slowest_ns.max(length_ns);
        let own = sync.own.map(|own| own.transaction);
        let pieces = sync.pieces.to_vec();
        let &FsyncCall { thread, process, enter_ns, exit_ns, .. } = row;
        lane.add(Bar { thread, process, kind: row.kind.name(), enter_ns, exit_ns, own, pieces });
    }

    pub(super) fn call(&mut self, call: &ExplainedCall<'_>) {
        let row = call.row;
        // Without a sync or commit on it, a file system has no timeline.
        let Some(lane) = self.lanes.get_mut(&row.dev) else {
            return;
        };
        let is_brief = row.exit_ns.saturating_sub(row.enter_ns) < BRIEF_NS;
        if is_brief && call.pieces.iter().all(|&(part, _)| part == CallTimePart::Running) {
            lane.brief += 1;
            return;
        }
        let (kind, pieces) = (row.kind.name(), call.pieces.to_vec());
        let &FileCall { thread, process, enter_ns, exit_ns, .. } = row;
        lane.add(Bar { thread, process, kind, enter_ns, exit_ns, own: None, pieces });
    }

    /// Ends the last periods.
    pub(super) fn finish(&mut self) {
        for lane in self.lanes.values_mut() {
            lane.close();
        }
    }

    /// Returns the detailed periods of a file system, for the script.
    pub(super) fn details(&self, dev: Dev) -> Vec<Value> {
        let Some(lane) = self.lanes.get(&dev) else {
            return Vec::new();
        };
        lane.detailed_periods()
            .into_iter()
            .map(|(title, period)| self.detail(title, period))
            .collect()
    }

    fn detail(&self, title: &str, period: &Period) -> Value {
        let (from_ns, to_ns) = period.span();
        let since_us = |at_ns: u64| at_ns.saturating_sub(from_ns) / 1_000;
        let mut lanes: BTreeMap<(Tgid, Pid), (u64, Vec<&Bar>)> = BTreeMap::new();
        for call in &period.calls {
            let lane = lanes.entry((call.process, call.thread)).or_default();
            lane.0 = lane.0.saturating_add(call.exit_ns.saturating_sub(call.enter_ns));
            lane.1.push(call);
        }
        let mut most: Vec<_> = lanes.into_iter().collect();
        most.sort_by_key(|&(id, (ns, _))| (std::cmp::Reverse(ns), id));
        let left_out = most.len().saturating_sub(MAX_LANES);
        most.truncate(MAX_LANES);
        // Threads of a process stand together, the process with most time first.
        let mut by_process: BTreeMap<Tgid, u64> = BTreeMap::new();
        for ((process, _), (ns, _)) in &most {
            let sum = by_process.entry(*process).or_default();
            *sum = sum.saturating_add(*ns);
        }
        let sum_ns = |process: Tgid| by_process.get(&process).copied();
        most.sort_by_key(|&(id, _)| (std::cmp::Reverse(sum_ns(id.0)), id));
        let shown = most.into_iter().map(|((process, thread), (_, mut calls))| {
            calls.sort_by_key(|call| (call.enter_ns, call.exit_ns));
            let bars: Vec<Value> =
                calls.into_iter().map(|call| encode_call(call, from_ns)).collect();
            let name = self.names.get(&thread).map_or("", String::as_str);
            json!({"name": name, "process": process.0, "thread": thread.0, "calls": bars})
        });
        let commits = period.commits.iter().map(|commit| {
            let row = &commit.row;
            let flushing_ns = row.flushing_ns.clamp(row.start_ns, row.end_ns.max(row.start_ns));
            let logging_ns = row.logging_ns.clamp(flushing_ns, row.end_ns.max(flushing_ns));
            json!([
                row.start_ns as i64 / 1_000 - from_ns as i64 / 1_000,
                (flushing_ns - row.start_ns) / 1_000,
                (logging_ns - flushing_ns) / 1_000,
                row.end_ns.saturating_sub(logging_ns) / 1_000,
                row.transaction.0,
                commit.served,
                u8::from(row.kind == CommitKind::Fast),
            ])
        });
        json!({
            "title": title,
            "from_us": from_ns.saturating_sub(self.origin_ns) / 1_000,
            "length_us": since_us(to_ns).max(1),
            "commits": commits.collect::<Vec<_>>(),
            "lanes": shown.collect::<Vec<_>>(),
            "left_out": left_out,
        })
    }
}

/// Encodes a call for the script: begin, length, name, own transaction, then parts and lengths, in microseconds.
fn encode_call(call: &Bar, from_ns: u64) -> Value {
    let mut values = vec![
        json!(call.enter_ns.saturating_sub(from_ns) / 1_000),
        json!(call.exit_ns.saturating_sub(call.enter_ns) / 1_000),
        json!(call.kind),
        json!(call.own.map_or(0, |own| own.0)),
    ];
    // Rounded so that the pieces sum to the call.
    let (mut at_ns, mut at_us) = (0_u64, 0);
    for &(part, ns) in &call.pieces {
        at_ns = at_ns.saturating_add(ns);
        values.push(json!(part as u8));
        values.push(json!(at_ns / 1_000 - at_us));
        at_us = at_ns / 1_000;
    }
    json!(values)
}

impl FileSystemTimeline {
    fn new(origin_ns: u64) -> Self {
        Self {
            bins: TimelineBins::new(origin_ns),
            current: Period::default(),
            recent: VecDeque::new(),
            samples: Vec::new(),
            slowest: None,
            every: 1,
            closed: 0,
            syncs: 0,
            sync_ns: 0,
            brief: 0,
        }
    }

    /// Returns whether any period can be shown.
    pub(super) fn has_details(&self) -> bool {
        self.closed > 0
    }

    /// Returns the number of calls that did not wait and were too short to be shown.
    pub(super) fn brief(&self) -> u64 {
        self.brief
    }

    fn add(&mut self, bar: Bar) {
        self.current.pieces += bar.pieces.len();
        self.current.calls.push(bar);
        if self.current.is_full() {
            self.close();
        }
    }

    fn close(&mut self) {
        let mut period = std::mem::take(&mut self.current);
        if period.calls.is_empty() {
            return;
        }
        let (from_ns, to_ns) = period.span();
        let inside = |row: &JournalCommit| row.end_ns >= from_ns && row.start_ns <= to_ns;
        let commits = self.recent.iter().filter(|commit| inside(&commit.row));
        period.commits = commits.cloned().collect();
        let slowest_ns = self.slowest.as_ref().map_or(0, |slowest| slowest.slowest_ns);
        if self.slowest.is_none() || period.slowest_ns > slowest_ns {
            self.slowest = Some(period.clone());
        }
        if self.closed.is_multiple_of(self.every) {
            self.samples.push(period);
        }
        self.closed += 1;
        if self.samples.len() > MAX_SAMPLES {
            let mut index = 0;
            self.samples.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.every *= 2;
        }
    }

    fn detailed_periods(&self) -> Vec<(&'static str, &Period)> {
        if self.closed == 1 {
            let whole = self.slowest.iter();
            return whole.map(|period| ("the whole trace", period)).collect();
        }
        let mean_ns = self.sync_ns.checked_div(self.syncs).unwrap_or(0);
        let typical = self
            .samples
            .iter()
            .filter(|period| period.is_full())
            .min_by_key(|period| period.mean_ns().abs_diff(mean_ns))
            .map(|period| ("a typical period", period));
        let slowest = self.slowest.iter().map(|period| ("around the slowest fsync", period));
        let mut chosen: Vec<_> = typical.into_iter().chain(slowest).collect();
        chosen.dedup_by_key(|(_, period)| period.span());
        chosen
    }
}
