//! Batches of random programs. Each is run in every way and compared with the run without LUC.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use luc_host::interrupt_flag;
use rand::RngExt as _;
use serde::Serialize;

use crate::batch::{differences, run_batch};
use crate::compare::{Difference, DifferenceKind};
use crate::lane::{Batch, BatchOutcome, Lane, Way};
use crate::layout::Progress;
use crate::program::Program;
use crate::shrink;

#[derive(Debug, Clone)]
pub(crate) struct FuzzOptions {
    pub(crate) seed: u64,
    pub(crate) time: Duration,
    pub(crate) count: u64,
    /// Number of programs in a batch, and of those that run at once.
    pub(crate) batch: u64,
    pub(crate) width: u32,
    pub(crate) ways: Vec<Way>,
    /// The only policy; `None` for all of them.
    pub(crate) policy: Option<&'static str>,
    /// For tests of the checks, see [`Batch::lie`].
    pub(crate) lie: u32,
    /// Maximum number of failures that are kept of each kind and way.
    pub(crate) keep: usize,
    /// Maximum time for making failures smaller, in all.
    pub(crate) shrink: Duration,
}

/// The default policy, and policies that hold callers.
pub(crate) const POLICIES: [&str; 6] =
    ["delay:15ms", "delay:15ms", "delay:5ms", "delay:2ms", "pid", "auto"];

/// Figures of one way.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Figures {
    pub(crate) programs: u64,
    /// Steps that were taken, and those of them that synchronize.
    pub(crate) calls: u64,
    pub(crate) synchronizations: u64,
    /// Synchronizations that were held, and those that returned EINTR.
    pub(crate) holds: u64,
    pub(crate) interrupted: u64,
    /// Programs of batches with a cut: their promises were compared with the disk.
    pub(crate) cut: u64,
    /// Batches whose disk could be mounted only after e2fsck.
    pub(crate) repaired: u64,
    /// Programs with a difference, by its kind.
    pub(crate) differences: BTreeMap<DifferenceKind, u64>,
}

/// A program with differences.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Failure {
    pub(crate) seed: u64,
    pub(crate) way: Way,
    pub(crate) policy: &'static str,
    pub(crate) differences: Vec<Difference>,
    pub(crate) program: String,
    /// The smaller program that still fails; `None` if there is none.
    pub(crate) shrunk: Option<String>,
}

#[derive(Debug, Default, Serialize)]
pub(crate) struct Summary {
    pub(crate) seed: u64,
    pub(crate) seconds: f64,
    /// Number of programs. Each was run in every way.
    pub(crate) programs: u64,
    pub(crate) batches: u64,
    pub(crate) ways: BTreeMap<Way, Figures>,
    pub(crate) failures: Vec<Failure>,
    /// Reason why the last batch could not be run; its programs are not counted.
    pub(crate) error: Option<String>,
}

/// Makes the lanes of some ways, with that without LUC first.
pub(crate) fn make_lanes(ways: &[Way], luc: &Path, subject: &Path) -> Result<Vec<Lane>> {
    let all = [Way::Plain].into_iter().chain(ways.iter().copied());
    all.map(|way| Lane::new(way, luc, subject)).collect()
}

/// Runs batches until time or programs are used up.
pub(crate) fn run(options: &FuzzOptions, lanes: Vec<Lane>) -> Result<Summary> {
    let begun = Instant::now();
    let mut summary = Summary { seed: options.seed, ..Summary::default() };
    let may_go_on = |programs| {
        begun.elapsed() < options.time && programs < options.count && !interrupt_flag::interrupted()
    };
    while may_go_on(summary.programs) {
        let first = options.seed.wrapping_add(summary.programs);
        let mut random = luc_stats::seeded_random::stream(first, 1);
        let drawn = POLICIES[random.random_range(0..POLICIES.len())];
        let batch = Batch {
            stamp: random.random_range(1..u32::MAX),
            width: options.width,
            warm: random.random_range(0..3),
            lie: options.lie,
            without_syncfs: random.random_bool(0.8),
            policy: options.policy.unwrap_or(drawn),
            block: [1024, 4096][random.random_range(0..2)],
            cut_after: random
                .random_bool(0.25)
                .then(|| Duration::from_millis(random.random_range(30..2500))),
            cut_seed: random.random_bool(0.5).then(|| random.random_range(0..1 << 32)),
        };
        let seeds = first..first + options.batch.min(options.count - summary.programs);
        let programs: Vec<Program> = seeds.clone().map(crate::generate::program).collect();
        let programs: Vec<&Program> = programs.iter().collect();
        // lucd seldom holds them, and what it does else is what notifications do.
        let has_attach = options.ways == [Way::Attach] || summary.batches.is_multiple_of(4);
        let lanes: Vec<&Lane> =
            lanes.iter().filter(|lane| lane.way != Way::Attach || has_attach).collect();
        let ran = match run_batch(&lanes, &batch, &programs) {
            Ok(ran) => ran,
            Err(error) => {
                summary.error = Some(format!("{error:#}"));
                break;
            }
        };
        summary.add(&lanes, &batch, seeds.start, &programs, &ran, options.keep);
    }
    summary.seconds = begun.elapsed().as_secs_f64();
    if summary.error.is_none() {
        summary.shrink(&lanes, options.shrink)?;
    }
    Ok(summary)
}

impl Summary {
    /// Shrinks the first failure of each kind and way, for `time` at most.
    fn shrink(&mut self, lanes: &[Lane], time: Duration) -> Result<()> {
        let begun = Instant::now();
        let mut tried = std::collections::BTreeSet::new();
        for failure in &mut self.failures {
            let kind = failure.differences[0].kind;
            let is_over = begun.elapsed() >= time || interrupt_flag::interrupted();
            if is_over || failure.way == Way::Plain || !tried.insert((failure.way, kind)) {
                continue;
            }
            let lanes: Vec<&Lane> =
                lanes.iter().filter(|lane| [Way::Plain, failure.way].contains(&lane.way)).collect();
            let program: Program = failure.program.parse()?;
            let until = begun + time;
            let small = shrink::shrink(&lanes, &program, Some(failure.policy), kind, 2, until)?;
            failure.shrunk = (small != program).then(|| small.to_string());
        }
        Ok(())
    }

    fn add(
        &mut self,
        lanes: &[&Lane],
        batch: &Batch,
        seed: u64,
        programs: &[&Program],
        ran: &[BatchOutcome],
        keep: usize,
    ) {
        self.programs += programs.len() as u64;
        self.batches += 1;
        for (lane, with) in lanes.iter().zip(ran) {
            let found = differences(batch, programs, &ran[0], with, lane.way);
            let figures = self.ways.entry(lane.way).or_default();
            figures.programs += programs.len() as u64;
            figures.holds += with.held;
            figures.repaired += u64::from(with.is_repaired);
            figures.cut += u64::from(batch.cut_after.is_some()) * programs.len() as u64;
            for (program, outcome) in programs.iter().zip(&with.outcomes) {
                for (step, result) in program.steps.iter().zip(&outcome.results) {
                    let is_done = u64::from(result.progress == Progress::Done);
                    figures.calls += is_done;
                    if !step.op.is_sync() {
                        continue;
                    }
                    figures.synchronizations += is_done;
                    let is_interrupted = result.value == -1 && result.error == libc::EINTR;
                    figures.interrupted += u64::from(is_interrupted);
                }
            }
            for (number, differences) in found {
                let kinds: std::collections::BTreeSet<DifferenceKind> =
                    differences.iter().map(|one| one.kind).collect();
                for kind in &kinds {
                    *figures.differences.entry(*kind).or_default() += 1;
                }
                let is_known = |one: &Failure| {
                    one.way == lane.way
                        && kinds
                            .iter()
                            .all(|kind| one.differences.iter().any(|other| other.kind == *kind))
                };
                if self.failures.iter().filter(|one| is_known(one)).count() < keep {
                    self.failures.push(Failure {
                        seed: seed + number as u64,
                        way: lane.way,
                        policy: batch.policy,
                        differences,
                        program: programs[number].to_string(),
                        shrunk: None,
                    });
                }
            }
        }
    }
}
