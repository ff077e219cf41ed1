//! The bounds that hold whatever the order: how long a task may be frozen, and how late it may be.

use super::super::fair::FairSharing;
use super::super::sample::TaskId;
use super::AutoConfig;
use super::task::Table;

/// A task is thawed this long before it must be, so that a look that comes late is not too late, ns.
const AHEAD_NS: u64 = 20_000_000;

/// What a starved task gets at least, ns: the shortest turn, or less where the tasks are too many for it.
pub(super) fn least_turn_ns(config: &AutoConfig, tasks: usize) -> u64 {
    super::MIN_TURN_NS.min(config.max_frozen_ns / (tasks.max(1) as u64 + 1))
}

/// When a task that is frozen since `since_ns` must be thawed, ns.
pub(super) fn deadline_ns(config: &AutoConfig, since_ns: u64) -> u64 {
    since_ns.saturating_add(config.max_frozen_ns).saturating_sub(AHEAD_NS)
}

/// The task that must run now lest somebody be frozen too long, if all that are frozen are given the shortest turn
/// one after the other: the earliest deadline first.
pub(super) fn starved(table: &Table, config: &AutoConfig, now_ns: u64) -> Option<TaskId> {
    let mut frozen: Vec<(u64, TaskId)> = table
        .competing()
        .filter(|task| task.is_frozen)
        .map(|task| (deadline_ns(config, task.since_ns), task.id()))
        .collect();
    let turn_ns = least_turn_ns(config, frozen.len());
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

/// Tasks that would finish later than `max_slowdown` times fair sharing, by what they are known or believed to lack,
/// were they not served within `ahead_ns`; whoever must be done first is first.
pub(super) fn late(
    table: &Table,
    fair: &FairSharing,
    config: &AutoConfig,
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
