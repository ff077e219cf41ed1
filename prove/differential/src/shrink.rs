//! Tries many copies of one program at once, and shrinks it as long as its difference stays.

use std::time::Instant;

use anyhow::Result;
use serde::Serialize;

use crate::batch::{differences, run_batch};
use crate::compare::{Difference, DifferenceKind};
use crate::lane::{Batch, Lane, Way};
use crate::program::Program;

/// Number of copies, which is enough for calls to be held for each other.
const COPIES: usize = 64;

/// Results of trying a program.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Trials {
    pub(crate) copies: usize,
    pub(crate) held: u64,
    pub(crate) differences: Vec<Found>,
}

/// The first difference of a kind in one way, and the number of copies that had it.
#[derive(Debug, Serialize)]
pub(crate) struct Found {
    pub(crate) way: Way,
    pub(crate) copies: u64,
    #[serde(flatten)]
    pub(crate) first: Difference,
}

impl Trials {
    fn add(&mut self, way: Way, first: Difference) {
        let mut known = self.differences.iter_mut();
        match known.find(|one| (one.way, one.first.kind) == (way, first.kind)) {
            Some(known) => known.copies += 1,
            None => self.differences.push(Found { way, copies: 1, first }),
        }
    }
}

/// Runs copies of a program until there is a difference, at most `times` times.
pub(crate) fn try_copies(
    lanes: &[&Lane],
    program: &Program,
    policy: Option<&'static str>,
    times: u32,
) -> Result<Trials> {
    let programs = vec![program; COPIES];
    let mut trials = Trials::default();
    for time in 0..times {
        let batch = Batch {
            stamp: time + 1,
            width: COPIES as u32,
            warm: 0,
            lie: 0,
            without_syncfs: false,
            policy: policy.unwrap_or("delay:15ms"),
            block: 4096,
            cut_after: None,
            cut_seed: None,
        };
        let ran = run_batch(lanes, &batch, &programs)?;
        trials.copies += COPIES;
        for (lane, with) in lanes.iter().zip(&ran) {
            trials.held += with.held;
            let found = differences(&batch, &programs, &ran[0], with, lane.way);
            for first in found.into_iter().flat_map(|(_, all)| all) {
                trials.add(lane.way, first);
            }
        }
        if !trials.differences.is_empty() {
            break;
        }
    }
    Ok(trials)
}

/// Leaves out steps as long as the difference stays. Any rest is a program, because steps of absent actors are skipped.
pub(crate) fn shrink(
    lanes: &[&Lane],
    program: &Program,
    policy: Option<&'static str>,
    kind: DifferenceKind,
    times: u32,
    until: Instant,
) -> Result<Program> {
    let fails = |program: &Program| -> Result<bool> {
        let trials = try_copies(lanes, program, policy, times)?;
        Ok(trials.differences.iter().any(|one| one.first.kind == kind))
    };
    let mut small = program.clone();
    let mut part = (small.steps.len() / 2).max(1);
    loop {
        let mut at = 0;
        let mut has_shrunk = false;
        while at < small.steps.len() && Instant::now() < until {
            let end = (at + part).min(small.steps.len());
            let mut next = small.clone();
            next.steps.drain(at..end);
            if !next.steps.is_empty() && fails(&next)? {
                small = next;
                has_shrunk = true;
            } else {
                at = end;
            }
        }
        if part == 1 && !has_shrunk || Instant::now() >= until {
            return Ok(small);
        }
        part = (part / 2).max(1);
    }
}
