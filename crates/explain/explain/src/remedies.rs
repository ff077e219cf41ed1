//! Remedies that lose no data, and their predicted gains.
//!
//! Gains are of the throughput of threads in a closed loop. If a fraction f of their working time goes away, their
//! throughput grows to 1 / (1 - f). That is an upper bound, since something else may then limit them. Only the gate's
//! gain comes from a model of its own.

use crate::disk_contention::{DiskContention, UndisturbedBasis};
use crate::findings::{Finding, FindingKind, Remedy, RemedyKind};
use crate::report::{FileSystemReport, TraceReport};

/// Basis of an upper bound.
const UPPER_BOUND_BASIS: &str = "upper bound: all of the time lost to this goes away";

/// Basis of the gate's predicted gain.
const CLOSED_LOOP_BASIS: &str = "model: a closed loop of the callers seen, sharing each commit";

/// Minimum throughput of read-ahead, relative to that of turns, to be proposed.
const MIN_READ_AHEAD_RATIO: f64 = 0.75;

/// Proposes remedies for the findings of a report.
pub(crate) fn propose(report: &TraceReport) -> Vec<Remedy> {
    report
        .findings
        .iter()
        .flat_map(|finding| {
            if finding.kind == FindingKind::DiskContention {
                let disk = report.disks.iter().find(|disk| Some(disk.dev) == finding.dev);
                return disk
                    .and_then(|disk| disk.contention.as_ref())
                    .map_or_else(Vec::new, |found| apart(finding, found));
            }
            let file_system =
                report.file_systems.iter().find(|file_system| Some(file_system.dev) == finding.dev);
            file_system.map_or_else(Vec::new, |found| against(finding, found))
        })
        .collect()
}

/// Proposes remedies for tasks that share a disk.
fn apart(finding: &Finding, found: &DiskContention) -> Vec<Remedy> {
    let remedy = |kind, sentence: &str, gain, basis| Remedy {
        kind,
        sentence: sentence.to_owned(),
        against: finding.kind,
        dev: finding.dev,
        predicted_gain: Some(gain),
        basis,
    };
    let mut remedies = vec![remedy(
        RemedyKind::Turns,
        "let them take turns: `luc throttle run` for commands, `luc throttle daemon` for services; \
         `luc throttle advise` says beforehand what it would do",
        found.gain,
        match found.basis {
            UndisturbedBasis::Assumed => {
                "the busy time with 50 MB/s, as of a disk with an arm, and the tasks' own pauses, against the time \
                 together"
            }
            UndisturbedBasis::Seen | UndisturbedBasis::Unknown => {
                "the busy time without what switches cost, and the tasks' own pauses, against the time together"
            }
        },
    )];
    let enough = |gain: f64| 1.0 + gain >= MIN_READ_AHEAD_RATIO * (1.0 + found.gain);
    if let Some(gain) = found.read_ahead_gain.filter(|&gain| enough(gain)) {
        remedies.push(remedy(
            RemedyKind::ReadAhead,
            "more read-ahead is nearly enough, as they read on where they stopped: \
             `blockdev --setra 8192 DEVICE` (4 MiB)",
            gain,
            "the same with a switch for each 4 MiB",
        ));
    }
    remedies
}

/// Proposes `luc run`, for the calls that it reaches.
fn gate(finding: &Finding, file_system: &FileSystemReport) -> Remedy {
    let (batching, ways) = (&file_system.batching, &file_system.syncs.ways);
    let passing_by = ways.passing_by();
    let (sentence, predicted_gain, basis) = match (&passing_by, batching.unknown) {
        (Some(others), _) if ways.calls == 0 => (
            format!("`luc run` cannot help here: {others} pass by it, and there is no other call"),
            Some(0.0),
            "it gets to calls of fsync, fdatasync and msync alone",
        ),
        (_, Some(why)) => ("the gate of `luc run` may help".to_owned(), None, why),
        (_, None) if !batching.would_help => (
            "the gate of `luc run` would gain too little here".to_owned(),
            Some(batching.gain * ways.share()),
            CLOSED_LOOP_BASIS,
        ),
        (None, None) => (
            "run the program under `luc run`, which brings its fsyncs into common commits"
                .to_owned(),
            Some(batching.gain),
            CLOSED_LOOP_BASIS,
        ),
        (Some(others), None) => (
            format!(
                "run the program under `luc run`, which brings its {} fsyncs into common commits; {others} pass by it",
                ways.calls
            ),
            Some(batching.gain * ways.share()),
            "model: a closed loop of the callers of fsync alone, sharing each commit, over all calls",
        ),
    };
    Remedy {
        kind: RemedyKind::Gate,
        sentence,
        against: finding.kind,
        dev: finding.dev,
        predicted_gain,
        basis,
    }
}

fn against(finding: &Finding, file_system: &FileSystemReport) -> Vec<Remedy> {
    let remedy = |kind, sentence: &str, predicted_gain, basis| Remedy {
        kind,
        sentence: sentence.to_owned(),
        against: finding.kind,
        dev: finding.dev,
        predicted_gain,
        basis,
    };
    let bounded = |kind, sentence| {
        let bound = 1.0 / (1.0 - finding.share.min(0.99)) - 1.0;
        remedy(kind, sentence, Some(bound), UPPER_BOUND_BASIS)
    };
    match finding.kind {
        FindingKind::SynchronizationBound => {
            let mut found = vec![gate(finding, file_system)];
            if !file_system.fast_commit {
                found.push(remedy(
                    RemedyKind::FastCommit,
                    "ext4's fast_commit batches by itself, but test it first with `luc powercut --mkfs-options '-O fast_commit'`",
                    None,
                    "the trace cannot tell which changes fast commits can take",
                ));
            }
            found
        }
        FindingKind::WriteDelayBound | FindingKind::LockUp => {
            let mut found = Vec::new();
            if finding.kind == FindingKind::WriteDelayBound {
                found.push(bounded(
                    RemedyKind::CopyOut,
                    "LUC's kernel module writes copies of metadata buffers to the journal, so that writes need not wait",
                ));
                if !file_system.options.contains("lazytime") {
                    found.push(remedy(
                        RemedyKind::Lazytime,
                        "mount with lazytime, so that writes that change only times do not touch the journal",
                        None,
                        "the trace cannot tell writes that change only times",
                    ));
                }
            }
            found.push(bounded(
                RemedyKind::OwnFileSystem,
                "give the writers that wait, or the callers of fsync, a file system of their own",
            ));
            found
        }
        FindingKind::SomeoneElsesData => vec![bounded(
            RemedyKind::OwnFileSystem,
            "give the culprit or the victim a file system of its own, best on another disk",
        )],
        FindingKind::CheckpointPressure => vec![bounded(
            RemedyKind::LargerJournal,
            "make the journal larger (`tune2fs -O ^has_journal`, then `tune2fs -J size=MEGABYTES`, unmounted)",
        )],
        FindingKind::DirectoryLock => vec![bounded(
            RemedyKind::MoreDirectories,
            "spread the files over several directories, as a directory takes one change at a time",
        )],
        FindingKind::DeviceBound => vec![remedy(
            RemedyKind::FasterDevice,
            "only a faster device helps, or one whose cache keeps its data in a power cut",
            None,
            "the trace knows this device only",
        )],
        FindingKind::FileLock
        | FindingKind::DirtyThrottling
        | FindingKind::FastCommitBound
        | FindingKind::ProcessorBound
        | FindingKind::OtherLog
        | FindingKind::Stopped
        | FindingKind::Frozen
        | FindingKind::Throttled
        | FindingKind::Lock
        | FindingKind::Timer
        | FindingKind::PageFaults
        | FindingKind::FullPipe
        | FindingKind::FileServer
        | FindingKind::MemoryLimit
        | FindingKind::HeldBack
        | FindingKind::DiskContention
        | FindingKind::NotStorage => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BatchingPrediction;
    use crate::sync_ways::SyncWayCounts;

    fn proposed(ways: SyncWayCounts, gain: f64) -> Remedy {
        let finding = Finding {
            kind: FindingKind::SynchronizationBound,
            sentence: String::new(),
            dev: None,
            cost_ns: 1,
            share: 0.9,
            victim: None,
            culprit: None,
            evidence: Vec::new(),
        };
        let mut file_system = FileSystemReport {
            batching: BatchingPrediction {
                would_help: gain > 0.05,
                gain,
                ..BatchingPrediction::default()
            },
            ..FileSystemReport::default()
        };
        file_system.syncs.ways = ways;
        gate(&finding, &file_system)
    }

    #[test]
    fn the_gate_is_proposed_for_calls_that_it_gets_to_alone() {
        let ways = |calls, sync_writes, io_uring| SyncWayCounts {
            calls,
            sync_writes,
            io_uring,
            others: 0,
        };
        let none = proposed(ways(0, 628, 0), 0.88);
        assert_eq!(none.predicted_gain, Some(0.0));
        assert!(none.sentence.contains("628 sync writes pass by"), "{none:?}");
        let half = proposed(ways(500, 0, 500), 0.88);
        assert_eq!(half.predicted_gain, Some(0.44));
        assert!(half.sentence.contains("its 500 fsyncs"), "{half:?}");
        let all = proposed(ways(500, 0, 0), 0.88);
        assert_eq!(all.predicted_gain, Some(0.88));
        // A trace of sums does not tell.
        assert_eq!(proposed(SyncWayCounts::default(), 0.88).predicted_gain, Some(0.88));
    }
}
