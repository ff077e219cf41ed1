//! Threads that had the processors.

use std::collections::HashMap;

use crate::graph_ids::TraceThread;
use crate::time_span::TimeSpan;
use crate::wait_rows::{RunIndex, WaitRows};

/// A part of a time, with the thread that had the processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RunPiece {
    /// `None`: no recorded thread.
    pub(crate) thread: Option<TraceThread>,
    pub(crate) span: TimeSpan,
}

/// Runs of threads by processor, between two waits of each thread.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProcessorRuns {
    /// In the order of their begins.
    of_processors: HashMap<u32, Vec<RunIndex>>,
}

impl ProcessorRuns {
    /// Finds the runs of all threads. What a thread did after its last wait is unknown.
    pub(crate) fn of(waits: &WaitRows) -> Self {
        let mut of_processors: HashMap<u32, Vec<RunIndex>> = HashMap::new();
        for run in waits.runs() {
            let found = waits.run(run);
            if let Some(processor) = found.processor.filter(|_| !found.span.is_empty()) {
                of_processors.entry(processor).or_default().push(run);
            }
        }
        for runs in of_processors.values_mut() {
            runs.sort_unstable_by_key(|&run| (waits.run(run).span, waits.run(run).thread));
            runs.shrink_to_fit();
        }
        Self { of_processors }
    }

    /// Divides a time by the threads that ran on a processor, the earliest part first. Where rows have two threads on it
    /// at once, the one that came first counts.
    pub(crate) fn pieces(&self, waits: &WaitRows, processor: u32, span: TimeSpan) -> Vec<RunPiece> {
        let runs = self.of_processors.get(&processor).map_or(&[][..], Vec::as_slice);
        let next = runs.partition_point(|&run| waits.run(run).span.from_ns() <= span.from_ns());
        let mut pieces = Vec::new();
        let mut rest = span;
        for run in runs[next.saturating_sub(1)..].iter().map(|&run| waits.run(run)) {
            if rest.is_empty() || run.span.from_ns() >= span.to_ns() {
                break;
            }
            let cut = rest.split(run.span.from_ns());
            pieces.push(RunPiece { thread: None, span: cut.before });
            let cut = cut.after.split(run.span.to_ns());
            pieces.push(RunPiece { thread: Some(run.thread), span: cut.before });
            rest = cut.after;
        }
        pieces.push(RunPiece { thread: None, span: rest });
        pieces.retain(|piece| !piece.span.is_empty());
        pieces
    }
}

#[cfg(test)]
mod tests {
    use luc_events::WaitCause;

    use super::*;
    use crate::graph_rows::{GraphWait, WaitEnd};

    fn wait(thread: u32, off_ns: u64, on_ns: u64, processor: u32) -> GraphWait {
        GraphWait {
            thread: TraceThread(thread),
            off_ns,
            woken_ns: None,
            on_ns,
            waker: None,
            end: WaitEnd::NotKnown,
            cause: WaitCause::Preempted,
            processor: Some(processor),
        }
    }

    fn pieces(waits: &[GraphWait], processor: u32, span: TimeSpan) -> Vec<(Option<u32>, u64)> {
        let waits = WaitRows::new(3, waits.iter().copied()).expect("few");
        let found = ProcessorRuns::of(&waits).pieces(&waits, processor, span);
        assert_eq!(found.iter().map(|piece| piece.span.length_ns()).sum::<u64>(), span.length_ns());
        let plain = found.iter();
        plain.map(|piece| (piece.thread.map(|thread| thread.0), piece.span.length_ns())).collect()
    }

    #[test]
    fn a_processor_is_that_of_the_thread_that_came_last() {
        let waits = [wait(0, 0, 10, 0), wait(0, 40, 50, 0), wait(1, 5, 40, 0), wait(1, 48, 60, 1)];
        let found = pieces(&waits, 0, TimeSpan::new(20, 50));
        assert_eq!(found, [(Some(0), 20), (Some(1), 8), (None, 2)]);
        assert_eq!(pieces(&waits, 1, TimeSpan::new(20, 50)), [(None, 30)]);
        assert_eq!(pieces(&waits, 7, TimeSpan::new(20, 20)), []);
    }

    #[test]
    fn two_threads_at_once_have_the_time_once() {
        let waits = [wait(0, 0, 10, 0), wait(0, 40, 50, 0), wait(1, 5, 20, 0), wait(1, 30, 60, 0)];
        let found = pieces(&waits, 0, TimeSpan::new(0, 45));
        assert_eq!(found, [(None, 10), (Some(0), 30), (None, 5)]);
    }
}
