//! Events as they come from the recorder, and an analysis of the last seconds of them.

use std::collections::HashMap;
use std::sync::Arc;

use luc_events::tables::{FileSystem, Task, Trace};
use luc_events::{Dev, Event, Pid};
use luc_explain::{Analysis, Report};

/// How much older than now an event is when it is analysed. The recorder takes the sums of handles and data out of
/// the kernel once a second, and they belong to commits that were reported before.
const SETTLING_NS: u64 = 1_300_000_000;
/// An analysis is succeeded by one that began this much later, so that what it found is never older than
/// twice this, and its memory does not grow.
const HALF_LIFE_NS: u64 = 10_000_000_000;

/// The analysis of the last ten to twenty seconds.
#[derive(Debug)]
pub struct Window {
    trace: Trace,
    waiting: Vec<Event>,
    current: Analysis<'static>,
    /// Takes over when the current one is too old; fed the same events until then.
    successor: Option<Analysis<'static>>,
    /// When the youngest of the two began.
    began_ns: u64,
    reported: Arc<Report>,
    /// Every thread that lives, and every file system: a successor has to know them.
    tasks: HashMap<Pid, Task>,
    file_systems: HashMap<Dev, FileSystem>,
}

impl Window {
    /// Begins with a trace of this description.
    pub fn new(trace: Trace) -> Self {
        Self {
            waiting: Vec::new(),
            current: Analysis::new(trace.clone()),
            successor: None,
            began_ns: trace.start_ns,
            reported: Arc::default(),
            tasks: HashMap::new(),
            file_systems: HashMap::new(),
            trace,
        }
    }

    /// Takes in events, in any order within the time that they are kept.
    pub fn add(&mut self, events: impl IntoIterator<Item = Event>) {
        self.waiting.extend(events);
    }

    /// The file systems seen so far.
    pub fn file_systems(&self) -> impl Iterator<Item = &FileSystem> {
        self.file_systems.values()
    }

    /// Analyses what has settled at `now_ns` (CLOCK_MONOTONIC).
    pub fn settle(&mut self, now_ns: u64) {
        let until_ns = now_ns.saturating_sub(SETTLING_NS);
        self.waiting.sort_by_key(Event::time_ns);
        let due = self.waiting.partition_point(|event| event.time_ns() <= until_ns);
        for event in self.waiting.drain(..due) {
            match &event {
                Event::Task(row) if row.exit_ns > 0 => {
                    self.tasks.remove(&row.thread);
                }
                Event::Task(row) => {
                    self.tasks.insert(row.thread, row.clone());
                }
                Event::FileSystem(row) => {
                    self.file_systems.insert(row.dev, row.clone());
                }
                _ => {}
            }
            if let Some(successor) = &mut self.successor {
                successor.add(event.clone());
            }
            self.current.add(event);
        }
    }

    /// The report at the last call and the one now, both of the same analysis. To be called after
    /// [`settle`](Self::settle) with the same time.
    pub fn turn(&mut self, now_ns: u64) -> (Arc<Report>, Arc<Report>) {
        let after = Arc::new(self.current.report());
        let before = std::mem::replace(&mut self.reported, Arc::clone(&after));
        let until_ns = now_ns.saturating_sub(SETTLING_NS);
        if until_ns.saturating_sub(self.began_ns) >= HALF_LIFE_NS {
            if let Some(successor) = self.successor.take() {
                self.reported = Arc::new(successor.report());
                self.current = successor;
            }
            self.successor = Some(self.informed(until_ns));
            self.began_ns = until_ns;
        }
        (before, after)
    }

    /// A new analysis that knows who is there.
    fn informed(&self, start_ns: u64) -> Analysis<'static> {
        let mut analysis = Analysis::new(Trace { start_ns, ..self.trace.clone() });
        for row in self.file_systems.values() {
            analysis.add(Event::from(row.clone()));
        }
        for row in self.tasks.values() {
            analysis.add(Event::from(row.clone()));
        }
        analysis
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use luc_events::tables::Commit;

    const S: u64 = 1_000_000_000;

    fn commit(end_ns: u64) -> Event {
        Event::from(Commit {
            dev: Dev(7),
            start_ns: end_ns - 1_000_000,
            end_ns,
            ..Commit::default()
        })
    }

    #[test]
    fn every_commit_is_in_one_interval_whoever_analyses_it() {
        let mut window = Window::new(Trace::default());
        window.add([Event::from(FileSystem {
            dev: Dev(7),
            mount_point: "/srv".to_owned(),
            ..FileSystem::default()
        })]);
        let mut seen = Vec::new();
        for second in 1..60 {
            // Ten a second, the later ones first.
            window.add((0..10).rev().map(|tenth| commit(second * S + tenth * S / 10)));
            window.settle(second * S);
            let (before, after) = window.turn(second * S);
            let count = |report: &Report| {
                report.file_systems.iter().map(|found| found.commits.full.count).sum::<u64>()
            };
            seen.push(count(&after) - count(&before));
            if second > 2 {
                assert_eq!(after.file_systems[0].mount_point, "/srv");
            }
        }
        assert_eq!(seen[..2], [0, 0]);
        assert!(seen[4..].iter().all(|&count| count == 10), "{seen:?}");
    }

    #[test]
    fn what_it_found_is_at_most_twenty_seconds_old() {
        let mut window = Window::new(Trace::default());
        for second in 1..60 {
            window.add([commit(second * S)]);
            window.settle(second * S);
            let (_, after) = window.turn(second * S);
            assert!(after.trace.events <= 21 + 1, "{}", after.trace.events);
        }
    }
}
