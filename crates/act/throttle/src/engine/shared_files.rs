//! Finds tasks that read the same files.
//!
//! If they run at the same time, one finds in memory what another has read. Turns would prevent that: each task would
//! read all of a file that is larger than the memory.

use std::collections::BTreeMap;

use luc_control::throttle::sample::{Class, TaskId};

use super::task::Task;

/// Pairs each of these tasks with every batch task that has a large file open in common with it.
pub(super) fn find_pairs(tasks: &BTreeMap<TaskId, Task>, of: &[TaskId]) -> Vec<(TaskId, TaskId)> {
    let mut all = Vec::new();
    for (id, task) in of.iter().filter_map(|id| tasks.get_key_value(id)) {
        let others = tasks.iter().filter(|(other, _)| *other != id);
        let sharing = others
            .filter(|(_, other)| other.class == Class::Batch && task.shares_a_file_with(other));
        all.extend(sharing.map(|(other, _)| (*id, *other)));
    }
    all
}
