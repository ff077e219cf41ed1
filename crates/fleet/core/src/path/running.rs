//! Who had the processors.

use std::collections::HashMap;

use luc_fleet_clocks::HostId;

use super::Paths;
use crate::rows::{ThreadId, Wait};

/// When each thread ran: between two of its waits, and before the first if it began in the trace.
#[derive(Debug)]
pub struct Running<'p> {
    of_host: HashMap<HostId, Vec<Runs<'p>>>,
}

/// The times of one thread.
#[derive(Debug, Clone, Copy)]
struct Runs<'p> {
    thread: ThreadId,
    /// When it began, if that was in the trace.
    began_ns: Option<u64>,
    waits: &'p [Wait],
}

impl<'p> Running<'p> {
    /// Of all threads. What one did after its last wait is not known, nor what one did before its first that began
    /// before any wait of its host.
    #[must_use]
    pub fn new(paths: &'p Paths) -> Self {
        let mut since_ns: HashMap<HostId, u64> = HashMap::new();
        for (thread, waits) in &paths.waits {
            let first_ns = since_ns.entry(thread.host).or_insert(u64::MAX);
            *first_ns = waits
                .first()
                .map_or(*first_ns, |wait| wait.off_ns.min(*first_ns));
        }
        let mut of_host: HashMap<HostId, Vec<Runs<'_>>> = HashMap::new();
        for (&thread, waits) in &paths.waits {
            let began_ns = thread.thread.start_ns;
            let is_in = since_ns
                .get(&thread.host)
                .is_some_and(|since_ns| *since_ns < began_ns);
            of_host.entry(thread.host).or_default().push(Runs {
                thread,
                began_ns: is_in.then_some(began_ns),
                waits,
            });
        }
        for threads in of_host.values_mut() {
            threads.sort_unstable_by_key(|runs| runs.thread);
        }
        Self { of_host }
    }

    /// How long each thread of a host ran between two times of its clock, in the threads' order; those that did not are
    /// left out.
    #[must_use]
    pub fn during(&self, host: HostId, begin_ns: u64, end_ns: u64) -> Vec<(ThreadId, u64)> {
        let threads = self.of_host.get(&host).into_iter().flatten();
        threads
            .map(|runs| (runs.thread, runs.ran_ns(begin_ns, end_ns)))
            .filter(|(_, ran_ns)| *ran_ns > 0)
            .collect()
    }
}

impl Runs<'_> {
    fn ran_ns(&self, begin_ns: u64, end_ns: u64) -> u64 {
        let first = self.waits.partition_point(|wait| wait.off_ns <= begin_ns);
        let new = self.began_ns.filter(|_| first == 0);
        let new = new.zip(self.waits.first().map(|wait| wait.off_ns));
        let runs = self.waits[first.saturating_sub(1)..].windows(2);
        let runs = runs.map(|pair| (pair[0].on_ns, pair[1].off_ns));
        let runs = new.into_iter().chain(runs);
        let runs = runs.take_while(|(from_ns, _)| *from_ns < end_ns);
        runs.map(|(from_ns, to_ns)| {
            let (from_ns, to_ns) = (from_ns.max(begin_ns), to_ns.min(end_ns));
            to_ns.saturating_sub(from_ns)
        })
        .fold(0, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Thread;

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
                .map(|(thread, ran_ns)| (thread.thread.id, *ran_ns))
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
}
