//! The recorder's events, and an analysis of the last seconds.

use std::collections::HashMap;
use std::sync::Arc;

use luc_events::tables::{MountedFileSystem, ThreadInfo, TraceDescription};
use luc_events::{Dev, Pid, TraceEvent};
use luc_explain::{Analysis, TraceReport};

/// Age at which an event is analysed. The recorder takes the sums of handles and data out of the kernel only once a
/// second. They belong to commits that were reported before.
const SETTLING_TIME_NS: u64 = 1_300_000_000;
/// Time between the beginnings of an analysis and its successor. What an analysis found is thus never older than twice
/// this, and its memory does not grow.
const SUCCESSION_INTERVAL_NS: u64 = 10_000_000_000;

/// An analysis of the last ten to twenty seconds.
#[derive(Debug)]
pub struct SlidingAnalysis {
    trace: TraceDescription,
    waiting: Vec<TraceEvent>,
    current: Analysis<'static>,
    /// Takes over when the current analysis is too old. It gets the same events until then.
    successor: Option<Analysis<'static>>,
    /// Start of the youngest of the two.
    began_ns: u64,
    reported: Arc<TraceReport>,
    /// Living threads and all file systems: a successor has to know them.
    tasks: HashMap<Pid, ThreadInfo>,
    file_systems: HashMap<Dev, MountedFileSystem>,
}

impl SlidingAnalysis {
    /// Makes a window on a trace.
    pub fn new(trace: TraceDescription) -> Self {
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

    /// Takes in events. Within the settling time their order does not matter.
    pub fn add(&mut self, events: impl IntoIterator<Item = TraceEvent>) {
        self.waiting.extend(events);
    }

    /// Returns the file systems seen so far.
    pub fn file_systems(&self) -> impl Iterator<Item = &MountedFileSystem> {
        self.file_systems.values()
    }

    /// Analyses the events that have settled at `now_ns` (CLOCK_MONOTONIC).
    pub fn settle(&mut self, now_ns: u64) {
        let until_ns = now_ns.saturating_sub(SETTLING_TIME_NS);
        self.waiting.sort_by_key(TraceEvent::time_ns);
        let due = self.waiting.partition_point(|event| event.time_ns() <= until_ns);
        for event in self.waiting.drain(..due) {
            match &event {
                TraceEvent::ThreadInfo(row) if row.exit_ns > 0 => {
                    self.tasks.remove(&row.thread);
                }
                TraceEvent::ThreadInfo(row) => {
                    self.tasks.insert(row.thread, row.clone());
                }
                TraceEvent::MountedFileSystem(row) => {
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

    /// Returns the report at the last call and the present one, both of the same analysis. Call
    /// [`settle`](Self::settle) with the same time before.
    pub fn turn(&mut self, now_ns: u64) -> (Arc<TraceReport>, Arc<TraceReport>) {
        let after = Arc::new(self.current.report());
        let before = std::mem::replace(&mut self.reported, Arc::clone(&after));
        let until_ns = now_ns.saturating_sub(SETTLING_TIME_NS);
        if until_ns.saturating_sub(self.began_ns) >= SUCCESSION_INTERVAL_NS {
            if let Some(successor) = self.successor.take() {
                self.reported = Arc::new(successor.report());
                self.current = successor;
            }
            self.successor = Some(self.start_successor(until_ns));
            self.began_ns = until_ns;
        }
        (before, after)
    }

    /// Makes an analysis that knows the living threads and the file systems.
    fn start_successor(&self, start_ns: u64) -> Analysis<'static> {
        let mut analysis = Analysis::new(TraceDescription { start_ns, ..self.trace.clone() });
        for row in self.file_systems.values() {
            analysis.add(TraceEvent::from(row.clone()));
        }
        for row in self.tasks.values() {
            analysis.add(TraceEvent::from(row.clone()));
        }
        analysis
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use luc_events::tables::JournalCommit;

    const S: u64 = 1_000_000_000;

    fn commit(end_ns: u64) -> TraceEvent {
        TraceEvent::from(JournalCommit {
            dev: Dev(7),
            start_ns: end_ns - 1_000_000,
            end_ns,
            ..JournalCommit::default()
        })
    }

    #[test]
    fn every_commit_is_in_one_interval_whoever_analyses_it() {
        let mut window = SlidingAnalysis::new(TraceDescription::default());
        window.add([TraceEvent::from(MountedFileSystem {
            dev: Dev(7),
            mount_point: "/srv".to_owned(),
            ..MountedFileSystem::default()
        })]);
        let mut seen = Vec::new();
        for second in 1..60 {
            // Ten a second, the later ones first.
            window.add((0..10).rev().map(|tenth| commit(second * S + tenth * S / 10)));
            window.settle(second * S);
            let (before, after) = window.turn(second * S);
            let count = |report: &TraceReport| {
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
        let mut window = SlidingAnalysis::new(TraceDescription::default());
        for second in 1..60 {
            window.add([commit(second * S)]);
            window.settle(second * S);
            let (_, after) = window.turn(second * S);
            assert!(after.trace.events <= 21 + 1, "{}", after.trace.events);
        }
    }
}
