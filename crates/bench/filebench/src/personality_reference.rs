//! Parameters of Filebench's personalities, and checks that a run in `--compat` kept to them: the share of each flowop
//! and the mean size of its calls. `personality_parameters` has the table, `flowop_shares` reads its rows.

use std::collections::HashMap;

use super::plan::{FlowopKind, LoopStep, PlannedFileset, WorkloadPlan};
use super::{FilebenchError, WorkloadFile};
use flowop_shares::FlowopShare;

mod flowop_shares;
mod personality_parameters;

pub use personality_parameters::{PersonalityParameters, STOCKS};

/// Maximum distance of a mean from the expected mean, in standard errors.
const MAX_STANDARD_ERRORS: f64 = 5.0;

/// Counts of a run, by the flowop's name.
#[derive(Debug, Default)]
pub struct FlowopCounts {
    pub operations: HashMap<String, u64>,
    /// Bytes that they moved.
    pub bytes: HashMap<String, u64>,
}

/// The result of comparing a run with the reference.
#[derive(Debug, Default)]
pub struct ReferenceVerdict {
    pub flowops: usize,
    /// Flowops among them for which the reference gives a size.
    pub sized: usize,
    /// Largest relative distance of a mean size from the reference.
    pub farthest: f64,
    /// Deviations from the reference, a sentence each.
    pub wrong: Vec<String>,
}

impl PersonalityParameters {
    /// Loads the workload with `set` instead of the file's own values.
    ///
    /// # Errors
    /// [`FilebenchError`], as [`WorkloadFile::load`].
    pub fn load(&self, set: &[&str]) -> Result<WorkloadFile, FilebenchError> {
        let set: Vec<String> = set.iter().map(|pair| (*pair).to_owned()).collect();
        WorkloadFile::load(self.name, &set)
    }

    /// Lists differences of the unchanged workload from the reference: filesets, loops, their threads and flowops.
    pub fn differences(&self, workload: &WorkloadFile) -> Vec<String> {
        let plan = &workload.plan;
        let mut differences = Vec::new();
        let mut compare = |what: &str, found: String, wanted: String| {
            if found != wanted {
                differences.push(format!("{what}: {found}, not {wanted}"));
            }
        };
        let filesets: Vec<String> = plan.filesets.iter().map(format_fileset).collect();
        let wanted = match self.filesets.parse::<usize>() {
            Ok(count) => vec!["1w10p100"; count].join(" "),
            Err(_) => self.filesets.to_owned(),
        };
        compare("filesets", filesets.join(" "), wanted);
        compare("loops", plan.loops.len().to_string(), self.loops.len().to_string());
        for ((number, steps), text) in plan.loops.iter().enumerate().zip(self.whole_loops()) {
            let tasks: Vec<FlowopKind> = operations(steps).iter().map(|row| row.0).collect();
            let found = (threads(plan, number), tasks);
            let wanted = flowop_shares::shares(text).map(|(threads, shares)| {
                let tasks: Vec<FlowopKind> = shares.iter().map(|share| share.task).collect();
                (threads, tasks)
            });
            compare(text, format!("{:?}", Some(found)), format!("{wanted:?}"));
        }
        differences
    }

    /// Returns the loops with the file's own variables.
    fn whole_loops(&self) -> &'static [&'static str] {
        let whole = personality_parameters::WHOLE.iter().find(|(name, _)| *name == self.name);
        whole.map_or(self.loops, |(_, loops)| loops)
    }

    /// Compares the counts of a run of `workload`, with its own variables or the small ones, with the reference.
    pub fn judge(
        &self,
        workload: &WorkloadFile,
        is_small: bool,
        counted: &FlowopCounts,
    ) -> ReferenceVerdict {
        let mut verdict = ReferenceVerdict::default();
        let loops = if is_small { self.loops } else { self.whole_loops() };
        for (steps, text) in loops.iter().enumerate() {
            match flowop_shares::shares(text) {
                Some((_, shares)) => verdict.judge_loop(&workload.plan, steps, &shares, counted),
                None => verdict.wrong.push(format!("'{text}' cannot be read")),
            }
        }
        verdict
    }
}

/// Returns a fileset as the table writes it.
fn format_fileset(files: &PlannedFileset) -> String {
    let entries = files.entries + files.leaf_directories;
    format!("{entries}w{}p{}", files.dirwidth, files.prealloc)
}

/// Lists the operations of a loop, with their tasks.
fn operations(steps: &[LoopStep]) -> Vec<(FlowopKind, usize)> {
    let mut found = Vec::new();
    LoopStep::each(steps, &mut |flowop| {
        if flowop.task.counts() {
            found.push((flowop.task, flowop.operation));
        }
    });
    found
}

/// Counts the threads that run a loop.
fn threads(plan: &WorkloadPlan, steps: usize) -> usize {
    plan.clients.iter().filter(|member| member.steps == steps).count()
}

impl ReferenceVerdict {
    fn judge_loop(
        &mut self,
        plan: &WorkloadPlan,
        steps: usize,
        shares: &[FlowopShare],
        counted: &FlowopCounts,
    ) {
        let threads = threads(plan, steps) as u64;
        // Sizes of files are as many draws as there are files.
        let files: u64 = plan.filesets.iter().map(|files| files.entries).sum();
        // Rounds are at most `most`, and at least `least` with each thread's last, unfinished one.
        let (mut most, mut least) = (f64::MAX, 0.0_f64);
        for (share, (_, operation)) in shares.iter().zip(operations(&plan.loops[steps])) {
            let name = &plan.names[operation];
            let count = counted.operations.get(name).copied().unwrap_or(0);
            let bytes = counted.bytes.get(name).copied().unwrap_or(0);
            let openings = share.openings * threads;
            let rounds = |count: u64| count as f64 / share.weight as f64;
            least = least.max(rounds(count.saturating_sub(openings)) - threads as f64);
            if !share.skipped {
                most = most.min(rounds(count));
            }
            self.flowops += 1;
            if count == 0 {
                self.wrong.push(format!("{name}: none"));
                continue;
            }
            if let Some(size) = share.exact {
                self.sized += 1;
                let possible = count.saturating_sub(openings)..=count;
                if bytes % size != 0 || !possible.contains(&(bytes / size)) {
                    self.wrong.push(format!("{name}: {bytes} bytes by {count} of {size}"));
                }
            }
            if let Some((mean, deviation)) = share.mean {
                self.sized += 1;
                let draws = if matches!(share.task, FlowopKind::ReadWhole | FlowopKind::WriteWhole)
                {
                    count.min(files)
                } else {
                    count
                };
                let found = bytes as f64 / count as f64;
                let opened = openings as f64 / count as f64 * mean;
                let allowed = MAX_STANDARD_ERRORS * deviation / (draws as f64).sqrt() + opened;
                self.farthest = self.farthest.max((found / mean - 1.0).abs());
                if (found - mean).abs() > allowed {
                    self.wrong
                        .push(format!("{name}: {found:.0} bytes, not {mean} +- {allowed:.0}"));
                }
            }
        }
        if least > most {
            self.wrong.push(format!("at least {least:.1} and at most {most:.1} rounds"));
        }
    }
}
