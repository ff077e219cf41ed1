//! Batches of programs, each run in every way and compared with the run without LUC.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use luc_host::interrupt;
use rand::RngExt as _;
use serde::Serialize;

use crate::compare::{self, Difference, Kind};
use crate::lane::{Batch, Lane, Ran, Way};
use crate::layout::Progress;
use crate::model;
use crate::program::Program;

/// How long to go on, and how.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub(crate) seed: u64,
    pub(crate) time: Duration,
    pub(crate) count: u64,
    /// Programs of a batch, and at once.
    pub(crate) batch: u64,
    pub(crate) width: u32,
    pub(crate) ways: Vec<Way>,
    /// The only policy, if not all of them.
    pub(crate) policy: Option<&'static str>,
    /// For tests of the checks, see [`Batch::lie`].
    pub(crate) lie: u32,
    /// Programs with differences that are kept.
    pub(crate) keep: usize,
}

/// Policies that hold callers, and the default.
pub(crate) const POLICIES: [&str; 6] = [
    "delay:15ms",
    "delay:15ms",
    "delay:5ms",
    "delay:2ms",
    "pid",
    "auto",
];

/// What one way showed.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Figures {
    pub(crate) programs: u64,
    /// Steps that were taken, and those of them that synchronize.
    pub(crate) calls: u64,
    pub(crate) synchronizations: u64,
    /// Synchronizations that were held.
    pub(crate) holds: u64,
    /// Programs that a cut found at work, or over: promises of all were compared with the disk.
    pub(crate) cut: u64,
    /// Programs with a difference, by its kind.
    pub(crate) differences: BTreeMap<Kind, u64>,
}

/// A program and what was wrong with it.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Failure {
    pub(crate) seed: u64,
    pub(crate) way: Way,
    pub(crate) policy: &'static str,
    pub(crate) differences: Vec<Difference>,
    pub(crate) program: String,
}

/// All that a run showed.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Summary {
    pub(crate) seed: u64,
    pub(crate) seconds: f64,
    /// Programs, each run in every way.
    pub(crate) programs: u64,
    pub(crate) batches: u64,
    pub(crate) ways: BTreeMap<Way, Figures>,
    pub(crate) failures: Vec<Failure>,
}

/// The lanes of some ways, that without LUC first.
pub(crate) fn lanes(ways: &[Way], luc: &Path, subject: &Path) -> Result<Vec<Lane>> {
    let all = [Way::Plain].into_iter().chain(ways.iter().copied());
    all.map(|way| Lane::new(way, luc, subject)).collect()
}

/// Runs batches until time or programs are used up.
pub(crate) fn run(options: &Options, luc: &Path, subject: &Path) -> Result<Summary> {
    let lanes = lanes(&options.ways, luc, subject)?;
    let begun = Instant::now();
    let mut summary = Summary {
        seed: options.seed,
        ..Summary::default()
    };
    let may_go_on = |programs| {
        begun.elapsed() < options.time && programs < options.count && !interrupt::interrupted()
    };
    while may_go_on(summary.programs) {
        let first = options.seed.wrapping_add(summary.programs);
        let mut random = luc_stats::random::stream(first, 1);
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
            cut_seed: random
                .random_bool(0.5)
                .then(|| random.random_range(0..1 << 32)),
        };
        let seeds = first..first + options.batch.min(options.count - summary.programs);
        let programs: Vec<Program> = seeds.clone().map(crate::generate::program).collect();
        let programs: Vec<&Program> = programs.iter().collect();
        // lucd seldom holds them, and what it does else is what notifications do.
        let has_attach = options.ways == [Way::Attach] || random.random_bool(0.25);
        let lanes: Vec<&Lane> = lanes
            .iter()
            .filter(|lane| lane.way != Way::Attach || has_attach)
            .collect();
        let ran = run_batch(&lanes, &batch, &programs)?;
        summary.add(&lanes, &batch, seeds.start, &programs, &ran, options.keep);
    }
    summary.seconds = begun.elapsed().as_secs_f64();
    Ok(summary)
}

/// Runs a batch in all lanes at the same time.
pub(crate) fn run_batch(lanes: &[&Lane], batch: &Batch, programs: &[&Program]) -> Result<Vec<Ran>> {
    std::thread::scope(|scope| {
        let running: Vec<_> = lanes
            .iter()
            .map(|lane| scope.spawn(|| lane.run(batch, programs)))
            .collect();
        let ended = running.into_iter().zip(lanes).map(|(running, lane)| {
            let ran = running.join().map_err(|_| anyhow!("a lane panicked"))?;
            let said = lane.errors();
            ran.map_err(|error| error.context(format!("{:?}: {}", lane.way, said.trim())))
        });
        ended.collect()
    })
}

/// What was wrong with each program of a batch in one lane, by number.
pub(crate) fn differences(
    batch: &Batch,
    programs: &[&Program],
    plain: &Ran,
    with: &Ran,
    way: Way,
) -> Vec<(usize, Vec<Difference>)> {
    let each = programs.iter().enumerate().map(|(number, program)| {
        let outcome = &with.outcomes[number];
        let lost = model::broken(program, outcome, &with.disks[number], with.end_ns);
        let lost = lost.into_iter();
        let mut all: Vec<Difference> = lost.map(|one| Difference::new(Kind::Lost, one)).collect();
        // After a cut in its midst everybody is told errors, at another moment.
        if way != Way::Plain && batch.cut_after.is_none() {
            let plain = &plain.outcomes[number];
            all.extend(compare::differences(program, plain, outcome));
        }
        if way == Way::Plain && outcome.is_hung {
            let about = "without LUC, too: the program is at fault".to_owned();
            all.push(Difference::new(Kind::Hung, about));
        }
        (number, all)
    });
    each.filter(|(_, all)| !all.is_empty()).collect()
}

impl Summary {
    fn add(
        &mut self,
        lanes: &[&Lane],
        batch: &Batch,
        seed: u64,
        programs: &[&Program],
        ran: &[Ran],
        keep: usize,
    ) {
        self.programs += programs.len() as u64;
        self.batches += 1;
        for (lane, with) in lanes.iter().zip(ran) {
            let found = differences(batch, programs, &ran[0], with, lane.way);
            let figures = self.ways.entry(lane.way).or_default();
            figures.programs += programs.len() as u64;
            figures.holds += with.held;
            figures.cut += u64::from(batch.cut_after.is_some()) * programs.len() as u64;
            for (program, outcome) in programs.iter().zip(&with.outcomes) {
                for (step, result) in program.steps.iter().zip(&outcome.results) {
                    let is_done = u64::from(result.progress == Progress::Done);
                    figures.calls += is_done;
                    figures.synchronizations += is_done * u64::from(step.op.is_sync());
                }
            }
            for (number, differences) in found {
                let kinds: std::collections::BTreeSet<Kind> =
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
                    });
                }
            }
        }
    }
}
