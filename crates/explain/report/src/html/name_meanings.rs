//! Meanings and colours of the names in a report.

use luc_explain::{CallTimePart, FindingKind, Remedy};

/// Explains a part of a call's time.
pub(super) fn of_part(part: CallTimePart) -> &'static str {
    match part {
        CallTimePart::DataWriteback => "the file's data was on its way to the disk",
        CallTimePart::Predecessor => "an earlier transaction's commit had to end first",
        CallTimePart::Start => "no commit ran yet: the journal thread had to begin",
        CallTimePart::Locking => "the own commit waited for running handles",
        CallTimePart::Flushing => "the own commit sent out data",
        CallTimePart::Logging => "the own commit wrote the journal and waited for the disk",
        CallTimePart::Done => "the own commit was over, the caller not woken yet",
        CallTimePart::UnknownCommit => "a commit that is not in the trace, or another log",
        CallTimePart::FastCommit => "a fast commit",
        CallTimePart::Flush => "a flush of the disk's cache outside a commit",
        CallTimePart::WriteDelay => "a buffer that a commit was writing",
        CallTimePart::LockUp => "a transaction that took no more handles",
        CallTimePart::Checkpoint => "space in the journal that a checkpoint had to free",
        CallTimePart::DirectoryLock => "a directory's lock",
        CallTimePart::Lock => "an inode's or another lock of the kernel",
        CallTimePart::Throttle => "slowed down by the kernel: too much data was dirty",
        CallTimePart::Device => "the device, otherwise",
        CallTimePart::Other => "blocked for another reason",
        CallTimePart::Runnable => "ready to run, but not on a processor",
        CallTimePart::Running => "on a processor",
    }
}

/// Returns a part's name in words.
pub(super) fn label(part: CallTimePart) -> String {
    part.name().replace('_', " ")
}

/// Returns a finding's name in words.
pub(super) fn finding(kind: FindingKind) -> String {
    kind.name().replace('_', " ")
}

/// Formats a predicted gain: `+73 %`.
pub(super) fn gain(remedy: &Remedy) -> Option<String> {
    let gain = remedy.predicted_gain.filter(|gain| gain.is_finite())?;
    Some(format!("{:+.0} %", gain * 100.0))
}

/// Colours of parts in the light and in the dark scheme, in the order of [`CallTimePart::ALL`]. Own commits are blue;
/// costs of others' work are red to yellow.
pub(super) const COLOURS: [(&str, &str); CallTimePart::ALL.len()] = [
    ("#0f8f83", "#2fb5a7"),
    ("#d1495b", "#f0717f"),
    ("#a9c7ee", "#34507a"),
    ("#7fa8e0", "#41659b"),
    ("#5288d1", "#5280c2"),
    ("#2563b8", "#6ea2ea"),
    ("#1b4a8c", "#9cc2f5"),
    ("#6b7280", "#8b93a1"),
    ("#6554c0", "#9285e8"),
    ("#3f8f3f", "#64b864"),
    ("#b3469b", "#d873c2"),
    ("#8e3ca8", "#b96fd3"),
    ("#8a5a2b", "#bd8a57"),
    ("#d98b1f", "#f0ab48"),
    ("#b8a11a", "#d6c34a"),
    ("#e2735c", "#f5937f"),
    ("#2b93b8", "#56b6d8"),
    ("#9aa1ab", "#6d7480"),
    ("#b9c79a", "#7f9158"),
    ("#d3d9cf", "#454d47"),
];
