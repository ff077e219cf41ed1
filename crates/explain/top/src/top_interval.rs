//! Figures of the time between two reports of the same analysis.

use std::collections::{BTreeMap, HashMap};

use luc_events::{Cgroup, Dev, Tgid, WaitCause};
use luc_explain::{
    Actor, BlameReport, CallTimePart, CallTimeParts, FileSystemReport, Finding,
    LatencyDistribution, ProcessReport, TraceReport, is_storage,
};
// Names come from files and processes: nothing in them may steer a terminal.
use luc_units::plain as clean;
use serde::Serialize;

use super::disk_sharing::{self, SharedDisk, ThrottleState};
use super::part_groups::PartGroupTimes;
use super::table_rows::{ActorRow, CulpritProcess, FileSystemRow, ShownFinding};

/// Maximum number of others that a line names.
const MAX_OTHERS: usize = 8;
/// Version of an interval's JSON.
const VERSION: u32 = 1;

/// Name, kernel and processors of the host in view.
#[derive(Clone, Debug, Default, Serialize)]
pub struct HostDescription {
    pub name: String,
    pub kernel: String,
    pub processors: u32,
}

/// Figures measured beside the events.
#[derive(Clone, Debug, Default, Serialize)]
pub struct MachineFigures {
    /// Time since the view began, in seconds.
    pub up_s: f64,
    /// Number of events that the recorder lost since then.
    pub lost: u64,
    /// I/O pressure, if the kernel reports it.
    pub pressure: Option<IoPressureLast10s>,
    /// Share of the interval in which each file system's disk was busy.
    #[serde(skip)]
    pub busy: BTreeMap<Dev, f64>,
    /// The kernel's names of disks that tasks share.
    #[serde(skip)]
    pub disk_names: BTreeMap<Dev, String>,
    /// The throttle's daemon, if one runs.
    pub throttle: Option<ThrottleState>,
}

/// Shares of the last ten seconds in which I/O stalled some, or all, runnable threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct IoPressureLast10s {
    pub some: f64,
    pub full: f64,
}

/// Figures of one interval of `luc top`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TopInterval {
    pub version: u32,
    pub host: HostDescription,
    /// Length of the interval, in seconds.
    pub seconds: f64,
    /// Figures beside the events.
    pub machine: MachineFigures,
    /// File systems, busiest first.
    pub file_systems: Vec<FileSystemRow>,
    /// Disks for which tasks contended, busiest first.
    pub shared_disks: Vec<SharedDisk>,
    /// Processes that made calls or that others waited for, most time lost first.
    pub processes: Vec<ActorRow>,
    /// Threads that waited for storage, longest first.
    pub threads: Vec<ActorRow>,
}

impl TopInterval {
    /// Computes what happened from `before` to `after`, `seconds` apart. Findings are those of `after`: they are about
    /// a longer time.
    pub fn between(
        before: &TraceReport,
        after: &TraceReport,
        seconds: f64,
        machine: MachineFigures,
    ) -> Self {
        let seconds = if seconds > 0.0 { seconds } else { 1.0 };
        let blame = blame_between(before, after, seconds);
        let old: HashMap<Dev, &FileSystemReport> =
            before.file_systems.iter().map(|found| (found.dev, found)).collect();
        let none = FileSystemReport::default();
        let file_systems = after
            .file_systems
            .iter()
            .map(|new| FileSystemRow {
                busy: machine.busy.get(&new.dev).copied(),
                blame: worst_of(&blame, new.dev),
                found: about(after, |finding| finding.dev == Some(new.dev)),
                ..file_system(old.get(&new.dev).copied().unwrap_or(&none), new, seconds)
            })
            .filter(FileSystemRow::is_worth_a_line)
            .collect();
        Self {
            version: VERSION,
            host: HostDescription {
                name: clean(&after.trace.host),
                kernel: clean(&after.trace.kernel),
                processors: after.trace.processors,
            },
            seconds,
            shared_disks: disk_sharing::between(before, after, seconds, &machine.disk_names),
            machine,
            file_systems,
            processes: processes(before, after, &blame, seconds),
            threads: threads(before, after, seconds),
        }
    }
}

fn file_system(old: &FileSystemReport, new: &FileSystemReport, seconds: f64) -> FileSystemRow {
    let commits = since(&old.commits.full, &new.commits.full);
    let fast = since(&old.commits.fast, &new.commits.fast);
    let count = commits.count.saturating_add(fast.count);
    let serving = new.commits.serving.saturating_sub(old.commits.serving);
    let served = new.commits.served.saturating_sub(old.commits.served);
    let syncs = since(&old.syncs.latency, &new.syncs.latency);
    let parts = parts_since(&old.syncs.parts, &new.syncs.parts);
    let mut calls = CallTimeParts::default();
    for (kind, call) in &new.calls {
        let before = old.calls.get(kind).map_or(CallTimeParts::default(), |old| old.parts);
        let more = parts_since(&before, &call.parts);
        calls = calls.iter().chain(more.iter()).collect();
    }
    FileSystemRow {
        dev: new.dev,
        mount_point: clean(&new.mount_point),
        kind: clean(&new.kind),
        commits_per_s: (count > 0 || may_have_jbd2(&new.kind)).then(|| count as f64 / seconds),
        syncs_per_s: syncs.count as f64 / seconds,
        syncs_per_commit: (serving > 0).then(|| served as f64 / serving as f64),
        commit_ns: commits.total_ns.saturating_add(fast.total_ns).checked_div(count),
        sync_ns: syncs.total_ns.checked_div(syncs.count),
        sync_p99_ns: (syncs.count > 0).then_some(syncs.p99_ns),
        earlier: (parts.sum() > 0)
            .then(|| parts.get(CallTimePart::Predecessor) as f64 / parts.sum() as f64),
        sync_time: PartGroupTimes::of(&parts),
        call_time: PartGroupTimes::of(&calls),
        ..FileSystemRow::default()
    }
}

/// Returns whether a file system of this type can have a jbd2 journal; true for an unknown type.
fn may_have_jbd2(kind: &str) -> bool {
    matches!(kind, "" | "ext3" | "ext4" | "ocfs2")
}

/// Returns count, sum and 99th percentile of the calls from `old` to `new`.
fn since(old: &LatencyDistribution, new: &LatencyDistribution) -> LatencyDistribution {
    let before: HashMap<u64, u64> = old.buckets.iter().copied().collect();
    let buckets: Vec<(u64, u64)> = new
        .buckets
        .iter()
        .map(|&(edge, count)| (edge, count.saturating_sub(*before.get(&edge).unwrap_or(&0))))
        .filter(|&(_, count)| count > 0)
        .collect();
    let count = new.count.saturating_sub(old.count);
    let rank = (count as f64 * 0.99).ceil() as u64;
    let mut seen = 0_u64;
    let p99_ns = buckets
        .iter()
        .find(|&&(_, count)| {
            seen = seen.saturating_add(count);
            seen >= rank
        })
        .map_or(new.max_ns, |&(edge, _)| edge.min(new.max_ns));
    LatencyDistribution {
        count,
        total_ns: new.total_ns.saturating_sub(old.total_ns),
        p99_ns,
        ..LatencyDistribution::default()
    }
}

fn parts_since(old: &CallTimeParts, new: &CallTimeParts) -> CallTimeParts {
    new.iter().map(|(part, ns)| (part, ns.saturating_sub(old.get(part)))).collect()
}

/// A wait of one actor for another's work on a file system.
struct Blamed {
    dev: Dev,
    victim: Actor,
    culprit: Actor,
    ns_per_s: f64,
}

fn blame_between(before: &TraceReport, after: &TraceReport, seconds: f64) -> Vec<Blamed> {
    let key = |blame: &BlameReport| {
        let (victim, culprit) = (&blame.victim, &blame.culprit);
        (blame.dev, (victim.process, victim.cgroup), (culprit.process, culprit.cgroup))
    };
    let old: HashMap<_, u64> =
        before.blame.iter().map(|blame| (key(blame), blame.waited_ns)).collect();
    let mut found: Vec<Blamed> = after
        .blame
        .iter()
        .filter(|blame| blame.victim.process != blame.culprit.process)
        .map(|blame| Blamed {
            dev: blame.dev,
            victim: blame.victim.clone(),
            culprit: blame.culprit.clone(),
            ns_per_s: blame.waited_ns.saturating_sub(*old.get(&key(blame)).unwrap_or(&0)) as f64
                / seconds,
        })
        .filter(|blamed| blamed.ns_per_s > 0.0)
        .collect();
    found.sort_by(|a, b| b.ns_per_s.total_cmp(&a.ns_per_s));
    found
}

fn worst_of(blame: &[Blamed], dev: Dev) -> Vec<(CulpritProcess, CulpritProcess, f64)> {
    blame
        .iter()
        .filter(|blamed| blamed.dev == dev)
        .take(MAX_OTHERS)
        .map(|blamed| {
            (
                CulpritProcess::of(&blamed.victim),
                CulpritProcess::of(&blamed.culprit),
                blamed.ns_per_s,
            )
        })
        .collect()
}

type ActorKey = (Tgid, Cgroup);

fn actor_key(actor: &Actor) -> ActorKey {
    (actor.process, actor.cgroup)
}

fn processes(
    before: &TraceReport,
    after: &TraceReport,
    blame: &[Blamed],
    seconds: f64,
) -> Vec<ActorRow> {
    let old: HashMap<ActorKey, &ProcessReport> =
        before.processes.iter().map(|found| (actor_key(&found.actor), found)).collect();
    let none = ProcessReport::default();
    let mut rows: BTreeMap<ActorKey, ActorRow> = BTreeMap::new();
    for new in &after.processes {
        let old = old.get(&actor_key(&new.actor)).copied().unwrap_or(&none);
        let syncs = parts_since(&old.sync_parts, &new.sync_parts);
        let calls = parts_since(&old.call_parts, &new.call_parts);
        let time = PartGroupTimes::of(&syncs.iter().chain(calls.iter()).collect());
        let count = new.syncs.saturating_sub(old.syncs);
        if count > 0 || time.sum() > 0 {
            let row = rows.entry(actor_key(&new.actor)).or_insert_with(|| row(&new.actor));
            row.syncs_per_s = Some(count as f64 / seconds);
            row.lost_ns_per_s = time.lost() as f64 / seconds;
            row.time = time;
        }
    }
    for blamed in blame {
        let victim = rows.entry(actor_key(&blamed.victim)).or_insert_with(|| row(&blamed.victim));
        add_other(&mut victim.waits_for, &blamed.culprit, blamed.ns_per_s);
        let culprit =
            rows.entry(actor_key(&blamed.culprit)).or_insert_with(|| row(&blamed.culprit));
        add_other(&mut culprit.makes_wait, &blamed.victim, blamed.ns_per_s);
        *culprit.caused_ns_per_s.get_or_insert(0.0) += blamed.ns_per_s;
    }
    let mut rows: Vec<ActorRow> = rows.into_values().collect();
    for row in &mut rows {
        row.found = about(after, |finding| {
            let is_it = |actor: &Option<Actor>| {
                actor
                    .as_ref()
                    .is_some_and(|actor| (actor.process, actor.cgroup) == (row.process, row.cgroup))
            };
            is_it(&finding.victim) || is_it(&finding.culprit)
        });
    }
    rows.sort_by(|a, b| b.lost_ns_per_s.total_cmp(&a.lost_ns_per_s));
    rows
}

fn row(actor: &Actor) -> ActorRow {
    ActorRow {
        process: actor.process,
        cgroup: actor.cgroup,
        comm: clean(&actor.comm),
        syncs_per_s: Some(0.0),
        caused_ns_per_s: Some(0.0),
        ..ActorRow::default()
    }
}

/// Adds to a list of others, which stays short and ordered, the longest first.
fn add_other(others: &mut Vec<(CulpritProcess, f64)>, actor: &Actor, ns_per_s: f64) {
    match others.iter_mut().find(|(known, _)| known.process == actor.process) {
        Some((_, sum)) => *sum += ns_per_s,
        None => others.push((CulpritProcess::of(actor), ns_per_s)),
    }
    others.sort_by(|a, b| b.1.total_cmp(&a.1));
    others.truncate(MAX_OTHERS);
}

fn threads(before: &TraceReport, after: &TraceReport, seconds: f64) -> Vec<ActorRow> {
    let old: HashMap<_, _> =
        before.accounts.threads.iter().map(|account| (account.thread, account)).collect();
    let mut rows: Vec<ActorRow> = after
        .accounts
        .threads
        .iter()
        .filter_map(|new| {
            let old = old.get(&new.thread);
            let storage_ns = new.storage_ns.saturating_sub(old.map_or(0, |old| old.storage_ns));
            let causes = new.blocked.iter().filter_map(|(&cause, &ns)| {
                let before = old.and_then(|old| old.blocked.get(cause));
                let is_for_storage = WaitCause::from_name(cause).is_some_and(is_storage);
                is_for_storage.then(|| (cause, ns.saturating_sub(*before.unwrap_or(&0))))
            });
            (storage_ns > 0).then(|| ActorRow {
                process: new.process.unwrap_or_default(),
                thread: new.thread,
                cgroup: new.cgroup,
                comm: clean(&new.comm),
                lost_ns_per_s: storage_ns as f64 / seconds,
                time: PartGroupTimes::of_causes(causes),
                ..ActorRow::default()
            })
        })
        .collect();
    rows.sort_by(|a, b| b.lost_ns_per_s.total_cmp(&a.lost_ns_per_s));
    rows
}

/// Returns the first finding that `is_about` accepts, with the best remedy.
fn about(report: &TraceReport, is_about: impl Fn(&Finding) -> bool) -> Option<ShownFinding> {
    let finding = report.findings.iter().find(|finding| is_about(finding))?;
    let remedy = report
        .remedies
        .iter()
        .find(|remedy| remedy.dev == finding.dev && remedy.against == finding.kind);
    Some(ShownFinding {
        sentence: clean(&finding.sentence),
        share: finding.share,
        remedy: remedy.map(|remedy| clean(&remedy.sentence)),
        predicted_gain: remedy.and_then(|remedy| remedy.predicted_gain),
        basis: remedy.map_or("", |remedy| remedy.basis),
    })
}
