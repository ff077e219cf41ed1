//! Measures what a disk costs to share: the probe alone and beside others, on cold files of its own.
//!
//! It is the paper's CMP stacking (section 3.1): 1 to 8 probes of equal demand, each in a cgroup and on a file of its
//! own, the files far apart. What each loses is a point of the degradation curves, and of these follow Vector Points.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use luc_control::throttle::forecast::fit::{self, TaskActivity};
use luc_control::throttle::sample::Class;
use luc_control::throttle::vector_points::{Degradation, vector_points};
use luc_host::interrupt::interrupted;

use super::plan::{CELLS, DEMANDS, Plan, STACKED};
use super::profile::{Curve, Learned};
use crate::advise::watch::Watch;
use crate::engine::EngineOptions;
use crate::run::{RunOptions, Task, run_watched};
use crate::{BATCH_FLOOR, PolicyChoice, ThrottleError};

/// Blocks that are read at random.
const RANDOM_BYTES: u64 = 64 << 10;
/// The loss up to which a demand is borne, and demands that are as good as equal.
const ALLOWED_LOSS: f64 = 0.1;
const MERGE_WITHIN: f64 = 0.15;
const PREFIX: &str = ".luc-throttle-learn-";

/// A folder that goes away with this value, whatever is in it.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        // Nobody is left who could be told.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Measures; `tick` is told the part that is done, 0 to 1. The caller has installed [`luc_host::interrupt`]. The files
/// are removed in any case.
///
/// # Errors
///
/// [`ThrottleError::Interrupted`], and what cannot be done here.
pub fn measure(
    luc: &Path,
    plan: &Plan,
    tick: &mut dyn FnMut(f64),
) -> Result<Learned, ThrottleError> {
    let folder = plan.folder.join(format!("{PREFIX}{}", std::process::id()));
    fs::create_dir(&folder)
        .map_err(ThrottleError::process(format!("cannot make {}", folder.display())))?;
    let folder = Folder(folder);
    let files: Vec<PathBuf> =
        (0..plan.files).map(|number| folder.0.join(number.to_string())).collect();
    make(luc, plan, &files)?;
    let mut stand = Stand { luc, plan, files: &files, cells: 0, tick };
    let random = stand.cell(1, RANDOM_BYTES, 0, true)?;
    let rates = stand.rates()?;
    let mut fastest: Vec<Vec<TaskActivity>> = Vec::new();
    let mut curves = Vec::new();
    for (block_bytes, think_ns) in DEMANDS {
        let mut alone = None;
        for tasks in STACKED {
            let seen = stand.cell(tasks, block_bytes, think_ns, false)?;
            let each = rate(&seen) / f64::from(tasks);
            let demand_bytes_per_s = *alone.get_or_insert(each);
            curves.push(Curve {
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
    learned(plan, &random, &fastest, (curves, rates)).ok_or_else(|| ThrottleError::Learn {
        what: plan.disk.clone(),
        reason: "nothing was read from it: is the file system on another disk?".to_owned(),
    })
}

/// Makes the files, far apart where the file system can say where they are.
fn make(luc: &Path, plan: &Plan, files: &[PathBuf]) -> Result<(), ThrottleError> {
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

/// Where cells are run.
struct Stand<'a> {
    luc: &'a Path,
    plan: &'a Plan,
    files: &'a [PathBuf],
    cells: u64,
    tick: &'a mut dyn FnMut(f64),
}

impl Stand<'_> {
    /// Runs so many probes together for a cell's time; what each did.
    fn cell(
        &mut self,
        tasks: u32,
        block_bytes: u64,
        think_ns: u64,
        is_random: bool,
    ) -> Result<Vec<TaskActivity>, ThrottleError> {
        // The farthest apart: all of them for 8, the first and the last for 2.
        let last = self.files.len() - 1;
        let steps = (tasks as usize - 1).max(1);
        let files: Vec<&Path> =
            (0..tasks as usize).map(|number| self.files[number * last / steps].as_path()).collect();
        Ok(self.run(&files, (block_bytes, think_ns), is_random)?.seen_on_first())
    }

    /// What a stream moves at each file's place: its sector, and bytes per second; ascending.
    fn rates(&mut self) -> Result<Vec<(f64, f64)>, ThrottleError> {
        let mut rates = Vec::new();
        for file in self.files {
            let watch = self.run(&[file], DEMANDS[0], false)?;
            let seen = watch.seen_on_first();
            let rate = seen.first().and_then(fit::sequential_rate);
            rates.extend(watch.sector_of_first().zip(rate));
        }
        rates.sort_by(|a, b| a.0.total_cmp(&b.0));
        Ok(rates)
    }

    /// Runs a probe on each file for a cell's time.
    fn run(
        &mut self,
        files: &[&Path],
        (block_bytes, think_ns): (u64, u64),
        is_random: bool,
    ) -> Result<Watch<'static>, ThrottleError> {
        let commands: Vec<Task> = files
            .iter()
            .map(|file| {
                let mut words = format!(
                    "exec {} bench ranking {} --cold --block {block_bytes}",
                    quoted(self.luc),
                    quoted(file)
                );
                if think_ns > 0 {
                    words += &format!(" --think {think_ns}ns");
                }
                if is_random {
                    words += " --random 1";
                }
                Task {
                    command: format!("{words} 2>/dev/null").into(),
                    class: Class::Ignored,
                    size_bytes: None,
                    p99_ns: None,
                }
            })
            .collect();
        let options = RunOptions {
            tell_threads_apart: false,
            engine: EngineOptions {
                policy: PolicyChoice::Off,
                disks: vec![self.plan.disk.clone()],
                max_frozen_ns: 0,
                batch_floor: BATCH_FLOOR,
            },
            settings: Vec::new(),
            discard_output: true,
        };
        let mut watch = Watch::open(&options.engine.disks, Box::new(|_| {}))?;
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

/// A path for the shell.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.to_string_lossy().replace('\'', "'\\''"))
}

/// What tasks moved together, bytes per second.
fn rate(seen: &[TaskActivity]) -> f64 {
    let rate = |seen: &TaskActivity| seen.bytes_read as f64 * 1e9 / seen.took_ns.max(1) as f64;
    seen.iter().map(rate).sum()
}

/// From what was seen to what is kept; `None` where nothing was.
fn learned(
    plan: &Plan,
    random: &[TaskActivity],
    fastest: &[Vec<TaskActivity>],
    (curves, rates): (Vec<Curve>, Vec<(f64, f64)>),
) -> Option<Learned> {
    let alone = fastest.first()?;
    let peak_bytes_per_s = rates.iter().map(|(_, rate)| *rate).reduce(f64::max)?;
    let mut learned = Learned::new(plan.identity.clone());
    learned.peak_bytes_per_s = peak_bytes_per_s;
    // The places of what runs together are those of the rates, on average.
    let mean_bytes_per_s = rates.iter().map(|(_, rate)| *rate).sum::<f64>() / rates.len() as f64;
    learned.rates = rates;
    learned.speed_ups = STACKED
        .into_iter()
        .zip(fastest)
        .skip(1)
        .map(|(tasks, seen)| (tasks as usize, rate(seen) / rate(alone)))
        .filter(|(_, worth)| worth.is_finite() && *worth > 0.0)
        .collect();
    let still = luc_control::throttle::forecast::DiskModel {
        bytes_per_s: mean_bytes_per_s,
        near_ns: 0,
        far_ns: 0,
        request_ns: 0,
        slots: 1,
    };
    // What is not seen is no cost.
    let together: Vec<TaskActivity> = fastest.iter().skip(1).flatten().copied().collect();
    let far_ns = fit::disk(&together, Some(&still), false).far_ns;
    let near_ns = jump_ns(random, mean_bytes_per_s).unwrap_or(far_ns);
    learned.switch_ns = far_ns;
    learned.random_ns = near_ns;
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

/// What each read at random took longer than its bytes alone, ns.
fn jump_ns(random: &[TaskActivity], bytes_per_s: f64) -> Option<u64> {
    let sum = |of: fn(&TaskActivity) -> u64| random.iter().map(of).sum::<u64>();
    let jumps = sum(|seen| seen.reads.saturating_sub(seen.continued));
    let moving_ns = sum(|seen| seen.bytes_read) as f64 * 1e9 / bytes_per_s;
    (jumps > 0)
        .then(|| ((sum(|seen| seen.read_ns) as f64 - moving_ns) / jumps as f64).max(0.0) as u64)
}
