//! Makes a [`TraceReport`] from sums.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use luc_events::event_kinds::CommitKind;
use luc_events::{Cgroup, Dev};

use super::trace_totals::TraceTotals;
use crate::actor::Actor;
use crate::device_write_speed::DeviceWriteSpeed;
use crate::fast_hash::FastMap;
use crate::findings::{self, Remedy};
use crate::journal_history::CommitContent;
use crate::owners::OwnerId;
use crate::report::{
    BlameReport, CommitActor, CommitDetail, CommitReport, DiskReport, FileSystemReport, HeldTime,
    LostTime, OmittedRows, ProcessReport, SlowSync, TraceInfo, TraceReport, WorkingTime,
};
use crate::wait_losses::{ActorLoss, LossKind};
use crate::{remedies, summary_mode, warnings};

/// Version of the report's structure.
const VERSION: u32 = 1;
/// Pairs of victim and culprit, and actors in commits, that are reported.
const MAX_REPORTED_PAIRS: usize = 200;
/// Actors that are reported of a single commit.
const MAX_DETAILED_ACTORS: usize = 20;

pub(super) fn report(totals: &TraceTotals) -> TraceReport {
    let end_ns = match totals.trace.end_ns {
        0 => totals.rows.latest_ns,
        end_ns => end_ns,
    };
    let mut report = TraceReport {
        version: VERSION,
        trace: trace_info(totals, end_ns),
        lost: totals.rows.lost.clone(),
        omitted: OmittedRows {
            waits: totals.threads.forgotten_waits,
            blame: totals.ledgers.work.dropped,
            syncs_without_waits: totals.ledgers.syncs_without_waits,
            implausible: totals.rows.implausible,
        },
        file_systems: file_systems(totals),
        disks: disks(totals),
        services: totals.services.report(totals.trace.start_ns),
        processes: processes(totals),
        blame: blame(totals),
        slowest: slowest(totals),
        accounts: totals.threads.accounts(end_ns),
        ..TraceReport::default()
    };
    report.findings = if report.is_of_sums() {
        let comm = |process| totals.threads.comm(process);
        totals.summary.fill(&mut report, comm);
        report.working = summary_mode::working(&report);
        totals.summary.findings(&report)
    } else {
        let losses = totals.roots.losses(&totals.threads);
        report.working = working(totals, &losses);
        findings::find(&report, &losses)
    };
    report.remedies = remedies::propose(&report);
    report.remedies.sort_by(|a, b| gain(b).total_cmp(&gain(a)));
    report.warnings = warnings::warn(&report);
    report.blame.truncate(MAX_REPORTED_PAIRS);
    report
}

fn working(totals: &TraceTotals, losses: &[ActorLoss]) -> WorkingTime {
    let sum = |is_meant: fn(LossKind) -> bool| {
        let meant = losses.iter().filter(|loss| is_meant(loss.kind));
        meant.fold(0_u64, |sum, loss| sum.saturating_add(loss.ns))
    };
    let computed = totals.threads.thread_times().map(|time| time.cpu_ns());
    let computed_ns = computed.fold(0, u64::saturating_add);
    let behind_storage_ns = sum(|kind| kind == LossKind::BehindStorage);
    WorkingTime {
        total_ns: computed_ns.saturating_add(sum(|kind| kind != LossKind::ProcessorLook)),
        computed_ns,
        storage_ns: sum(|kind| kind == LossKind::Storage).saturating_add(behind_storage_ns),
        behind_storage_ns,
        unknown_ns: sum(|kind| kind == LossKind::Unknown),
    }
}

fn gain(remedy: &Remedy) -> f64 {
    remedy.predicted_gain.unwrap_or(0.0)
}

fn trace_info(totals: &TraceTotals, end_ns: u64) -> TraceInfo {
    let trace = &totals.trace;
    TraceInfo {
        host: trace.host.clone(),
        kernel: trace.kernel.clone(),
        processors: trace.processors,
        command: trace.command.clone(),
        filters: trace.filters.clone(),
        mode: trace.mode.clone(),
        start_ns: trace.start_ns,
        end_ns,
        realtime_offset_ns: trace.realtime_offset_ns,
        events: totals.rows.count,
        complete: trace.end_ns > 0,
    }
}

fn actor(totals: &TraceTotals, owner: OwnerId) -> Actor {
    let (process, cgroup) = totals.owners.get(owner);
    Actor { process, comm: totals.threads.comm(process).to_owned(), cgroup }
}

fn file_systems(totals: &TraceTotals) -> Vec<FileSystemReport> {
    let mut found: Vec<FileSystemReport> = totals
        .file_systems
        .iter()
        .map(|(&dev, sums)| FileSystemReport {
            dev,
            commits: commits(totals, dev),
            held: report_held(totals, dev),
            lost: report_lost(totals, dev),
            ..sums.report(
                totals.trace.processors,
                service(totals, dev).and_then(DeviceWriteSpeed::ns_per_write),
            )
        })
        .collect();
    found.sort_by_key(|found| (Reverse(busy_ns(found)), found.dev));
    found
}

/// Returns the writing speed of a file system's disk.
fn service(totals: &TraceTotals, dev: Dev) -> Option<&DeviceWriteSpeed> {
    // Requests name the disk, not the partition; a disk's partitions follow it within its major number.
    let same_major = |disk: Dev| disk.major() == dev.major() && disk.minor() <= dev.minor();
    let disk =
        totals.disks.keys().filter(|&&disk| same_major(disk)).max_by_key(|disk| disk.minor())?;
    totals.disks.get(disk).map(|disk| &disk.service)
}

/// Returns the nanoseconds that a byte of data adds to a commit: the larger of the estimates by the commits' durations
/// and by the disk's bandwidth.
fn ns_per_byte(totals: &TraceTotals, dev: Dev) -> f64 {
    let by_commits = totals
        .file_systems
        .get(&dev)
        .map_or(0.0, |sums| sums.journal.ns_per_byte(dev, &totals.traffic));
    let by_disk = service(totals, dev).and_then(DeviceWriteSpeed::ns_per_byte);
    by_commits.max(by_disk.unwrap_or(0.0))
}

fn report_held(totals: &TraceTotals, dev: Dev) -> Vec<HeldTime> {
    let mut held: Vec<HeldTime> = totals
        .ledgers
        .holders
        .on(dev)
        .into_iter()
        .map(|(part, victim, holder, ns)| HeldTime {
            part,
            victim: actor(totals, victim),
            holder: actor(totals, holder),
            ns,
        })
        .collect();
    held.truncate(MAX_REPORTED_PAIRS);
    held
}

fn report_lost(totals: &TraceTotals, dev: Dev) -> Vec<LostTime> {
    let mut lost: Vec<LostTime> = totals
        .ledgers
        .holders
        .lost_on(dev)
        .into_iter()
        .map(|(part, victim, ns)| LostTime { part, victim: actor(totals, victim), ns })
        .collect();
    lost.truncate(MAX_REPORTED_PAIRS);
    lost
}

/// Returns a commit in full, with the owners of its work.
pub(super) fn detail(totals: &TraceTotals, commit: &CommitContent) -> CommitDetail {
    let row = &commit.row;
    let asked_by = (!row.asked_by_process.is_none()).then(|| {
        let known = totals.threads.actor(row.asked_by);
        let (process, cgroup) = known.unwrap_or((row.asked_by_process, Cgroup(0)));
        Actor { process, comm: totals.threads.comm(process).to_owned(), cgroup }
    });
    let mut by: BTreeMap<OwnerId, CommitActor> = BTreeMap::new();
    for &(owner, sum) in &commit.handles {
        let found = by.entry(owner).or_default();
        found.handles = sum.count;
        found.blocks = sum.dirtied;
        found.handles_open_ns = sum.open_ns;
    }
    for &(owner, bytes) in &commit.data {
        by.entry(owner).or_default().data_bytes = bytes;
    }
    let mut by: Vec<CommitActor> = by
        .into_iter()
        .map(|(owner, found)| CommitActor { actor: actor(totals, owner), ..found })
        .collect();
    by.sort_by_key(|found| (Reverse((found.data_bytes, found.blocks)), found.actor.process));
    by.truncate(MAX_DETAILED_ACTORS);
    let has_phases = row.kind == CommitKind::Full && row.logging_ns > 0;
    let phase = |from_ns: u64, to_ns: u64| {
        if has_phases { to_ns.saturating_sub(from_ns) } else { 0 }
    };
    CommitDetail {
        dev: row.dev,
        transaction: row.transaction,
        kind: row.kind.name(),
        start_ns: row.start_ns,
        duration_ns: commit.duration_ns(),
        locking_ns: phase(row.start_ns, row.flushing_ns),
        flushing_ns: phase(row.flushing_ns, row.logging_ns),
        logging_ns: phase(row.logging_ns, row.end_ns),
        asked_by,
        served: commit.served,
        blocks_logged: row.blocks_logged,
        by,
    }
}

/// Time spent in calls on a file system.
fn busy_ns(report: &FileSystemReport) -> u64 {
    let calls = report.calls.values().map(|calls| calls.latency.total_ns);
    calls.fold(report.syncs.latency.total_ns, u64::saturating_add)
}

fn commits(totals: &TraceTotals, dev: Dev) -> CommitReport {
    let Some(file_system) = totals.file_systems.get(&dev) else {
        return CommitReport::default();
    };
    let (journal, sums) = (&file_system.journal, &file_system.journal.sums);
    let mut serving = (sums.serving, sums.served);
    for commit in journal.history().iter().filter(|commit| commit.served > 0) {
        serving = (serving.0 + 1, serving.1 + u64::from(commit.served));
    }
    CommitReport {
        full: sums.full.summary(),
        fast: sums.fast.summary(),
        locking_ns: sums.locking_ns,
        flushing_ns: sums.flushing_ns,
        logging_ns: sums.logging_ns,
        asked: sums.asked,
        serving: serving.0,
        served: serving.1,
        syncs_per_commit: serving.1 as f64 / serving.0.max(1) as f64,
        handles: sums.handles,
        blocks_logged: sums.blocks_logged,
        ns_per_data_byte: ns_per_byte(totals, dev),
        by: commit_actors(totals, dev),
        longest: (journal.longest().into_iter()).map(|commit| detail(totals, commit)).collect(),
    }
}

/// Everyone who took part in a journal's commits. Who asked is known by process only, so it joins the
/// process' largest other entry.
fn commit_actors(totals: &TraceTotals, dev: Dev) -> Vec<CommitActor> {
    let Some(file_system) = totals.file_systems.get(&dev) else {
        return Vec::new();
    };
    let sums = &file_system.journal.sums;
    let mut actors: FastMap<OwnerId, CommitActor> = FastMap::default();
    let entry = |actors: &mut FastMap<OwnerId, CommitActor>, owner: OwnerId| -> CommitActor {
        actors.remove(&owner).unwrap_or_else(|| CommitActor {
            actor: actor(totals, owner),
            ..CommitActor::default()
        })
    };
    for (&owner, handles) in &sums.handles_by {
        let mut found = entry(&mut actors, owner);
        found.handles = handles.count;
        found.blocks = handles.dirtied;
        found.handles_open_ns = handles.open_ns;
        actors.insert(owner, found);
    }
    for (&owner, &bytes) in &sums.data_by {
        let mut found = entry(&mut actors, owner);
        found.data_bytes = bytes;
        actors.insert(owner, found);
    }
    for (owner, bytes) in totals.traffic.dirtied_on(dev) {
        let mut found = entry(&mut actors, owner);
        found.dirtied_bytes = bytes;
        actors.insert(owner, found);
    }
    for (&owner, &asked) in &sums.asked_by {
        let (process, _) = totals.owners.get(owner);
        let known = actors
            .iter()
            .filter(|(_, found)| found.actor.process == process)
            .max_by_key(|(_, found)| (found.handles, found.data_bytes))
            .map_or(owner, |(&known, _)| known);
        let mut found = entry(&mut actors, known);
        found.asked += asked;
        actors.insert(known, found);
    }
    let mut actors: Vec<CommitActor> = actors.into_values().collect();
    actors.sort_by_key(|found| {
        (Reverse((found.data_bytes, found.blocks, found.asked)), found.actor.process)
    });
    actors.truncate(MAX_REPORTED_PAIRS);
    actors
}

fn disks(totals: &TraceTotals) -> Vec<DiskReport> {
    let mut disks: Vec<DiskReport> = totals
        .disks
        .iter()
        .map(|(&dev, sums)| DiskReport {
            dev,
            device: sums
                .by_kind
                .iter()
                .map(|(kind, times)| (kind.name(), times.summary()))
                .collect(),
            queued: sums.queued.summary(),
            bytes: sums.bytes,
            errors: sums.errors,
            contention: sums.sharing.report(&totals.threads),
        })
        .collect();
    disks.sort_by_key(|disk| (Reverse(disk.bytes), disk.dev));
    disks
}

fn processes(totals: &TraceTotals) -> Vec<ProcessReport> {
    let mut processes: Vec<ProcessReport> = totals
        .ledgers
        .by_owner
        .iter()
        .map(|(&owner, sums)| ProcessReport {
            actor: actor(totals, owner),
            syncs: sums.syncs.count,
            sync_ns: sums.syncs.ns,
            sync_parts: sums.syncs.parts,
            calls: sums.calls.count,
            call_ns: sums.calls.ns,
            call_parts: sums.calls.parts,
        })
        .collect();
    processes.sort_by_key(|found| {
        (Reverse(found.sync_ns + found.call_ns), found.actor.process, found.actor.cgroup)
    });
    processes
}

fn blame(totals: &TraceTotals) -> Vec<BlameReport> {
    let mut per_byte: FastMap<Dev, f64> = FastMap::default();
    let mut blame: Vec<BlameReport> = totals
        .ledgers
        .work
        .iter()
        .map(|(dev, victim, culprit, blamed)| {
            let ns_per_byte = *per_byte.entry(dev).or_insert_with(|| ns_per_byte(totals, dev));
            BlameReport {
                dev,
                victim: actor(totals, victim),
                culprit: actor(totals, culprit),
                waited_ns: blamed.waited_ns as u64,
                load_ns: blamed.load_ns(ns_per_byte) as u64,
                waits: blamed.waits,
                worst_transaction: blamed.worst.0,
                worst_ns: blamed.worst.1 as u64,
            }
        })
        .collect();
    blame.sort_by_key(|found| {
        (Reverse(found.waited_ns), found.victim.process, found.culprit.process)
    });
    blame
}

fn slowest(totals: &TraceTotals) -> Vec<SlowSync> {
    let mut slowest: Vec<SlowSync> = totals
        .ledgers
        .slowest
        .iter()
        .map(|slow| SlowSync {
            thread: slow.row.thread,
            actor: actor(totals, slow.owner),
            dev: slow.row.dev,
            inode: slow.row.inode.0,
            kind: slow.row.kind.name(),
            enter_ns: slow.row.enter_ns,
            duration_ns: slow.duration_ns(),
            parts: slow.parts,
            commits: slow.commits.clone(),
        })
        .collect();
    slowest.sort_by_key(|slow| (Reverse(slow.duration_ns), slow.enter_ns));
    slowest
}
