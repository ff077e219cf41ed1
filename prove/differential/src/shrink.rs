//! A program alone, many copies at once, and what of it is needed for its difference.

use std::time::Instant;

use anyhow::Result;
use serde::Serialize;

use crate::batch::{differences, run_batch};
use crate::compare::{Difference, Kind};
use crate::lane::{Batch, Lane, Way};
use crate::program::Program;

/// So many that calls are held for each other.
const COPIES: usize = 64;

/// What came of trying.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Tried {
    pub(crate) copies: usize,
    pub(crate) held: u64,
    pub(crate) differences: Vec<Found>,
}

/// The first difference of a kind by one way, and in how many copies it was.
#[derive(Debug, Serialize)]
pub(crate) struct Found {
    pub(crate) way: Way,
    pub(crate) copies: u64,
    #[serde(flatten)]
    pub(crate) first: Difference,
}

impl Tried {
    fn add(&mut self, way: Way, first: Difference) {
        let mut known = self.differences.iter_mut();
        match known.find(|one| (one.way, one.first.kind) == (way, first.kind)) {
            Some(known) => known.copies += 1,
            None => self.differences.push(Found { way, copies: 1, first }),
        }
    }
}

/// Runs copies of a program until there is a difference, so many times at most.
pub(crate) fn tried(
    lanes: &[&Lane],
    program: &Program,
    policy: Option<&'static str>,
    times: u32,
) -> Result<Tried> {
    let programs = vec![program; COPIES];
    let mut tried = Tried::default();
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
        tried.copies += COPIES;
        for (lane, with) in lanes.iter().zip(&ran) {
            tried.held += with.held;
            let found = differences(&batch, &programs, &ran[0], with, lane.way);
            for first in found.into_iter().flat_map(|(_, all)| all) {
                tried.add(lane.way, first);
            }
        }
        if !tried.differences.is_empty() {
            break;
        }
    }
    Ok(tried)
}

/// Leaves out steps as long as the difference stays. Any rest is a program: steps of actors that are not there are left out.
pub(crate) fn shrink(
    lanes: &[&Lane],
    program: &Program,
    policy: Option<&'static str>,
    kind: Kind,
    times: u32,
    until: Instant,
) -> Result<Program> {
    let fails = |program: &Program| -> Result<bool> {
        let tried = tried(lanes, program, policy, times)?;
        Ok(tried.differences.iter().any(|one| one.first.kind == kind))
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
