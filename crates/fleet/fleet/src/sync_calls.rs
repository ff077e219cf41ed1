//! Times in which threads were in a call that waits until data are safe, such as fsync.

use std::collections::HashMap;

use crate::read_hosts::RecordedHost;

/// Calls of one host's threads.
#[derive(Debug, Default)]
pub(crate) struct SyncCallTimes {
    /// Begin and end of each call in order, by thread id. A thread is in one call at a time.
    of_threads: HashMap<u32, Vec<(u64, u64)>>,
}

impl SyncCallTimes {
    /// Reads rows that are in order of their ends.
    pub(crate) fn new(recorded: &RecordedHost) -> Self {
        let mut syncs = Self::default();
        for row in &recorded.syncs {
            syncs.of_threads.entry(row.thread.0).or_default().push((row.enter_ns, row.exit_ns));
        }
        syncs
    }

    /// Whether a thread was in one of these calls at a time.
    pub(crate) fn has(&self, thread: u32, at_ns: u64) -> bool {
        let calls = self.of_threads.get(&thread).map_or(&[][..], Vec::as_slice);
        let next = calls.partition_point(|(_, exit_ns)| *exit_ns < at_ns);
        calls.get(next).is_some_and(|(enter_ns, _)| *enter_ns <= at_ns)
    }
}

#[cfg(test)]
mod tests {
    use luc_events::Pid;
    use luc_events::tables::FsyncCall;

    use super::*;

    #[test]
    fn a_thread_is_in_a_call_between_its_ends() {
        let sync = |enter_ns, exit_ns| FsyncCall {
            thread: Pid(7),
            enter_ns,
            exit_ns,
            ..FsyncCall::default()
        };
        let syncs = SyncCallTimes::new(&RecordedHost {
            syncs: vec![sync(10, 20), sync(40, 50)],
            ..RecordedHost::default()
        });
        for at_ns in [10, 20, 45] {
            assert!(syncs.has(7, at_ns), "{at_ns}");
        }
        for (thread, at_ns) in [(7, 9), (7, 21), (7, 51), (8, 15)] {
            assert!(!syncs.has(thread, at_ns), "{thread} {at_ns}");
        }
    }
}
