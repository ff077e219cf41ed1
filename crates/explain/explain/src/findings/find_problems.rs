//! Finds problems by the figures, most important first.
//!
//! Each finding has a cost: the time that threads lost to it. Curable findings rank by their cost. Limits are a slow
//! device, or a program that hardly uses storage. They come first only if no curable finding costs a tenth of the
//! time.

use luc_events::{Cause, Dev};

use super::actors::{in_words, with_dirtier, with_filler, with_holder, with_victim};
use super::contention::on_disks;
use super::figures::{Figures, evidence};
use super::kept::{frozen, thread_time_ns, throttled};
use super::storage::{not_storage, storage_ns};
use super::{Evidence, Finding, FindingKind, Unit};
use crate::parts::{Part, Parts};
use crate::report::{Blame, FileSystemReport, Report};

/// Minimum share of the time in file-system calls of a finding that is listed.
const MIN_LISTED_SHARE: f64 = 0.02;
/// Minimum share of a finding that comes before the limits.
const MIN_LEADING_SHARE: f64 = 0.10;

/// Parts that are the device's work for the caller itself.
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

/// Returns the findings of a report whose other parts are filled, most important first.
pub(crate) fn find(report: &Report) -> Vec<Finding> {
    let total_ns: u64 = report
        .processes
        .iter()
        .map(|process| process.sync_ns.saturating_add(process.call_ns))
        .fold(0, u64::saturating_add);
    let contention = on_disks(report);
    let in_file_systems = report
        .file_systems
        .iter()
        .flat_map(|file_system| in_file_system(report, file_system, &contention));
    let mut found: Vec<Finding> = in_file_systems.collect();
    found.extend(contention);
    found.extend(frozen(report));
    found.extend(throttled(report));
    ranked(report, found, total_ns)
}

/// Sets the findings' shares of `total_ns`, drops those below [`MIN_LISTED_SHARE`], and sorts the most important first.
pub(crate) fn ranked(report: &Report, found: Vec<Finding>, total_ns: u64) -> Vec<Finding> {
    let share = |finding: &Finding| {
        let of_ns = match finding.kind {
            // Not all that waits for a disk is a call on a file.
            FindingKind::DiskContention => total_ns.max(storage_ns(report)).max(finding.cost_ns),
            FindingKind::Frozen => thread_time_ns(report, Cause::Frozen),
            FindingKind::Throttled => thread_time_ns(report, Cause::Throttled),
            _ => total_ns,
        };
        finding.cost_ns as f64 / of_ns.max(1) as f64
    };
    let mut found: Vec<Finding> = found
        .into_iter()
        .map(|finding| Finding { share: share(&finding), ..finding })
        .filter(|finding| finding.share >= MIN_LISTED_SHARE)
        .collect();
    found.sort_by(|a, b| rank(a).cmp(&rank(b)).then(b.share.total_cmp(&a.share)));
    if let Some(finding) = not_storage(report) {
        found.insert(0, finding);
    }
    found
}

/// Ranks costly curable findings first, then limits, then cheap ones.
fn rank(finding: &Finding) -> u8 {
    match (finding.kind.is_limit(), finding.share >= MIN_LEADING_SHARE) {
        (false, true) => 0,
        (true, true) => 1,
        (false, false) => 2,
        (true, false) => 3,
    }
}

/// Returns the time of calls on a file system by part: fsyncs, and all others.
fn time(file_system: &FileSystemReport) -> (Parts, Parts) {
    let mut calls = Parts::default();
    for call in file_system.calls.values() {
        calls.add_all(&call.parts);
    }
    (file_system.syncs.parts, calls)
}

/// A finding that costs what calls spend in one part.
struct Rule {
    kind: FindingKind,
    part: Part,
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
    Victim,
    /// The one that filled the journal.
    Filler,
    /// The one that dirtied most data.
    Dirtier,
}

/// Sentence on fsyncs that wait for useless commits because they come one after another while the journal rests.
const SPREAD_SENTENCE: &str =
    "fsyncs on {} come one after another, and wait for a commit that closed before they came";

const RULES: [Rule; 9] = [
    Rule {
        kind: FindingKind::SynchronizationBound,
        part: Part::Predecessor,
        sentence: "fsyncs on {} wait for commits that do not serve them",
        names: NamedActors::Holder,
        grows_with_data: true,
    },
    Rule {
        kind: FindingKind::WriteDelayBound,
        part: Part::WriteDelay,
        sentence: "writes on {} wait for buffers that a commit is writing to the journal",
        names: NamedActors::Holder,
        grows_with_data: true,
    },
    Rule {
        kind: FindingKind::LockUp,
        part: Part::LockUp,
        sentence: "calls on {} wait for a transaction that takes no more changes",
        names: NamedActors::Holder,
        grows_with_data: true,
    },
    Rule {
        kind: FindingKind::CheckpointPressure,
        part: Part::Checkpoint,
        sentence: "the journal of {} is too small: calls wait for space in it",
        names: NamedActors::Filler,
        grows_with_data: false,
    },
    Rule {
        kind: FindingKind::DirectoryLock,
        part: Part::DirectoryLock,
        sentence: "calls on {} queue for the lock of a directory",
        names: NamedActors::Holder,
        grows_with_data: false,
    },
    Rule {
        kind: FindingKind::FileLock,
        part: Part::Lock,
        sentence: "calls on {} queue for the lock of a file",
        names: NamedActors::Holder,
        grows_with_data: false,
    },
    Rule {
        kind: FindingKind::DirtyThrottling,
        part: Part::Throttle,
        sentence: "writers on {} are slowed down, as more is made dirty than the disk takes",
        names: NamedActors::Dirtier,
        grows_with_data: false,
    },
    Rule {
        kind: FindingKind::ProcessorBound,
        part: Part::Runnable,
        sentence: "callers on {} are ready to go on, but find no processor",
        names: NamedActors::Victim,
        grows_with_data: false,
    },
    Rule {
        kind: FindingKind::FastCommitBound,
        part: Part::FastCommit,
        sentence: "calls on {} wait for fast commits",
        names: NamedActors::Holder,
        grows_with_data: false,
    },
];

/// `contention` is what was found on the disks, whose cost is not the file systems' as well.
fn in_file_system(
    report: &Report,
    file_system: &FileSystemReport,
    contention: &[Finding],
) -> Vec<Finding> {
    let (syncs, calls) = time(file_system);
    let foreign = foreign_data(report, file_system.dev);
    let place = Place {
        file_system,
        figures: Figures { file_system, syncs: &syncs, calls: &calls },
        foreign_ns: foreign.as_ref().map_or(0, |foreign| foreign.load_ns),
    };
    let mut found: Vec<Finding> = RULES.iter().map(|rule| place.by_rule(rule)).collect();
    found.push(place.other_log());
    if place.figures.has_journal() {
        let mut device = place.device(report);
        for on_disk in contention {
            if on_disk.dev == Some(file_system.disk) {
                device.cost_ns = device.cost_ns.saturating_sub(on_disk.cost_ns);
            }
        }
        found.push(device);
    }
    if let Some(foreign) = foreign {
        found.push(foreign.into_finding(file_system, &place.figures.place()));
    }
    found.retain(|finding| finding.cost_ns > 0);
    found
}

/// A file system, and the time that calls on it took.
struct Place<'a> {
    file_system: &'a FileSystemReport,
    figures: Figures<'a>,
    /// Time that another's data added to waits.
    foreign_ns: u64,
}

impl Place<'_> {
    /// Returns the time of fsyncs and other calls in a part.
    fn both(&self, part: Part) -> u64 {
        let Figures { syncs, calls, .. } = self.figures;
        syncs.get(part).saturating_add(calls.get(part))
    }

    /// Returns the part of `ns` that another's data did not add. The data lengthens all waits for commits and data by
    /// the same share.
    fn without_foreign(&self, ns: u64) -> u64 {
        let waits = [
            Part::WriteDelay,
            Part::LockUp,
            Part::Predecessor,
            Part::DataWriteback,
            Part::Device,
            Part::Flush,
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
        evidence: Vec<Evidence>,
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
            NamedActors::Victim => with_victim(self.file_system, &[rule.part], finding),
            NamedActors::Filler => with_filler(self.file_system, finding),
            NamedActors::Dirtier => with_dirtier(self.file_system, finding),
        }
    }

    /// Waits of file systems that have a log of another kind.
    fn other_log(&self) -> Finding {
        let data_ns = if self.figures.has_journal() { 0 } else { self.both(Part::DataWriteback) };
        let finding = self.finding(
            FindingKind::OtherLog,
            self.figures.syncs.get(Part::UnknownCommit) + data_ns,
            "fsyncs on {} wait for its own log or data; it has no jbd2 commits to look into",
            self.figures.calls_blocked(Part::UnknownCommit),
        );
        let parts = [Part::UnknownCommit, Part::DataWriteback];
        with_victim(self.file_system, &parts, finding)
    }

    /// Finds the device's time for callers' own work.
    fn device(&self, report: &Report) -> Finding {
        let own_ns = self.figures.syncs.own_commit();
        let device_ns = [Part::DataWriteback, Part::Device, Part::Flush]
            .map(|part| self.both(part))
            .into_iter()
            .fold(own_ns, u64::saturating_add);
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
                evidence("wait that the culprit's data added", self.worst.load_ns as f64, Unit::Ns),
                evidence("waits in which it took part", self.worst.waits as f64, Unit::Count),
                evidence("its longest share of one wait", self.worst.worst_ns as f64, Unit::Ns),
                evidence("the culprit's data written around commits", data as f64, Unit::Bytes),
                evidence(
                    "time that a mebibyte adds to a commit",
                    file_system.commits.ns_per_data_byte * f64::from(1 << 20),
                    Unit::Ns,
                ),
            ],
        }
    }
}
