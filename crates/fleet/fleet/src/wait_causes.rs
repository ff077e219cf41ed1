//! Facts about waits that their rows do not have: causes of sleeps, and sums of brief waits.

use std::collections::HashMap;

use luc_events::Cause;
use luc_events::tables::BriefWait;

use crate::read::Recorded;

/// Facts about the waits of one host, by the threads' ids.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    /// Causes of sleeps at the begin or end of the trace, by the thread and the row's time.
    asleep: HashMap<(u32, u64), Cause>,
    brief: HashMap<u32, Vec<BriefWait>>,
}

/// Whether each wait that a thread ended has its own row. No thread ends a sleep or a time without a processor.
pub(crate) fn are_all_there(recorded: &Recorded) -> bool {
    let is_ended = |row: &BriefWait| !matches!(row.cause, Cause::Sleep | Cause::Preempted);
    let has_lost = |table| recorded.lost.iter().any(|row| row.place == table);
    !recorded.brief_waits.iter().any(is_ended) && !has_lost("wait") && !has_lost("brief_wait")
}

/// Returns causes of sleeps at the begin of the trace. The key is the thread and the time of the row that has the
/// sleep's rest. That row has no cause: only the system call has it.
pub(crate) fn causes_at_begin(recorded: &Recorded) -> impl Iterator<Item = ((u32, u64), Cause)> {
    recorded.asleep.iter().map(|row| ((row.thread.0, row.at_ns), row.cause))
}

/// Whether a message may have ended a wait with this cause. A lock may have been passed on by a thread that got a
/// message.
pub(crate) fn may_be_input(cause: Cause) -> bool {
    match cause {
        Cause::Poll
        | Cause::PipeSocket
        | Cause::Futex
        | Cause::KernelLock
        | Cause::Preempted
        | Cause::Other => true,
        Cause::Sleep
        | Cause::Stopped
        | Cause::Throttled
        | Cause::Frozen
        | Cause::CommitWait
        | Cause::DataWriteback
        | Cause::ShadowBuffer
        | Cause::TransactionLocked
        | Cause::Checkpoint
        | Cause::InodeLock
        | Cause::DirectoryLock
        | Cause::DirtyThrottle
        | Cause::Device
        | Cause::FastCommit
        | Cause::Flush
        | Cause::PageFault
        | Cause::Updates => false,
    }
}

impl Waits {
    /// Reads rows that are in order of time.
    pub(crate) fn new(recorded: &Recorded) -> Self {
        let mut waits = Self { asleep: causes_at_begin(recorded).collect(), ..Self::default() };
        for row in &recorded.brief_waits {
            waits.brief.entry(row.thread.0).or_default().push(row.clone());
        }
        waits
    }

    /// Cause of the sleep of a thread that was seen asleep at a time.
    pub(crate) fn asleep(&self, thread: u32, at_ns: u64) -> Option<Cause> {
        self.asleep.get(&(thread, at_ns)).copied()
    }

    /// Sum of a thread's brief waits, ns: of all rows that may have one between two times; `None`: there are none.
    pub(crate) fn brief_ns(&self, thread: u32, begin_ns: u64, end_ns: u64) -> Option<u64> {
        let rows = self.brief.get(&thread)?;
        rows.iter()
            .filter(|row| row.since_ns < end_ns && begin_ns < row.until_ns)
            .map(|row| row.blocked_ns.saturating_add(row.runnable_ns))
            .reduce(u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use luc_events::tables::Lost;

    use super::*;

    #[test]
    fn sums_of_waits_hide_who_ended_them() {
        let brief = |cause| BriefWait { cause, ..BriefWait::default() };
        let with = |causes: &[Cause], lost: &[&str]| Recorded {
            brief_waits: causes.iter().copied().map(brief).collect(),
            lost: lost
                .iter()
                .map(|place| Lost { place: (*place).to_owned(), ..Lost::default() })
                .collect(),
            ..Recorded::default()
        };
        assert!(are_all_there(&with(&[], &["packet"])));
        assert!(are_all_there(&with(&[Cause::Sleep, Cause::Preempted], &[])));
        assert!(!are_all_there(&with(&[Cause::Sleep, Cause::Futex], &[])));
        assert!(!are_all_there(&with(&[], &["wait"])));
    }
}
