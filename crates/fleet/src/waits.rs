//! Why threads waited, and which waits the trace has only sums of.

use std::collections::HashMap;

use luc_events::Cause;
use luc_events::tables::BriefWait;

use crate::read::Recorded;

/// What is known of the waits of one host's threads, by their ids.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    /// In the order of their ends.
    of_threads: HashMap<u32, Vec<Waited>>,
    brief: HashMap<u32, Vec<BriefWait>>,
    /// Sleeps up to when the trace began, and up to its end.
    asleep: HashMap<u32, Vec<Waited>>,
}

/// A wait with a row of its own.
#[derive(Debug, Clone, Copy)]
struct Waited {
    off_ns: u64,
    on_ns: u64,
    cause: Cause,
}

/// Whether each wait that a thread ended has a row of its own. Nobody ends a sleep or a time without a processor.
pub(crate) fn are_all_there(recorded: &Recorded) -> bool {
    let is_ended = |row: &BriefWait| !matches!(row.cause, Cause::Sleep | Cause::Preempted);
    let has_lost = |table| recorded.lost.iter().any(|row| row.place == table);
    !recorded.brief_waits.iter().any(is_ended) && !has_lost("wait") && !has_lost("brief_wait")
}

impl Waits {
    /// Of rows in the order of their times.
    pub(crate) fn new(recorded: &Recorded) -> Self {
        let mut waits = Self::default();
        for row in &recorded.waits {
            waits
                .of_threads
                .entry(row.thread.0)
                .or_default()
                .push(Waited {
                    off_ns: row.off_ns,
                    on_ns: row.on_ns,
                    cause: row.cause,
                });
        }
        // The rest of a sleep that was under way at the begin has a row whose cause only its system call tells.
        for row in &recorded.asleep {
            waits.asleep.entry(row.thread.0).or_default().push(Waited {
                off_ns: row.since_ns,
                on_ns: row.at_ns,
                cause: row.cause,
            });
        }
        for row in &recorded.brief_waits {
            waits
                .brief
                .entry(row.thread.0)
                .or_default()
                .push(row.clone());
        }
        waits
    }

    /// Why a thread waited at a time; `None` if it did not, or no row says so.
    pub(crate) fn cause(&self, thread: u32, at_ns: u64) -> Option<Cause> {
        let waits = self.of_threads.get(&thread).map_or(&[][..], Vec::as_slice);
        let first = waits.partition_point(|wait| wait.on_ns <= at_ns);
        let wait = waits.get(first).filter(|wait| wait.off_ns <= at_ns);
        let asleep = self.asleep.get(&thread).map_or(&[][..], Vec::as_slice);
        let is_around = |sleep: &&Waited| {
            let is_rest = wait.is_some_and(|wait| wait.off_ns == sleep.on_ns);
            // It was looked at shortly before the end of the trace.
            let is_over =
                at_ns > sleep.on_ns && waits.last().is_some_and(|last| last.on_ns > sleep.on_ns);
            is_rest || (sleep.off_ns <= at_ns && !is_over)
        };
        let sleep = asleep.iter().find(is_around);
        sleep.or(wait).map(|around| around.cause)
    }

    /// How long the waits of a thread were of which there are only sums, in all sums that may have one between two
    /// times, ns; `None` if there are none.
    pub(crate) fn brief_ns(&self, thread: u32, begin_ns: u64, end_ns: u64) -> Option<u64> {
        let rows = self.brief.get(&thread)?;
        let overlapping = rows
            .iter()
            .filter(|row| row.since_ns < end_ns && begin_ns < row.until_ns);
        overlapping
            .map(|row| row.blocked_ns.saturating_add(row.runnable_ns))
            .reduce(u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use luc_events::Pid;
    use luc_events::tables::{Asleep, Lost, Wait};

    use super::*;

    #[test]
    fn a_cause_is_that_of_the_wait_around_a_time() {
        let wait = |off_ns, on_ns, cause| Wait {
            thread: Pid(7),
            off_ns,
            on_ns,
            cause,
            ..Wait::default()
        };
        let waits = Waits::new(&Recorded {
            waits: vec![wait(10, 20, Cause::Futex), wait(30, 50, Cause::Device)],
            ..Recorded::default()
        });
        assert_eq!(waits.cause(7, 10), Some(Cause::Futex));
        assert_eq!(waits.cause(7, 49), Some(Cause::Device));
        for (thread, at_ns) in [(7, 9), (7, 20), (7, 50), (8, 12)] {
            assert_eq!(waits.cause(thread, at_ns), None);
        }
    }

    #[test]
    fn a_sleep_across_an_end_of_the_trace_has_the_cause_that_was_seen_there() {
        let sleep = |thread, since_ns, at_ns| Asleep {
            thread: Pid(thread),
            since_ns,
            at_ns,
            cause: Cause::Futex,
            ..Asleep::default()
        };
        let waits = Waits::new(&Recorded {
            waits: vec![Wait {
                thread: Pid(7),
                off_ns: 100,
                on_ns: 150,
                ..Wait::default()
            }],
            asleep: vec![sleep(7, 40, 100), sleep(8, 300, 900)],
            ..Recorded::default()
        });
        for (thread, at_ns) in [(7, 40), (7, 120), (8, 300), (8, 901)] {
            assert_eq!(waits.cause(thread, at_ns), Some(Cause::Futex), "{at_ns}");
        }
        for (thread, at_ns) in [(7, 39), (7, 150), (8, 299)] {
            assert_eq!(waits.cause(thread, at_ns), None, "{at_ns}");
        }
    }

    #[test]
    fn sums_of_waits_hide_who_ended_them() {
        let brief = |cause| BriefWait {
            cause,
            ..BriefWait::default()
        };
        let with = |causes: &[Cause], lost: &[&str]| Recorded {
            brief_waits: causes.iter().copied().map(brief).collect(),
            lost: lost
                .iter()
                .map(|place| Lost {
                    place: (*place).to_owned(),
                    ..Lost::default()
                })
                .collect(),
            ..Recorded::default()
        };
        assert!(are_all_there(&with(&[], &["packet"])));
        assert!(are_all_there(&with(&[Cause::Sleep, Cause::Preempted], &[])));
        assert!(!are_all_there(&with(&[Cause::Sleep, Cause::Futex], &[])));
        assert!(!are_all_there(&with(&[], &["wait"])));
    }
}
