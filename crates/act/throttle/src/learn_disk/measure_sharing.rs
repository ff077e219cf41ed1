//! Measures what a disk costs to share: runs the probe alone and beside others, on cold files of its own.
//!
//! This is the paper's CMP stacking (section 3.1): 1 to 8 probes of equal demand, each in a cgroup and on a file of its
//! own. The files are far apart. The loss of each probe is a point of the degradation curves, which give the Vector
//! Points.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use luc_control::throttle::forecast::DiskModel;
use luc_control::throttle::forecast::fit_model::{self, TaskActivity};
use luc_control::throttle::policy_input::TaskClass;
use luc_control::throttle::vector_points::{Degradation, vector_points};
use luc_host::interrupt_flag::interrupted;

use super::disk_profile::{DegradationPoint, DiskProfile};
use super::measurement_plan::{CELLS, DEMANDS, MeasurementPlan, ProbeDemand, STACK_SIZES};
use crate::ThrottleError;
use crate::advise::advise_watch::AdviseWatch;
use crate::run_commands::{CommandTask, ThrottledRunOptions, run_watched};

/// Block size of random reads.
const RANDOM_BYTES: u64 = 64 << 10;
/// Loss up to which the disk can serve a demand, and the difference up to which demands count as equal.
const ALLOWED_LOSS: f64 = 0.1;
const MERGE_WITHIN: f64 = 0.15;
const FOLDER_PREFIX: &str = ".luc-throttle-learn-";

/// A folder that is removed with its content when this value is dropped.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        // There is no caller left to report an error to.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Makes the measurement. `tick` gets the part that is done, 0 to 1. The caller has installed
/// [`luc_host::interrupt_flag`]. The files are removed in any case.
///
/// # Errors
///
/// [`ThrottleError::Interrupted`], and unmet requirements of this machine.
pub fn measure(
    luc: &Path,
    plan: &MeasurementPlan,
    tick: &mut dyn FnMut(f64),
) -> Result<DiskProfile, ThrottleError> {
    let folder = plan.folder.join(format!("{FOLDER_PREFIX}{}", std::process::id()));
    fs::create_dir(&folder)
        .map_err(ThrottleError::process(format!("cannot make {}", folder.display())))?;
    let folder = Folder(folder);
    let files: Vec<PathBuf> =
        (0..plan.files).map(|number| folder.0.join(number.to_string())).collect();
    create_files(luc, plan, &files)?;
    let mut bench = ProbeBench { luc, plan, files: &files, cells: 0, tick };
    let random = bench.cell(1, ProbeDemand { block_bytes: RANDOM_BYTES, think_ns: 0 }, true)?;
    let rates = bench.rates()?;
    let mut fastest: Vec<Vec<TaskActivity>> = Vec::new();
    let mut curves = Vec::new();
    for demand in DEMANDS {
        let ProbeDemand { block_bytes, think_ns } = demand;
        let mut alone = None;
        for tasks in STACK_SIZES {
            let seen = bench.cell(tasks, demand, false)?;
            let each = total_rate(&seen) / f64::from(tasks);
            let demand_bytes_per_s = *alone.get_or_insert(each);
            curves.push(DegradationPoint {
                tasks,
                block_bytes,
                think_ns,
                demand_bytes_per_s,
                loss: (1.0 - each / demand_bytes_per_s).clamp(0.0, 1.0),
            });
            if think_ns == 0 {
                fastest.push(seen);
            }
        }
    }
    summarize(plan, &random, &fastest, curves, rates).ok_or_else(|| ThrottleError::Learn {
        what: plan.disk.clone(),
        reason: "nothing was read from it: is the file system on another disk?".to_owned(),
    })
}

/// Creates the files, far apart if the file system can report positions.
fn create_files(
    luc: &Path,
    plan: &MeasurementPlan,
    files: &[PathBuf],
) -> Result<(), ThrottleError> {
    for spread in [true, false] {
        let mut command = Command::new(luc);
        command.args(["bench", "ranking", "--create", &plan.file_bytes.to_string()]);
        command.args(spread.then_some("--spread")).args(files);
        let output = command
            .stdin(Stdio::null())
            .output()
            .map_err(ThrottleError::process("cannot make files"))?;
        if interrupted() {
            return Err(ThrottleError::Interrupted);
        }
        if output.status.success() {
            return Ok(());
        }
        if !spread {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(ThrottleError::Learn {
                what: plan.folder.display().to_string(),
                reason: said.lines().last().unwrap_or("no files").to_owned(),
            });
        }
    }
    Ok(())
}

/// Setup in which cells are run. A cell is one measurement.
struct ProbeBench<'a> {
    luc: &'a Path,
    plan: &'a MeasurementPlan,
    files: &'a [PathBuf],
    cells: u64,
    tick: &'a mut dyn FnMut(f64),
}

impl ProbeBench<'_> {
    /// Runs `tasks` probes together for a cell's time. Returns the activity of each.
    fn cell(
        &mut self,
        tasks: u32,
        demand: ProbeDemand,
        is_random: bool,
    ) -> Result<Vec<TaskActivity>, ThrottleError> {
        // Spread the files as far as possible: all of them for 8 tasks, the first and the last for 2.
        let last = self.files.len() - 1;
        let steps = (tasks as usize - 1).max(1);
        let files: Vec<&Path> =
            (0..tasks as usize).map(|number| self.files[number * last / steps].as_path()).collect();
        Ok(self.run(&files, demand, is_random)?.seen_on_first())
    }

    /// Measures a stream on each file. Returns the file's sector and the rate in bytes per second, ascending.
    fn rates(&mut self) -> Result<Vec<(f64, f64)>, ThrottleError> {
        let mut rates = Vec::new();
        for file in self.files {
            let watch = self.run(&[file], DEMANDS[0], false)?;
            let seen = watch.seen_on_first();
            let rate = seen.first().and_then(fit_model::sequential_rate);
            rates.extend(watch.sector_of_first().zip(rate));
        }
        rates.sort_by(|a, b| a.0.total_cmp(&b.0));
        Ok(rates)
    }

    /// Runs a probe on each file for a cell's time.
    fn run(
        &mut self,
        files: &[&Path],
        ProbeDemand { block_bytes, think_ns }: ProbeDemand,
        is_random: bool,
    ) -> Result<AdviseWatch<'static>, ThrottleError> {
        let luc = quote(self.luc);
        let think = if think_ns > 0 { format!(" --think {think_ns}ns") } else { String::new() };
        let random = if is_random { " --random 1" } else { "" };
        let command = |file: &&Path| {
            let file = quote(file);
            let probe =
                format!("{luc} bench ranking {file} --cold --block {block_bytes}{think}{random}");
            CommandTask::new(format!("exec {probe} 2>/dev/null").into(), TaskClass::Ignored)
        };
        let commands: Vec<CommandTask> = files.iter().map(command).collect();
        let options = ThrottledRunOptions::unthrottled(vec![self.plan.disk.clone()]);
        let mut watch = AdviseWatch::open(&options.engine.disks, Box::new(|_| {}))?;
        watch.only_for(self.plan.measuring_ns / CELLS);
        let outcome = run_watched(self.luc, &commands, &options, Some(&mut watch))?;
        if outcome.interrupted {
            return Err(ThrottleError::Interrupted);
        }
        self.cells += 1;
        (self.tick)(self.cells as f64 / CELLS as f64);
        Ok(watch)
    }
}

/// Quotes a path for the shell.
fn quote(path: &Path) -> String {
    format!("'{}'", path.to_string_lossy().replace('\'', "'\\''"))
}

/// Combined rate of tasks, bytes per second.
fn total_rate(seen: &[TaskActivity]) -> f64 {
    let rate = |seen: &TaskActivity| seen.bytes_read as f64 * 1e9 / seen.took_ns.max(1) as f64;
    seen.iter().map(rate).sum()
}

/// Summarizes the observations; `None` if there are none.
fn summarize(
    plan: &MeasurementPlan,
    random: &[TaskActivity],
    fastest: &[Vec<TaskActivity>],
    curves: Vec<DegradationPoint>,
    rates: Vec<(f64, f64)>,
) -> Option<DiskProfile> {
    // 1. Rates and speed-ups.
    let alone = fastest.first()?;
    let peak_bytes_per_s = rates.iter().map(|(_, rate)| *rate).reduce(f64::max)?;
    let mut learned = DiskProfile::new(plan.identity.clone());
    learned.peak_bytes_per_s = peak_bytes_per_s;
    // The mean position of tasks that run together is that of the rates.
    let mean_bytes_per_s = rates.iter().map(|(_, rate)| *rate).sum::<f64>() / rates.len() as f64;
    learned.rates = rates;
    learned.speed_ups = STACK_SIZES
        .into_iter()
        .zip(fastest)
        .skip(1)
        .map(|(tasks, seen)| (tasks as usize, total_rate(seen) / total_rate(alone)))
        .filter(|(_, worth)| worth.is_finite() && *worth > 0.0)
        .collect();
    // 2. Costs of moving, against a disk that moves at no cost.
    let still =
        DiskModel { bytes_per_s: mean_bytes_per_s, near_ns: 0, far_ns: 0, request_ns: 0, slots: 1 };
    // Unobserved costs count as 0.
    let together: Vec<TaskActivity> = fastest.iter().skip(1).flatten().copied().collect();
    learned.switch_ns = fit_model::disk(&together, Some(&still), false).far_ns;
    learned.random_ns = jump_ns(random, mean_bytes_per_s).unwrap_or(learned.switch_ns);
    // 3. Vector Points.
    let points: Vec<Degradation> = curves
        .iter()
        .filter(|curve| curve.demand_bytes_per_s.is_finite())
        .map(|curve| Degradation {
            tasks: curve.tasks,
            demand_bytes_per_s: curve.demand_bytes_per_s,
            loss: curve.loss,
        })
        .collect();
    learned.vector_points = vector_points(&points, ALLOWED_LOSS, MERGE_WITHIN)
        .iter()
        .map(|point| (point.tasks, point.demand_bytes_per_s))
        .collect();
    learned.curves = curves;
    Some(learned)
}

/// Time of each random read beyond the transfer of its bytes, ns.
fn jump_ns(random: &[TaskActivity], bytes_per_s: f64) -> Option<u64> {
    let sum = |of: fn(&TaskActivity) -> u64| random.iter().map(of).sum::<u64>();
    let jumps = sum(|seen| seen.reads.saturating_sub(seen.continued));
    let moving_ns = sum(|seen| seen.bytes_read) as f64 * 1e9 / bytes_per_s;
    (jumps > 0)
        .then(|| ((sum(|seen| seen.read_ns) as f64 - moving_ns) / jumps as f64).max(0.0) as u64)
}
