//! Tells threads apart: the kernel reuses their ids, so each query has a time.

use std::collections::HashMap;

use luc_events::tables::ThreadInfo;
use luc_fleet_requests::ThreadIdentity;

/// Threads of one host.
#[derive(Debug, Default)]
pub(crate) struct HostTasks {
    lives: HashMap<u32, Vec<Life>>,
}

/// Thread that had an id for some time.
#[derive(Debug)]
struct Life {
    start_ns: u64,
    comm: String,
    process: u32,
}

impl HostTasks {
    /// Reads rows that are in order of time.
    pub(crate) fn new(rows: &[ThreadInfo]) -> Self {
        let mut tasks = Self::default();
        for row in rows {
            let lives = tasks.lives.entry(row.thread.0).or_default();
            match lives.iter_mut().find(|life| life.start_ns == row.start_ns) {
                Some(life) => life.comm.clone_from(&row.comm),
                None => lives.push(Life {
                    start_ns: row.start_ns,
                    comm: row.comm.clone(),
                    process: row.process.0,
                }),
            }
        }
        for lives in tasks.lives.values_mut() {
            lives.sort_by_key(|life| life.start_ns);
        }
        tasks
    }

    /// Thread that had this id at this time.
    pub(crate) fn thread(&self, id: u32, at_ns: u64) -> ThreadIdentity {
        let start_ns = self.life(id, at_ns).map_or(0, |life| life.start_ns);
        ThreadIdentity { id, start_ns }
    }

    /// Name of a thread; `None`: the trace does not have it.
    pub(crate) fn name(&self, id: u32, at_ns: u64) -> Option<&str> {
        let name = self.life(id, at_ns)?.comm.as_str();
        (!name.is_empty()).then_some(name)
    }

    /// Ids of the threads that have this name at a time.
    pub(crate) fn called(&self, name: &str, at_ns: u64) -> Vec<u32> {
        let is_called = |id: &&u32| self.name(**id, at_ns) == Some(name);
        let mut ids: Vec<u32> = self.lives.keys().filter(is_called).copied().collect();
        ids.sort_unstable();
        ids
    }

    /// Id of a thread's process; `None`: the trace does not have it.
    pub(crate) fn process(&self, id: u32, at_ns: u64) -> Option<u32> {
        let process = self.life(id, at_ns)?.process;
        (process != 0).then_some(process)
    }

    /// Last thread with this id that began before a time, otherwise the first.
    fn life(&self, id: u32, at_ns: u64) -> Option<&Life> {
        let lives = self.lives.get(&id)?;
        let next = lives.partition_point(|life| life.start_ns <= at_ns);
        lives.get(next.saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use luc_events::{Pid, Tgid};

    use super::*;

    fn row(thread: u32, start_ns: u64, comm: &str) -> ThreadInfo {
        ThreadInfo {
            thread: Pid(thread),
            process: Tgid(thread / 2),
            start_ns,
            comm: comm.to_owned(),
            ..ThreadInfo::default()
        }
    }

    #[test]
    fn an_id_that_is_used_again_is_another_thread() {
        let tasks = HostTasks::new(&[row(7, 10, "sh"), row(7, 10, "make"), row(7, 90, "cc")]);
        assert_eq!(tasks.thread(7, 89).start_ns, 10);
        assert_eq!(tasks.thread(7, 90).start_ns, 90);
        assert_eq!(tasks.thread(7, 5).start_ns, 10);
        assert_eq!(tasks.name(7, 50), Some("make"));
        assert_eq!(tasks.name(7, 91), Some("cc"));
        assert_eq!(tasks.called("cc", 91), [7]);
        assert!(tasks.called("cc", 50).is_empty());
        assert_eq!((tasks.thread(8, 9).start_ns, tasks.name(8, 9)), (0, None));
        assert_eq!((tasks.process(7, 91), tasks.process(8, 9)), (Some(3), None));
    }
}
