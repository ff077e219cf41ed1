//! Finds whether storage is the problem at all.

use super::figures::evidence;
use super::{Finding, FindingKind, Unit};
use crate::grow::Grow as _;
use crate::report::Report;

/// Below this share of the time that is not idle, storage is not the matter.
const MIN_STORAGE_SHARE: f64 = 0.10;

/// Returns the time that all processes waited for files and disks, in nanoseconds.
pub(super) fn storage_ns(report: &Report) -> u64 {
    let processes = report.accounts.processes.iter();
    processes.fold(0, |sum, account| sum.saturating_add(account.storage_ns))
}

/// Finds that storage took little of the time in which processes were not idle.
pub(super) fn not_storage(report: &Report) -> Option<Finding> {
    let (mut active_ns, mut storage_ns, mut processor_ns, mut lock_ns) = (0, 0, 0, 0);
    let is_summary = report.is_of_sums();
    for account in &report.accounts.processes {
        // Sums have neither idleness nor waits for locks of user space: all that is left over.
        let left_ns =
            if is_summary { account.unaccounted_ns.max(0).unsigned_abs() } else { account.idle_ns };
        let on_processors_ns = account.user_ns.saturating_add(account.system_ns);
        let locks_ns = account.blocked.get("futex").copied().unwrap_or(0);
        active_ns.grow(account.wall_ns.saturating_sub(left_ns));
        storage_ns.grow(account.storage_ns);
        processor_ns.grow(on_processors_ns);
        lock_ns.grow(locks_ns);
    }
    let share = storage_ns as f64 / active_ns.max(1) as f64;
    (active_ns > 0 && share < MIN_STORAGE_SHARE).then(|| {
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
                evidence("share of the time not idle that is spent on storage", share, Unit::Share),
                evidence("share on processors", part(processor_ns), Unit::Share),
                evidence("share on locks of user space", part(lock_ns), Unit::Share),
            ],
        }
    })
}
