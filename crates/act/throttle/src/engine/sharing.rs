//! Tasks that read the same files.
//!
//! What one has read the others find in memory, if they run at the same time. Turns would take that away: where the
//! file is larger than the memory, each would read all of it.

use std::collections::BTreeMap;

use luc_control::throttle::sample::{Class, TaskId};

use super::task::Task;

/// Each of these tasks with each batch task that has a large file open that it has open, too.
pub(super) fn pairs(tasks: &BTreeMap<TaskId, Task>, of: &[TaskId]) -> Vec<(TaskId, TaskId)> {
    let mut all = Vec::new();
    for (id, task) in of.iter().filter_map(|id| tasks.get_key_value(id)) {
        let others = tasks.iter().filter(|(other, _)| *other != id);
        let sharing = others
            .filter(|(_, other)| other.class == Class::Batch && task.shares_a_file_with(other));
        all.extend(sharing.map(|(other, _)| (*id, *other)));
    }
    all
}
