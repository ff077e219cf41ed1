//! Facts about waits that their rows do not have: causes of sleeps, and sums of brief waits.

use std::collections::HashMap;

use luc_events::WaitCause;
use luc_events::tables::BriefWait;

use crate::read_hosts::RecordedHost;

/// Facts about the waits of one host, by the threads' ids.
#[derive(Debug, Default)]
pub(crate) struct WaitCauses {
    /// Causes of sleeps at the begin or end of the trace, by the thread and the row's time.
    asleep: HashMap<(u32, u64), WaitCause>,
    brief: HashMap<u32, Vec<BriefWait>>,
}

/// Whether each wait that a thread ended has its own row. No thread ends a sleep or a time without a processor.
pub(crate) fn are_all_there(recorded: &RecordedHost) -> bool {
    let is_ended = |row: &BriefWait| !matches!(row.cause, WaitCause::Sleep | WaitCause::Preempted);
    let has_lost = |table| recorded.lost.iter().any(|row| row.place == table);
    !recorded.brief_waits.iter().any(is_ended) && !has_lost("wait") && !has_lost("brief_wait")
}

/// Returns causes of sleeps at the begin of the trace. The key is the thread and the time of the row that has the
/// sleep's rest. That row has no cause: only the system call has it.
pub(crate) fn causes_at_begin(
    recorded: &RecordedHost,
) -> impl Iterator<Item = ((u32, u64), WaitCause)> {
    recorded.asleep.iter().map(|row| ((row.thread.0, row.at_ns), row.cause))
}

/// Whether a message may have ended a wait with this cause. A lock may have been passed on by a thread that got a
/// message.
pub(crate) fn may_be_input(cause: WaitCause) -> bool {
    match cause {
        WaitCause::Poll
        | WaitCause::PipeSocket
        | WaitCause::Futex
        | WaitCause::KernelLock
        | WaitCause::Preempted
        | WaitCause::AsyncIo
        | WaitCause::Other => true,
        WaitCause::Sleep
        | WaitCause::Stopped
        | WaitCause::Throttled
        | WaitCause::Frozen
        | WaitCause::CommitWait
        | WaitCause::DataWriteback
        | WaitCause::ShadowBuffer
        | WaitCause::TransactionLocked
        | WaitCause::Checkpoint
        | WaitCause::InodeLock
        | WaitCause::DirectoryLock
        | WaitCause::DirtyThrottle
        | WaitCause::Device
        | WaitCause::FastCommit
        | WaitCause::Flush
        | WaitCause::PageFault
        | WaitCause::Updates
        | WaitCause::Flock
        | WaitCause::FullPipe
        | WaitCause::FileServer
        | WaitCause::MemoryLimit
        | WaitCause::HeldBack => false,
    }
}

impl WaitCauses {
    /// Reads rows that are in order of time.
    pub(crate) fn new(recorded: &RecordedHost) -> Self {
        let mut waits = Self { asleep: causes_at_begin(recorded).collect(), ..Self::default() };
        for row in &recorded.brief_waits {
            waits.brief.entry(row.thread.0).or_default().push(row.clone());
        }
        waits
    }

    /// Cause of the sleep of a thread that was seen asleep at a time.
    pub(crate) fn asleep(&self, thread: u32, at_ns: u64) -> Option<WaitCause> {
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
    use luc_events::tables::LostEvents;

    use super::*;

    #[test]
    fn sums_of_waits_hide_who_ended_them() {
        let brief = |cause| BriefWait { cause, ..BriefWait::default() };
        let with = |causes: &[WaitCause], lost: &[&str]| RecordedHost {
            brief_waits: causes.iter().copied().map(brief).collect(),
            lost: lost
                .iter()
                .map(|place| LostEvents { place: (*place).to_owned(), ..LostEvents::default() })
                .collect(),
            ..RecordedHost::default()
        };
        assert!(are_all_there(&with(&[], &["packet"])));
        assert!(are_all_there(&with(&[WaitCause::Sleep, WaitCause::Preempted], &[])));
        assert!(!are_all_there(&with(&[WaitCause::Sleep, WaitCause::Futex], &[])));
        assert!(!are_all_there(&with(&[], &["wait"])));
    }
}
