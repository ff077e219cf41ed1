//! The analysis of traces with known truth: planted cases must be named, and sums must be right.

#![allow(clippy::unwrap_used)]

mod culprits;
mod damaged_traces;
mod gate_gain;
mod lost_time;
mod planted_cases;
mod random_traces;
mod trace_simulation;
mod waits_for_others;

use luc_events::TraceEvent;
use luc_explain::{Analysis, TraceReport};
use trace_simulation::{
    DirtyBurst, JournalParameters, SimulatedProgram, TraceSimulation, TrueSyncTimes,
};

/// Length of each case.
const SECONDS: u64 = 10;
const END_NS: u64 = SECONDS * 1_000_000_000;

/// Plays a world and explains its trace.
fn explained(
    setting: JournalParameters,
    programs: &[SimulatedProgram],
    burst: Option<DirtyBurst>,
) -> (TraceReport, TrueSyncTimes) {
    let (events, truth) = TraceSimulation::new(setting, programs, burst).play(END_NS);
    (explain_events(events), truth)
}

fn explain_events(events: impl IntoIterator<Item = TraceEvent>) -> TraceReport {
    let mut analysis = Analysis::new(TraceSimulation::description(END_NS));
    for event in events {
        analysis.add(event);
    }
    analysis.finish()
}

/// Threads of one process that do the same.
fn program(process: u32, threads: u32, ops: &[trace_simulation::SimulatedOp]) -> SimulatedProgram {
    SimulatedProgram { process, cgroup: 10, threads, ops: ops.to_vec() }
}
