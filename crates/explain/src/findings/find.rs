//! What the figures mean, most important first.
//!
//! Each finding has a cost: the time that threads lost to it. Findings about something that can be cured rank by
//! their cost; that the device is slow, or that storage is not the matter at all, is said first only if
//! nothing curable costs a tenth of what there is to lose.

use luc_events::Dev;

use super::figures::{Figures, evidence};
use super::parties::{with_dirtier, with_filler, with_holder, with_victim};
use super::{Finding, FindingKind, Unit};
use crate::parts::{Part, Parts};
use crate::party::Party;
use crate::report::{Blame, FileSystemReport, Report};

/// A finding needs this share of the time in file-system calls to be listed,
const LISTED_SHARE: f64 = 0.02;
/// and this one to come before the limits.
const LEADING_SHARE: f64 = 0.10;
/// Below this share of the time that is not idle, storage is not the matter.
const STORAGE_SHARE: f64 = 0.10;

/// What the device takes for a caller's own work.
const DEVICE_PARTS: [Part; 8] = [
    Part::Start,
    Part::Locking,
    Part::Flushing,
    Part::Logging,
    Part::Done,
    Part::DataWriteback,
    Part::Device,
    Part::Flush,
];

/// All findings of a report whose other parts are done, most important first.
pub(crate) fn find(report: &Report) -> Vec<Finding> {
    let total_ns: u64 = report
        .processes
        .iter()
        .map(|process| process.sync_ns.saturating_add(process.call_ns))
        .fold(0, u64::saturating_add);
    let found = report
        .file_systems
        .iter()
        .flat_map(|file_system| in_file_system(report, file_system))
        .collect();
    ranked(report, found, total_ns)
}

/// Findings with their shares of `total_ns`, most important first, without those that cost next to nothing.
pub(crate) fn ranked(report: &Report, found: Vec<Finding>, total_ns: u64) -> Vec<Finding> {
    let mut found: Vec<Finding> = found
        .into_iter()
        .map(|finding| Finding {
            share: finding.cost_ns as f64 / total_ns.max(1) as f64,
            ..finding
        })
        .filter(|finding| finding.share >= LISTED_SHARE)
        .collect();
    found.sort_by(|a, b| rank(a).cmp(&rank(b)).then(b.share.total_cmp(&a.share)));
    if let Some(finding) = not_storage(report) {
        found.insert(0, finding);
    }
    found
}

/// Curable and costly, then limits, then what costs little.
fn rank(finding: &Finding) -> u8 {
    match (finding.kind.is_limit(), finding.share >= LEADING_SHARE) {
        (false, true) => 0,
        (true, true) => 1,
        (false, false) => 2,
        (true, false) => 3,
    }
}

/// All calls' time on a file system by part: fsyncs, and everything else.
fn time(file_system: &FileSystemReport) -> (Parts, Parts) {
    let mut calls = Parts::default();
    for call in file_system.calls.values() {
        calls.add_all(&call.parts);
    }
    (file_system.syncs.parts, calls)
}

fn in_file_system(report: &Report, file_system: &FileSystemReport) -> Vec<Finding> {
    let (syncs, calls) = time(file_system);
    let both = |part| syncs.get(part).saturating_add(calls.get(part));
    let foreign = foreign_data(report, file_system.dev);
    let foreign_ns = foreign.as_ref().map_or(0, |foreign| foreign.load_ns);
    // Another's data makes all waits for commits and data longer alike.
    let data_parts = [
        Part::Predecessor,
        Part::DataWriteback,
        Part::Device,
        Part::Flush,
    ];
    let exposed_ns = [
        syncs.own_commit(),
        both(Part::WriteDelay),
        both(Part::LockUp),
    ]
    .into_iter()
    .chain(data_parts.map(both))
    .fold(0, u64::saturating_add);
    let own = 1.0 - (foreign_ns as f64 / exposed_ns.max(1) as f64).min(1.0);
    let less = |ns: u64| (ns as f64 * own) as u64;
    let finding = |kind, cost_ns, sentence: String, evidence| Finding {
        kind,
        sentence,
        dev: Some(file_system.dev),
        cost_ns,
        share: 0.0,
        victim: None,
        culprit: None,
        evidence,
    };
    let held = |part: Part, finding: Finding| with_holder(file_system, part, finding);
    let lost = |parts: &[Part], finding: Finding| with_victim(file_system, parts, finding);
    let figures = Figures {
        file_system,
        syncs: &syncs,
        calls: &calls,
    };
    let name = figures.place();
    let mut found = vec![
        held(
            Part::Predecessor,
            finding(
                FindingKind::SynchronizationBound,
                less(syncs.get(Part::Predecessor)),
                format!("fsyncs on {name} wait for commits that do not serve them"),
                figures.synchronization(),
            ),
        ),
        held(
            Part::WriteDelay,
            finding(
                FindingKind::WriteDelayBound,
                less(both(Part::WriteDelay)),
                format!(
                    "writes on {name} wait for buffers that a commit is writing to the journal"
                ),
                figures.write_delay(),
            ),
        ),
        held(
            Part::LockUp,
            finding(
                FindingKind::LockUp,
                less(both(Part::LockUp)),
                format!("calls on {name} wait for a transaction that takes no more changes"),
                figures.calls_blocked(Part::LockUp),
            ),
        ),
        with_filler(
            file_system,
            finding(
                FindingKind::CheckpointPressure,
                both(Part::Checkpoint),
                format!("the journal of {name} is too small: calls wait for space in it"),
                figures.checkpoint(),
            ),
        ),
        held(
            Part::DirectoryLock,
            finding(
                FindingKind::DirectoryLock,
                both(Part::DirectoryLock),
                format!("calls on {name} queue for the lock of a directory"),
                figures.calls_blocked(Part::DirectoryLock),
            ),
        ),
        held(
            Part::Lock,
            finding(
                FindingKind::FileLock,
                both(Part::Lock),
                format!("calls on {name} queue for the lock of a file"),
                figures.calls_blocked(Part::Lock),
            ),
        ),
        with_dirtier(
            file_system,
            finding(
                FindingKind::DirtyThrottling,
                both(Part::Throttle),
                format!(
                    "writers on {name} are slowed down, as more is made dirty than the disk takes"
                ),
                figures.calls_blocked(Part::Throttle),
            ),
        ),
        lost(
            &[Part::Runnable],
            finding(
                FindingKind::ProcessorBound,
                both(Part::Runnable),
                format!("callers on {name} are ready to go on, but find no processor"),
                figures.calls_blocked(Part::Runnable),
            ),
        ),
        held(
            Part::FastCommit,
            finding(
                FindingKind::FastCommitBound,
                both(Part::FastCommit),
                format!("calls on {name} wait for fast commits"),
                figures.calls_blocked(Part::FastCommit),
            ),
        ),
        lost(
            &[Part::UnknownCommit, Part::DataWriteback],
            finding(
                FindingKind::OtherLog,
                syncs.get(Part::UnknownCommit)
                    + if figures.has_journal() {
                        0
                    } else {
                        both(Part::DataWriteback)
                    },
                format!(
                    "fsyncs on {name} wait for its own log or data; it has no jbd2 commits to look into"
                ),
                figures.calls_blocked(Part::UnknownCommit),
            ),
        ),
    ];
    if figures.has_journal() {
        let device_ns = [Part::DataWriteback, Part::Device, Part::Flush]
            .map(both)
            .into_iter()
            .fold(syncs.own_commit(), u64::saturating_add);
        let device_ns = less(device_ns);
        found.push(lost(
            &DEVICE_PARTS,
            finding(
                FindingKind::DeviceBound,
                device_ns,
                format!("calls on {name} take as long as the device takes for their own work"),
                figures.device(report),
            ),
        ));
    }
    if let Some(foreign) = foreign {
        found.push(foreign.into_finding(file_system, &name));
    }
    found.retain(|finding| finding.cost_ns > 0);
    found
}

/// What another's data cost: the pair of victim and culprit with the greatest load, and all loads together.
struct Foreign<'a> {
    worst: &'a Blame,
    load_ns: u64,
}

fn foreign_data(report: &Report, dev: Dev) -> Option<Foreign<'_>> {
    let pairs = || {
        report.blame.iter().filter(move |blame| {
            blame.dev == dev && blame.load_ns > 0 && blame.victim.process != blame.culprit.process
        })
    };
    let worst = pairs().max_by_key(|blame| blame.load_ns)?;
    Some(Foreign {
        worst,
        load_ns: pairs().fold(0, |sum, blame| sum.saturating_add(blame.load_ns)),
    })
}

impl Foreign<'_> {
    fn into_finding(self, file_system: &FileSystemReport, name: &str) -> Finding {
        let data = file_system
            .commits
            .by
            .iter()
            .find(|by| by.party == self.worst.culprit)
            .map_or(0, |by| by.data_bytes);
        Finding {
            kind: FindingKind::SomeoneElsesData,
            sentence: format!(
                "{} waits on {name} because of data that {} wrote",
                said(&self.worst.victim),
                said(&self.worst.culprit)
            ),
            dev: Some(file_system.dev),
            cost_ns: self.load_ns,
            share: 0.0,
            victim: Some(self.worst.victim.clone()),
            culprit: Some(self.worst.culprit.clone()),
            evidence: vec![
                evidence(
                    "wait that the culprit's data added",
                    self.worst.load_ns as f64,
                    Unit::Ns,
                ),
                evidence(
                    "waits in which it took part",
                    self.worst.waits as f64,
                    Unit::Count,
                ),
                evidence(
                    "its longest share of one wait",
                    self.worst.worst_ns as f64,
                    Unit::Ns,
                ),
                evidence(
                    "the culprit's data written around commits",
                    data as f64,
                    Unit::Bytes,
                ),
                evidence(
                    "time that a mebibyte adds to a commit",
                    file_system.commits.ns_per_data_byte * f64::from(1 << 20),
                    Unit::Ns,
                ),
            ],
        }
    }
}

/// A process in words.
fn said(party: &Party) -> String {
    if party.comm.is_empty() {
        format!("process {}", party.process)
    } else {
        format!("{} ({})", party.comm, party.process)
    }
}

/// Whether little of the time that processes were not idle went into storage.
fn not_storage(report: &Report) -> Option<Finding> {
    let (mut active_ns, mut storage_ns, mut processor_ns, mut lock_ns) = (0, 0, 0, 0);
    let is_summary = report.is_of_sums();
    for account in &report.accounts.processes {
        // Sums have neither idleness nor waits for locks of user space: all that is left over.
        let left_ns = if is_summary {
            account.unaccounted_ns.max(0).unsigned_abs()
        } else {
            account.idle_ns
        };
        let on_processors_ns = account.user_ns.saturating_add(account.system_ns);
        let locks_ns = account.blocked.get("futex").copied().unwrap_or(0);
        let grow = |sum: &mut u64, ns: u64| *sum = sum.saturating_add(ns);
        grow(&mut active_ns, account.wall_ns.saturating_sub(left_ns));
        grow(&mut storage_ns, account.storage_ns);
        grow(&mut processor_ns, on_processors_ns);
        grow(&mut lock_ns, locks_ns);
    }
    let share = storage_ns as f64 / active_ns.max(1) as f64;
    (active_ns > 0 && share < STORAGE_SHARE).then(|| {
        let part = |ns: u64| ns as f64 / active_ns as f64;
        Finding {
            kind: FindingKind::NotStorage,
            sentence: "little time goes into files and disks".to_owned(),
            dev: None,
            cost_ns: active_ns.saturating_sub(storage_ns),
            share: 1.0 - share,
            victim: None,
            culprit: None,
            evidence: vec![
                evidence(
                    "share of the time not idle that is spent on storage",
                    share,
                    Unit::Share,
                ),
                evidence("share on processors", part(processor_ns), Unit::Share),
                evidence("share on locks of user space", part(lock_ns), Unit::Share),
            ],
        }
    })
}
