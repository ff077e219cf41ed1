//! Who had the processors.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;

use luc_fleet_clocks::HostId;

use super::Paths;
use super::intervals::{Interval, Intervals};
use crate::rows::{Thread, ThreadId, Wait};

/// How long a thread ran on a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ran {
    /// Which thread.
    pub thread: ThreadId,
    /// On which processor; `None`: not known.
    pub processor: Option<u32>,
    /// How long, ns.
    pub ran_ns: u64,
}

/// When each thread ran, and where: between two of its waits, and before the first if it began in the trace.
#[derive(Debug)]
pub struct Running {
    of_host: HashMap<HostId, Intervals<(Thread, Option<u32>)>>,
}

impl Running {
    /// Of all threads. What one did after its last wait is not known, nor what one did before its first that began
    /// before any wait of its host.
    #[must_use]
    pub fn new(paths: &Paths) -> Self {
        let mut since_ns: HashMap<HostId, u64> = HashMap::new();
        for (thread, waits) in &paths.waits {
            let first_ns = since_ns.entry(thread.host).or_insert(u64::MAX);
            *first_ns = waits
                .first()
                .map_or(*first_ns, |wait| wait.off_ns.min(*first_ns));
        }
        let mut of_host: HashMap<HostId, Vec<Interval<_>>> = HashMap::new();
        for (&ThreadId { host, thread }, waits) in &paths.waits {
            let is_in = since_ns
                .get(&host)
                .is_some_and(|since_ns| *since_ns < thread.start_ns);
            let first = waits.first().filter(|_| is_in);
            let first = first.map(|wait| (thread.start_ns, wait.off_ns, None));
            let between = |pair: &[Wait]| (pair[0].on_ns, pair[1].off_ns, pair[0].processor);
            let runs = first.into_iter().chain(waits.windows(2).map(between));
            let runs = runs.map(|(from_ns, to_ns, processor)| Interval {
                from_ns,
                to_ns,
                what: (thread, processor),
            });
            of_host.entry(host).or_default().extend(runs);
        }
        let of_host = of_host.into_iter();
        Self {
            of_host: of_host
                .map(|(host, runs)| (host, Intervals::new(runs)))
                .collect(),
        }
    }

    /// How long each thread of a host ran on each processor between two times of its clock, in the threads' order; those
    /// that did not are left out.
    #[must_use]
    pub fn during(&self, host: HostId, begin_ns: u64, end_ns: u64) -> Vec<Ran> {
        let mut all_ns: BTreeMap<(Thread, Option<u32>), u64> = BTreeMap::new();
        if let Some(runs) = self.of_host.get(&host) {
            runs.visit([begin_ns, end_ns], |run| {
                let ran_ns = run.to_ns.min(end_ns);
                let ran_ns = ran_ns.saturating_sub(run.from_ns.max(begin_ns));
                let sum_ns = all_ns.entry(run.what).or_default();
                *sum_ns = sum_ns.saturating_add(ran_ns);
                ControlFlow::Continue(())
            });
        }
        let ran = all_ns.into_iter().filter(|(_, ran_ns)| *ran_ns > 0);
        let ran = ran.map(|((thread, processor), ran_ns)| Ran {
            thread: ThreadId { host, thread },
            processor,
            ran_ns,
        });
        ran.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(thread: u32, off_ns: u64, on_ns: u64) -> Wait {
        Wait {
            host: HostId(0),
            thread: Thread {
                id: thread,
                // The third one begins in the trace.
                start_ns: if thread == 3 { 70 } else { 0 },
            },
            off_ns,
            woken_ns: None,
            on_ns,
            waker: None,
            may_be_input: true,
            may_be_hand_over: true,
            processor: None,
        }
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
        let paths = Paths::new(&waits, &[], &[]);
        let running = Running::new(&paths);
        let during = |begin_ns, end_ns| -> Vec<(u32, u64)> {
            let all = running.during(HostId(0), begin_ns, end_ns);
            all.iter()
                .map(|ran| (ran.thread.thread.id, ran.ran_ns))
                .collect()
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
        let on = |processor, wait| Wait {
            processor: Some(processor),
            ..wait
        };
        let waits = [
            on(0, wait(1, 10, 20)),
            on(1, wait(1, 50, 60)),
            wait(1, 90, 95),
        ];
        let running = Running::new(&Paths::new(&waits, &[], &[]));
        let ran = running.during(HostId(0), 0, 100);
        let found: Vec<_> = ran.iter().map(|one| (one.processor, one.ran_ns)).collect();
        assert_eq!(found, [(Some(0), 30), (Some(1), 30)]);
    }
}
