//! Finds problems by the figures, most important first.
//!
//! Each finding has a cost: the time that threads lost to it. All costs are shares of one time, in which threads worked,
//! and rank by that. One rule comes before: a limit, such as a slow device, comes after findings on files that
//! something cures and that cost a tenth.

use luc_events::Dev;

use super::actors::{in_words, with_dirtier, with_filler, with_holder, with_victim};
use super::contention::on_disks;
use super::finding_inputs::{FindingInputs, evidence};
use super::lost_time::in_threads;
use super::main_occupation::main_occupation;
use super::{FigureUnit, Finding, FindingFigure, FindingKind};
use crate::call_time_parts::{CallTimePart, CallTimeParts};
use crate::report::{BlameReport, FileSystemReport, TraceReport};
use crate::saturating_grow::SaturatingGrow as _;
use crate::wait_losses::ActorLoss;

/// Minimum share of a finding that is listed: of the working time, or of the time in file-system calls.
const MIN_LISTED_SHARE: f64 = 0.02;
/// Minimum share of a finding that explains the trace.
const MIN_LEADING_SHARE: f64 = 0.10;

/// Minimum part of the trace's length of a finding that explains the trace: one in this many.
const MIN_LEADING_PART: u64 = 20;

/// Parts that are the device's work for the caller itself.
const DEVICE_PARTS: [CallTimePart; 8] = [
    CallTimePart::Start,
    CallTimePart::Locking,
    CallTimePart::Flushing,
    CallTimePart::Logging,
    CallTimePart::Done,
    CallTimePart::DataWriteback,
    CallTimePart::Device,
    CallTimePart::Flush,
];

/// Returns the findings of a report whose other parts are filled, most important first.
pub(crate) fn find(report: &TraceReport, losses: &[ActorLoss]) -> Vec<Finding> {
    let calls_ns: u64 = report
        .processes
        .iter()
        .map(|process| process.sync_ns.saturating_add(process.call_ns))
        .fold(0, u64::saturating_add);
    let contention = on_disks(report);
    let in_file_systems = report
        .file_systems
        .iter()
        .filter(is_known)
        .flat_map(|file_system| in_file_system(report, file_system, &contention));
    let mut found: Vec<Finding> = in_file_systems.collect();
    add_waits_behind(report.working.behind_storage_ns, &mut found);
    let mut in_findings_ns: u64 =
        report.file_systems.iter().filter(is_known).map(blocked_ns).fold(0, u64::saturating_add);
    for on_disk in &contention {
        in_findings_ns.grow(on_disk.cost_ns);
    }
    found.extend(contention);
    found.extend(in_threads(report, losses, in_findings_ns));
    ranked(report, found, calls_ns)
}

/// Returns whether calls on it tell which file system they were on.
fn is_known(file_system: &&FileSystemReport) -> bool {
    file_system.dev != Dev::default()
}

/// Adds the time of threads that wait for others in calls on files, to each finding by its cost.
fn add_waits_behind(behind_ns: u64, found: &mut [Finding]) {
    let calls_ns = found.iter().fold(0_u64, |sum, finding| sum.saturating_add(finding.cost_ns));
    for finding in found.iter_mut().filter(|_| behind_ns > 0) {
        let part = finding.cost_ns as f64 / calls_ns.max(1) as f64;
        let more_ns = (behind_ns as f64 * part) as u64;
        finding.cost_ns.grow(more_ns);
        finding.evidence.push(evidence(
            "of that, time of threads that wait for a lock of such a caller",
            more_ns as f64,
            FigureUnit::Ns,
        ));
    }
}

/// Sets the findings' shares of the working time, drops small ones, and sorts the most important first. `calls_ns` is
/// the time in calls on files.
pub(crate) fn ranked(report: &TraceReport, found: Vec<Finding>, calls_ns: u64) -> Vec<Finding> {
    let min_ns = calls_ns as f64 * MIN_LISTED_SHARE;
    let mut found: Vec<Finding> = found
        .into_iter()
        .map(|finding| Finding { share: report.working.share(finding.cost_ns), ..finding })
        .filter(|finding| {
            let is_of_calls = finding.kind.is_on_files() && finding.cost_ns as f64 >= min_ns;
            finding.share >= MIN_LISTED_SHARE || is_of_calls
        })
        .collect();
    found.sort_by_key(|finding| std::cmp::Reverse(finding.cost_ns));
    // What can be cured comes before the limits.
    if let Some(first) = found.iter().position(|finding| finding.kind.is_limit()) {
        found[first..].sort_by_key(|finding| !is_cured(finding));
    }
    if let Some(finding) = not_storage(report, &found) {
        found.insert(0, finding);
    }
    found
}

fn is_cured(finding: &Finding) -> bool {
    finding.kind.is_on_files() && !finding.kind.is_limit() && finding.share >= MIN_LEADING_SHARE
}

/// Finds that storage took little of the time in which threads worked, and that nothing else explains it.
fn not_storage(report: &TraceReport, found: &[Finding]) -> Option<Finding> {
    let working = &report.working;
    let share = working.share(working.storage_ns);
    let length_ns = report.trace.end_ns.saturating_sub(report.trace.start_ns);
    let is_explained = found.iter().any(|finding| {
        finding.share >= MIN_LEADING_SHARE && finding.cost_ns >= length_ns / MIN_LEADING_PART
    });
    let is_seen = working.total_ns > 0 || !report.accounts.processes.is_empty();
    (is_seen && !is_explained && share < MIN_LEADING_SHARE).then(|| Finding {
        kind: FindingKind::NotStorage,
        sentence: match main_occupation(report) {
            Some(occupation) => format!("little time goes into files and disks: {occupation}"),
            None => "little time goes into files and disks".to_owned(),
        },
        dev: None,
        cost_ns: working.total_ns.saturating_sub(working.storage_ns),
        share: 1.0 - share,
        victim: None,
        culprit: None,
        evidence: vec![
            evidence("share of the working time for files and disks", share, FigureUnit::Share),
            evidence("share on processors", working.share(working.computed_ns), FigureUnit::Share),
            evidence(
                "share of unknown cause",
                working.share(working.unknown_ns),
                FigureUnit::Share,
            ),
        ],
    })
}

/// Returns the time of calls on a file system by part: fsyncs, and all others.
fn time(file_system: &FileSystemReport) -> (CallTimeParts, CallTimeParts) {
    let mut calls = CallTimeParts::default();
    for call in file_system.calls.values() {
        calls.add_all(&call.parts);
    }
    (file_system.syncs.parts, calls)
}

/// Returns the time that calls on a file system were blocked.
fn blocked_ns(file_system: &FileSystemReport) -> u64 {
    let (syncs, calls) = time(file_system);
    let parts = syncs.iter().chain(calls.iter());
    let blocked =
        parts.filter(|(part, _)| !matches!(part, CallTimePart::Running | CallTimePart::Runnable));
    blocked.fold(0, |sum, (_, ns)| sum.saturating_add(ns))
}

/// A finding that costs what calls spend in one part.
struct Rule {
    kind: FindingKind,
    part: CallTimePart,
    /// `{}` is the file system.
    sentence: &'static str,
    names: NamedActors,
    /// Whether another's data in commits makes the part longer.
    grows_with_data: bool,
}

/// Actors that a finding names.
enum NamedActors {
    /// The one that lost most, and the one that held it up longest.
    Holder,
    /// The one that filled the journal.
    Filler,
    /// The one that dirtied most data.
    Dirtier,
}

/// Sentence on fsyncs that wait for useless commits because they come one after another while the journal rests.
const SPREAD_SENTENCE: &str =
    "fsyncs on {} come one after another, and wait for a commit that closed before they came";

const RULES: [Rule; 8] = [
    Rule {
        kind: FindingKind::SynchronizationBound,
        part: CallTimePart::Predecessor,
        sentence: "fsyncs on {} wait for commits that do not serve them",
        names: NamedActors::Holder,
        grows_with_data: true,
    },
    Rule {
        kind: FindingKind::WriteDelayBound,
        part: CallTimePart::WriteDelay,
        sentence: "writes on {} wait for buffers that a commit is writing to the journal",
        names: NamedActors::Holder,
        grows_with_data: true,
    },
    Rule {
        kind: FindingKind::LockUp,
        part: CallTimePart::LockUp,
        sentence: "calls on {} wait for a transaction that takes no more changes",
        names: NamedActors::Holder,
        grows_with_data: true,
    },
    Rule {
        kind: FindingKind::CheckpointPressure,
        part: CallTimePart::Checkpoint,
        sentence: "the journal of {} is too small: calls wait for space in it",
        names: NamedActors::Filler,
        grows_with_data: false,
    },
    Rule {
        kind: FindingKind::DirectoryLock,
        part: CallTimePart::DirectoryLock,
        sentence: "calls on {} queue for the lock of a directory",
        names: NamedActors::Holder,
        grows_with_data: false,
    },
    Rule {
        kind: FindingKind::FileLock,
        part: CallTimePart::Lock,
        sentence: "calls on {} queue for the lock of a file",
        names: NamedActors::Holder,
        grows_with_data: false,
    },
    Rule {
        kind: FindingKind::DirtyThrottling,
        part: CallTimePart::Throttle,
        sentence: "writers on {} are slowed down, as more is made dirty than the disk takes",
        names: NamedActors::Dirtier,
        grows_with_data: false,
    },
    Rule {
        kind: FindingKind::FastCommitBound,
        part: CallTimePart::FastCommit,
        sentence: "calls on {} wait for fast commits",
        names: NamedActors::Holder,
        grows_with_data: false,
    },
];

/// `contention` is what was found on the disks, whose cost is not the file systems' as well.
fn in_file_system(
    report: &TraceReport,
    file_system: &FileSystemReport,
    contention: &[Finding],
) -> Vec<Finding> {
    let (syncs, calls) = time(file_system);
    let foreign = foreign_data(report, file_system.dev);
    let place = Place {
        file_system,
        figures: FindingInputs { file_system, syncs: &syncs, calls: &calls },
        foreign_ns: foreign.as_ref().map_or(0, |foreign| foreign.load_ns),
    };
    let mut found: Vec<Finding> = RULES.iter().map(|rule| place.by_rule(rule)).collect();
    found.push(place.other_log());
    let mut device = place.device(report);
    for on_disk in contention {
        if on_disk.dev == Some(file_system.disk) {
            device.cost_ns = device.cost_ns.saturating_sub(on_disk.cost_ns);
        }
    }
    found.push(device);
    if let Some(foreign) = foreign {
        found.push(foreign.into_finding(file_system, &place.figures.place()));
    }
    found.retain(|finding| finding.cost_ns > 0);
    found
}

/// A file system, and the time that calls on it took.
struct Place<'a> {
    file_system: &'a FileSystemReport,
    figures: FindingInputs<'a>,
    /// Time that another's data added to waits.
    foreign_ns: u64,
}

impl Place<'_> {
    /// Returns the time of fsyncs and other calls in a part.
    fn both(&self, part: CallTimePart) -> u64 {
        let FindingInputs { syncs, calls, .. } = self.figures;
        syncs.get(part).saturating_add(calls.get(part))
    }

    /// Returns the part of `ns` that another's data did not add. The data lengthens all waits for commits and data by
    /// the same share.
    fn without_foreign(&self, ns: u64) -> u64 {
        let waits = [
            CallTimePart::WriteDelay,
            CallTimePart::LockUp,
            CallTimePart::Predecessor,
            CallTimePart::DataWriteback,
            CallTimePart::Device,
            CallTimePart::Flush,
        ];
        let own_ns = self.figures.syncs.own_commit();
        let exposed_ns =
            waits.map(|part| self.both(part)).into_iter().fold(own_ns, u64::saturating_add);
        let own = 1.0 - (self.foreign_ns as f64 / exposed_ns.max(1) as f64).min(1.0);
        (ns as f64 * own) as u64
    }

    fn finding(
        &self,
        kind: FindingKind,
        cost_ns: u64,
        sentence: &str,
        evidence: Vec<FindingFigure>,
    ) -> Finding {
        Finding {
            kind,
            sentence: sentence.replace("{}", &self.figures.place()),
            dev: Some(self.file_system.dev),
            cost_ns,
            share: 0.0,
            victim: None,
            culprit: None,
            evidence,
        }
    }

    fn by_rule(&self, rule: &Rule) -> Finding {
        let cost_ns = match rule.kind {
            // Only an fsync waits for a commit that does not serve it.
            FindingKind::SynchronizationBound => self.figures.syncs.get(rule.part),
            _ => self.both(rule.part),
        };
        let cost_ns = if rule.grows_with_data { self.without_foreign(cost_ns) } else { cost_ns };
        let evidence = match rule.kind {
            FindingKind::SynchronizationBound => self.figures.synchronization(),
            FindingKind::WriteDelayBound => self.figures.write_delay(),
            FindingKind::CheckpointPressure => self.figures.checkpoint(),
            _ => self.figures.calls_blocked(rule.part),
        };
        let sentence = match rule.kind {
            FindingKind::SynchronizationBound if self.figures.come_spread() => SPREAD_SENTENCE,
            _ => rule.sentence,
        };
        let finding = self.finding(rule.kind, cost_ns, sentence, evidence);
        match rule.names {
            NamedActors::Holder => with_holder(self.file_system, rule.part, finding),
            NamedActors::Filler => with_filler(self.file_system, finding),
            NamedActors::Dirtier => with_dirtier(self.file_system, finding),
        }
    }

    /// Waits of file systems that have a log of another kind.
    fn other_log(&self) -> Finding {
        let data_ns =
            if self.figures.has_journal() { 0 } else { self.both(CallTimePart::DataWriteback) };
        let finding = self.finding(
            FindingKind::OtherLog,
            self.figures.syncs.get(CallTimePart::UnknownCommit) + data_ns,
            "fsyncs on {} wait for its own log or data; it has no jbd2 commits to look into",
            self.figures.calls_blocked(CallTimePart::UnknownCommit),
        );
        let parts = [CallTimePart::UnknownCommit, CallTimePart::DataWriteback];
        with_victim(self.file_system, &parts, finding)
    }

    /// Finds the device's time for callers' own work. Data of another log's file system are in `other_log`.
    fn device(&self, report: &TraceReport) -> Finding {
        let mut device_ns = self.figures.syncs.own_commit();
        device_ns.grow(self.both(CallTimePart::Device));
        device_ns.grow(self.both(CallTimePart::Flush));
        if self.figures.has_journal() {
            device_ns.grow(self.both(CallTimePart::DataWriteback));
        }
        let finding = self.finding(
            FindingKind::DeviceBound,
            self.without_foreign(device_ns),
            "calls on {} take as long as the device takes for their own work",
            self.figures.device(report),
        );
        with_victim(self.file_system, &DEVICE_PARTS, finding)
    }
}

/// The cost of another's data: the pair of victim and culprit with the greatest load, and all loads together.
struct Foreign<'a> {
    worst: &'a BlameReport,
    load_ns: u64,
}

fn foreign_data(report: &TraceReport, dev: Dev) -> Option<Foreign<'_>> {
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
            .find(|by| by.actor == self.worst.culprit)
            .map_or(0, |by| by.data_bytes);
        Finding {
            kind: FindingKind::SomeoneElsesData,
            sentence: format!(
                "{} waits on {name} because of data that {} wrote",
                in_words(&self.worst.victim),
                in_words(&self.worst.culprit)
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
                    FigureUnit::Ns,
                ),
                evidence("waits in which it took part", self.worst.waits as f64, FigureUnit::Count),
                evidence(
                    "its longest share of one wait",
                    self.worst.worst_ns as f64,
                    FigureUnit::Ns,
                ),
                evidence(
                    "the culprit's data written around commits",
                    data as f64,
                    FigureUnit::Bytes,
                ),
                evidence(
                    "time that a mebibyte adds to a commit",
                    file_system.commits.ns_per_data_byte * f64::from(1 << 20),
                    FigureUnit::Ns,
                ),
            ],
        }
    }
}
