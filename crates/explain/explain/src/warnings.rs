//! Warnings of data at risk and of gaps in the trace.

use luc_events::Dev;

use crate::findings::{FindingKind, Warning, WarningKind};
use crate::report::{FileSystemReport, TraceReport};

/// Options that lose acknowledged data, or more of it than the default, in a power cut or crash.
const RISKY: [(&str, WarningKind, &str); 6] = [
    (
        "barrier=0",
        WarningKind::LosesData,
        "does not flush the disk's cache: a power cut loses acknowledged data and can break the file system",
    ),
    (
        "nobarrier",
        WarningKind::LosesData,
        "does not flush the disk's cache: a power cut loses acknowledged data and can break the file system",
    ),
    (
        "data=writeback",
        WarningKind::MayLoseData,
        "lets old contents show up in files after a crash, for data that was not synced",
    ),
    (
        "journal_async_commit",
        WarningKind::MayLoseData,
        "writes the commit record without waiting for the blocks it stands for",
    ),
    ("volatile", WarningKind::LosesData, "makes fsync do nothing"),
    ("norecovery", WarningKind::MayLoseData, "does not replay the journal when it is mounted"),
];

/// Returns the warnings about a report whose findings are known.
pub(crate) fn warn(report: &TraceReport) -> Vec<Warning> {
    let mut warnings: Vec<Warning> =
        report.file_systems.iter().filter(|found| found.is_used()).flat_map(about).collect();
    let is_about_commits = |kind| {
        matches!(
            kind,
            FindingKind::SynchronizationBound
                | FindingKind::WriteDelayBound
                | FindingKind::LockUp
                | FindingKind::DeviceBound
                | FindingKind::SomeoneElsesData
                | FindingKind::CheckpointPressure
                | FindingKind::FastCommitBound
        )
    };
    if report.findings.iter().any(|finding| is_about_commits(finding.kind)) {
        warnings.push(Warning {
            kind: WarningKind::FolkAdvice,
            dev: None,
            sentence: "barrier=0, data=writeback, a file system without a journal, and libraries that skip fsync \
                       are often advised against this, and lose data: none of them is among the remedies"
                .to_owned(),
        });
    }
    warnings.extend(incomplete(report));
    warnings
}

fn about(file_system: &FileSystemReport) -> Vec<Warning> {
    let place = if file_system.mount_point.is_empty() {
        format!("device {}", file_system.dev)
    } else {
        file_system.mount_point.clone()
    };
    let warning = |kind, sentence| Warning { kind, dev: Some(file_system.dev), sentence };
    let mut warnings: Vec<Warning> = RISKY
        .into_iter()
        .filter(|(option, _, _)| file_system.options.split(',').any(|found| found == *option))
        .map(|(option, kind, effect)| {
            warning(kind, format!("{place}: the option {option} {effect}"))
        })
        .collect();
    if file_system.fast_commit {
        warnings.push(warning(
            WarningKind::MayLoseData,
            format!(
                "{place}: fast_commit lost acknowledged files in power cuts on Linux 6.18; test your kernel with \
                 `luc powercut --mkfs-options '-O fast_commit'`"
            ),
        ));
    }
    if file_system.kind == "ext4" && file_system.journal_bytes == 0 {
        warnings.push(warning(
            WarningKind::MayLoseData,
            format!("{place}: this ext4 has no journal: after a crash it needs a full check and can lose files"),
        ));
    }
    warnings
}

fn incomplete(report: &TraceReport) -> Vec<Warning> {
    let warning = |sentence| Warning { kind: WarningKind::Incomplete, dev: None::<Dev>, sentence };
    let mut warnings: Vec<Warning> = report
        .lost
        .iter()
        .map(|(place, count)| {
            warning(format!(
                "the recorder lost {count} events ({place}): figures that rest on them are too low"
            ))
        })
        .collect();
    if report.is_of_sums() {
        warnings.push(warning(
            "recorded as summary: fsyncs are not split, nobody is blamed and nothing is predicted; \
             `luc record` without --summary has what this needs"
                .to_owned(),
        ));
    }
    if !report.trace.complete {
        warnings.push(warning(
            "the recorder did not finish: the last seconds may be missing".to_owned(),
        ));
    }
    if report.omitted.syncs_without_waits > 0 {
        warnings.push(warning(format!(
            "{} long fsyncs have no recorded wait: their time is taken as waiting for their commit",
            report.omitted.syncs_without_waits
        )));
    }
    warnings
}
