//! The analysis of traces with known truth: planted cases must be named, and sums must be right.

#![allow(clippy::unwrap_used)]

mod cases;
mod culprits;
mod gate;
mod random;
mod stored;
mod world;

use luc_events::Event;
use luc_explain::{Analysis, Report};
use world::{Burst, Program, Setting, Truth, World};

/// Length of each case.
const SECONDS: u64 = 10;
const END_NS: u64 = SECONDS * 1_000_000_000;

/// Plays a world and explains its trace.
fn explained(setting: Setting, programs: &[Program], burst: Option<Burst>) -> (Report, Truth) {
    let (events, truth) = World::new(setting, programs, burst).play(END_NS);
    (explain_events(events), truth)
}

fn explain_events(events: impl IntoIterator<Item = Event>) -> Report {
    let mut analysis = Analysis::new(World::description(END_NS));
    for event in events {
        analysis.add(event);
    }
    analysis.finish()
}

/// Threads of one process that do the same.
fn program(process: u32, threads: u32, ops: &[world::Op]) -> Program {
    Program { process, cgroup: 10, threads, ops: ops.to_vec() }
}
