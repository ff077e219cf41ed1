//! Finds tasks that read the same files.
//!
//! If they run at the same time, one finds in memory what another has read. Turns would prevent that: each task would
//! read all of a file that is larger than the memory.

use std::collections::BTreeMap;

use luc_control::throttle::policy_input::{TaskClass, TaskId};

use super::throttled_task::ThrottledTask;

/// Pairs each of these tasks with every batch task that has a large file open in common with it.
pub(super) fn find_pairs(
    tasks: &BTreeMap<TaskId, ThrottledTask>,
    of: &[TaskId],
) -> Vec<(TaskId, TaskId)> {
    let mut all = Vec::new();
    for (id, task) in of.iter().filter_map(|id| tasks.get_key_value(id)) {
        let others = tasks.iter().filter(|(other, _)| *other != id);
        let sharing = others
            .filter(|(_, other)| other.class == TaskClass::Batch && task.shares_a_file_with(other));
        all.extend(sharing.map(|(other, _)| (*id, *other)));
    }
    all
}
