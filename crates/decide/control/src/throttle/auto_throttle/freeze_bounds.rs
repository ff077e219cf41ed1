//! Bounds that hold for every order: how long a task may be frozen, and how late it may finish.

use super::super::fair_sojourn::FairSharing;
use super::super::policy_input::TaskId;
use super::AutoThrottleConfig;
use super::policy_task::TaskTable;

/// Margin before a freeze deadline, ns, so that a late look still meets it.
const DEADLINE_MARGIN_NS: u64 = 20_000_000;

/// Shortest turn of a starved task, ns. It is shorter where many tasks must share `max_frozen_ns`.
pub(super) fn min_turn_ns(config: &AutoThrottleConfig, tasks: usize) -> u64 {
    super::MIN_TURN_NS.min(config.max_frozen_ns / (tasks.max(1) as u64 + 1))
}

/// Latest thaw of a task that is frozen since `since_ns`, ns.
pub(super) fn deadline_ns(config: &AutoThrottleConfig, since_ns: u64) -> u64 {
    since_ns.saturating_add(config.max_frozen_ns).saturating_sub(DEADLINE_MARGIN_NS)
}

/// Finds the task that must run now so that no freeze becomes too long. It assumes that all frozen tasks get the
/// shortest turn, the earliest deadline first.
pub(super) fn find_starved(
    table: &TaskTable,
    config: &AutoThrottleConfig,
    now_ns: u64,
) -> Option<TaskId> {
    let mut frozen: Vec<(u64, TaskId)> = table
        .competing()
        .filter(|task| task.is_frozen)
        .map(|task| (deadline_ns(config, task.since_ns), task.id()))
        .collect();
    let turn_ns = min_turn_ns(config, frozen.len());
    let first_ns = frozen.iter().map(|(deadline_ns, _)| *deadline_ns).min()?;
    if first_ns > now_ns.saturating_add(frozen.len() as u64 * turn_ns) {
        return None;
    }
    frozen.sort_unstable();
    let must = (0_u64..)
        .zip(&frozen)
        .any(|(before, (deadline_ns, _))| now_ns.saturating_add(before * turn_ns) >= *deadline_ns);
    frozen.first().filter(|_| must).map(|(_, task)| *task)
}

/// Finds tasks that would exceed `max_slowdown` if they were not served within `ahead_ns`. Uses the known or believed
/// work that they lack. The earliest deadline comes first.
pub(super) fn find_late(
    table: &TaskTable,
    fair: &FairSharing,
    config: &AutoThrottleConfig,
    lacking_ns: impl Fn(TaskId) -> Option<u64>,
    now_ns: u64,
    ahead_ns: u64,
) -> Vec<TaskId> {
    let mut late: Vec<(u64, TaskId)> = fair
        .finishes(now_ns)
        .into_iter()
        .filter(|finish| table.get(finish.task).is_some_and(|task| task.competes()))
        .filter_map(|finish| {
            let fair_ns = finish.finish_ns.saturating_sub(finish.arrived_ns) as f64;
            let latest_end_ns =
                finish.arrived_ns.saturating_add((fair_ns * config.max_slowdown) as u64);
            let latest_begin_ns = latest_end_ns.saturating_sub(lacking_ns(finish.task)?);
            (latest_begin_ns <= now_ns.saturating_add(ahead_ns))
                .then_some((latest_end_ns, finish.task))
        })
        .collect();
    late.sort_unstable();
    late.into_iter().map(|(_, task)| task).collect()
}
