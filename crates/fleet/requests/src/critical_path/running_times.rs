//! Threads that had the processors.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use luc_fleet_clocks::HostId;

use super::CriticalPaths;
use super::intervals::{Interval, Intervals};
use crate::fleet_waits::{HostWaits, RunId};
use crate::host_rows::{ThreadId, ThreadIdentity};

/// Number of runs in a row that are searched at once. With fewer, the searched intervals take more memory than the
/// runs.
const BLOCK_RUNS: usize = 16;

/// Time that a thread ran on a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessorTime {
    pub thread: ThreadId,
    pub processor: Option<u32>,
    pub ran_ns: u64,
}

/// Times and processors at which each thread ran: between two of its waits, and before the first if the thread began in
/// the trace.
#[derive(Debug)]
pub struct RunningTimes<'w> {
    of_host: BTreeMap<HostId, Runs<'w>>,
}

/// The runs of a host's threads.
#[derive(Debug)]
struct Runs<'w> {
    waits: &'w HostWaits,
    /// Runs between two waits of a thread, in the order of their begins.
    runs: Vec<RunId>,
    /// From the first begin in a block of runs to the latest end: the block's index.
    blocks: Intervals<usize>,
    /// Runs before the first wait.
    first: Intervals<ThreadIdentity>,
}

impl<'w> RunningTimes<'w> {
    /// Finds the runs of all threads. The run after a thread's last wait is unknown. So is the run before its first
    /// wait, if the thread began before all waits of its host.
    #[must_use]
    pub fn new(paths: &CriticalPaths<'w>) -> Self {
        let hosts = paths.waits().hosts();
        Self { of_host: hosts.map(|waits| (waits.host(), Runs::new(waits))).collect() }
    }

    /// Returns the time that each thread of a host ran on each processor, in the threads' order. Only runs between
    /// two times of the host's clock count. Threads that did not run are left out.
    #[must_use]
    pub fn during(&self, host: HostId, begin_ns: u64, end_ns: u64) -> Vec<ProcessorTime> {
        let mut all_ns: BTreeMap<(ThreadIdentity, Option<u32>), u64> = BTreeMap::new();
        if let Some(runs) = self.of_host.get(&host) {
            runs.visit([begin_ns, end_ns], |thread, processor, ran_ns| {
                let sum_ns = all_ns.entry((thread, processor)).or_default();
                *sum_ns = sum_ns.saturating_add(ran_ns);
            });
        }
        let ran = all_ns.into_iter();
        let ran = ran.map(|((thread, processor), ran_ns)| ProcessorTime {
            thread: ThreadId { host, thread },
            processor,
            ran_ns,
        });
        ran.collect()
    }
}

impl<'w> Runs<'w> {
    fn new(waits: &'w HostWaits) -> Self {
        let mut runs: Vec<RunId> = waits.runs().collect();
        runs.sort_unstable_by_key(|&run| waits.run_ns(run)[0]);
        let blocks = runs.chunks(BLOCK_RUNS).enumerate();
        let blocks = blocks.filter_map(|(block, runs)| {
            let ends_ns = runs.iter().map(|&run| waits.run_ns(run)[1]);
            Some(Interval {
                from_ns: waits.run_ns(*runs.first()?)[0],
                to_ns: ends_ns.max()?,
                what: block,
            })
        });
        let firsts = waits.by_thread();
        let firsts = firsts.filter_map(|(thread, waits)| Some((thread, waits.get(0)?.off_ns)));
        let firsts: Vec<(ThreadIdentity, u64)> = firsts.collect();
        let since_ns = firsts.iter().map(|(_, off_ns)| *off_ns).min();
        let in_trace = firsts.into_iter().filter(|(thread, _)| since_ns < Some(thread.start_ns));
        let first = in_trace.map(|(thread, off_ns)| Interval {
            from_ns: thread.start_ns,
            to_ns: off_ns,
            what: thread,
        });
        Self {
            waits,
            blocks: Intervals::new(blocks.collect()),
            first: Intervals::new(first.collect()),
            runs,
        }
    }

    /// Visits each run that has some time between two times, with its thread, processor and that time.
    fn visit(&self, during_ns: [u64; 2], mut visit: impl FnMut(ThreadIdentity, Option<u32>, u64)) {
        let ran_ns = |from_ns: u64, to_ns: u64| {
            let ran_ns = to_ns.min(during_ns[1]);
            let ran_ns = ran_ns.saturating_sub(from_ns.max(during_ns[0]));
            Some(ran_ns).filter(|ran_ns| *ran_ns > 0)
        };
        self.blocks.visit(during_ns, |block| {
            let first = block.what * BLOCK_RUNS;
            let runs = &self.runs[first..(first + BLOCK_RUNS).min(self.runs.len())];
            for &run in runs {
                let [from_ns, to_ns] = self.waits.run_ns(run);
                if let Some(ran_ns) = ran_ns(from_ns, to_ns) {
                    let [before, _] = self.waits.around_run(run);
                    visit(before.thread, before.processor, ran_ns);
                }
            }
            ControlFlow::Continue(())
        });
        self.first.visit(during_ns, |one| {
            if let Some(ran_ns) = ran_ns(one.from_ns, one.to_ns) {
                visit(one.what, None, ran_ns);
            }
            ControlFlow::Continue(())
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet_waits::FleetWaits;
    use crate::host_rows::ThreadWait;

    fn wait(id: u32, off_ns: u64, on_ns: u64) -> ThreadWait {
        // Thread 3 begins in the trace.
        let thread = ThreadIdentity { id, start_ns: if id == 3 { 70 } else { 0 } };
        let wait = crate::test_rows::wait(id, [off_ns, on_ns, on_ns], None);
        ThreadWait { thread, woken_ns: None, ..wait }
    }

    #[test]
    fn threads_run_between_their_waits() {
        // Thread 1 runs from 20 to 50 and from 60 to 90, thread 2 from 30 to 40.
        let waits = [
            wait(1, 10, 20),
            wait(1, 50, 60),
            wait(1, 90, 95),
            wait(2, 0, 30),
            wait(2, 40, 99),
            wait(3, 85, 99),
        ];
        let waits = FleetWaits::of(&waits).expect("few");
        let paths = CriticalPaths::new(&waits, &[], &[]);
        let running = RunningTimes::new(&paths);
        let during = |begin_ns, end_ns| -> Vec<(u32, u64)> {
            let all = running.during(HostId(0), begin_ns, end_ns);
            all.iter().map(|ran| (ran.thread.thread.id, ran.ran_ns)).collect()
        };
        assert_eq!(during(25, 70), [(1, 35), (2, 10)]);
        assert_eq!(during(51, 59), []);
        // What a thread did after its last wait is not known.
        assert_eq!(during(80, 200), [(1, 10), (3, 5)]);
        assert_eq!(during(60, 75), [(1, 15), (3, 5)]);
        assert_eq!(during(0, 21), [(1, 1)]);
        assert!(running.during(HostId(1), 0, 100).is_empty());
    }

    #[test]
    fn a_run_is_on_the_processor_that_the_thread_got() {
        let on = |processor, wait| ThreadWait { processor: Some(processor), ..wait };
        let waits = [on(0, wait(1, 10, 20)), on(1, wait(1, 50, 60)), wait(1, 90, 95)];
        let waits = FleetWaits::of(&waits).expect("few");
        let running = RunningTimes::new(&CriticalPaths::new(&waits, &[], &[]));
        let ran = running.during(HostId(0), 0, 100);
        let found: Vec<_> = ran.iter().map(|one| (one.processor, one.ran_ns)).collect();
        assert_eq!(found, [(Some(0), 30), (Some(1), 30)]);
    }
}
