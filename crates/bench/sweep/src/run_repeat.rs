//! One repeat: makes a fresh file system or folder, drops caches, runs the workload, reads its figure, removes
//! everything.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use luc_borrow::{
    BorrowableDevice, BorrowedProcessors, ChangedDevice, CleanupProcess, DeviceRequest,
    SWEEP_VARIABLE, identified,
};
use luc_disk::{MkfsSpec, MountSpec};
use luc_host::installed_programs::tool;
use luc_host::interrupt_flag;
use luc_power::energy::RunEnergy;
use luc_stats::warm_up;
use luc_units::OnPath as _;
use regex_lite::Regex;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::counters::{CounterReadingBefore, CounterValues, report_counters};
use super::error::SweepError;
use super::guests::FLOWOPS;
use super::plan::{FigureLocation, SweepPlan, SweepPolicy};
use super::repeat_environment::EnvironmentBefore;
use super::results_journal::{DiscardedRepeat, RepeatRecord};
use super::sweep_points::SweepPoint;
use super::time_scale::TimeScale;
use super::workload_options::{self, PersonalityOptions};

const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// Time for a program to end after SIGTERM.
const TERM_TIMEOUT: Duration = Duration::from_secs(5);

/// Attempts at a repeat while too much of the processors' time is stolen. The last one counts.
const MAX_ATTEMPTS: usize = 4;

/// A smaller share of energy above idle gives no figure per joule.
const MIN_NET_SHARE: f64 = 0.01;

/// Makes a repeat of `point`, again while the hypervisor takes more of the processors' time than the plan's
/// `stop.stolen`.
pub(super) fn repeat(
    plan: &SweepPlan,
    point: &SweepPoint,
    round: usize,
    cleanup: &CleanupProcess,
    power: &mut BorrowedProcessors,
) -> Result<RepeatRecord, SweepError> {
    let what = format!("{} repeat {}", point.key(), round + 1);
    let runner = Runner { what, plan, point, round, cleanup };
    let mut discarded = Vec::new();
    loop {
        let made = runner.attempt(power)?;
        let stolen_share = made.environment.stolen_share;
        let is_disturbed = plan.stop.stolen.is_some_and(|most| stolen_share > most);
        if !is_disturbed || discarded.len() + 1 == MAX_ATTEMPTS {
            return Ok(RepeatRecord { discarded, ..made });
        }
        discarded.push(DiscardedRepeat { value: made.value, stolen_share });
    }
}

struct Runner<'a> {
    /// Point and round, for errors.
    what: String,
    plan: &'a SweepPlan,
    point: &'a SweepPoint,
    round: usize,
    cleanup: &'a CleanupProcess,
}

impl Runner<'_> {
    /// Makes the repeat, whatever disturbs it.
    fn attempt(&self, power: &mut BorrowedProcessors) -> Result<RepeatRecord, SweepError> {
        let &Self { point, round, .. } = self;
        // 1. A fresh folder, the settings, and a machine at rest.
        let dir = self.prepare()?;
        let mut command = self.workload(&dir, self.plan.seed.wrapping_add(round as u64))?;
        power.set(point.frequency, &mut command)?;
        let caches_dropped = settle(self.plan);
        // 2. The workload, between two readings of counters and meter.
        let before = EnvironmentBefore::now();
        let counting = CounterReadingBefore::begin(&dir, &power.sysfs);
        power.energy.begin();
        let begun = Instant::now();
        let outcome = self.execute(&mut command);
        let elapsed_s = begun.elapsed().as_secs_f64();
        // A meter may wait for its next sample.
        let counted = counting.end();
        let energy = power.energy.end();
        let stdout = outcome?;
        let fs = point.target.fs.as_deref();
        let environment = before.end(&dir, fs, caches_dropped, &power.sysfs);
        // 3. The figures, then the removal.
        let (value, warm_up) = self.figure(&stdout, elapsed_s)?;
        let mut counters = counted.counters(&stdout, elapsed_s);
        counters.extend(self.own_counters(&stdout));
        self.clear()?;
        let per_joule = |joules: fn(&RunEnergy) -> Option<f64>| {
            point.unit_per_joule()?;
            let energy = energy.as_ref()?;
            // A smaller difference is noise of both, and its inverse could be any number.
            let least = energy.gross_joules? * MIN_NET_SHARE;
            let joules = joules(energy).filter(|&joules| joules > least)?;
            Some(value * energy.seconds / joules)
        };
        Ok(RepeatRecord {
            per_gross_joule: per_joule(|energy| energy.gross_joules),
            per_net_joule: per_joule(|energy| energy.net_joules),
            key: point.key(),
            round,
            value,
            warm_up,
            environment,
            energy,
            counters,
            discarded: Vec::new(),
        })
    }

    /// Makes the fresh folder to work in.
    fn prepare(&self) -> Result<PathBuf, SweepError> {
        let state = &self.cleanup.state;
        let target = &self.point.target;
        if let Some(directory) = &target.directory {
            let own = state.scratch.iter().find(|scratch| scratch.parent() == Some(directory));
            let own = own.unwrap_or(&state.work).clone();
            fs::create_dir(&own).map_err(SweepError::io("make", &own))?;
            return Ok(own);
        }
        let mount = state.mount();
        if let Some(request) = target.device_request() {
            self.format(&request)?;
        } else {
            self.create_disk()?;
        }
        if let Some(scheduler) = self.point.scheduler {
            let block = BorrowableDevice::below(&mount, &state.sysfs)?;
            ChangedDevice::set_scheduler(&state.devices, &block, scheduler)?;
        }
        Ok(mount)
    }

    /// Makes an emulated disk with a file system, mounted.
    fn create_disk(&self) -> Result<(), SweepError> {
        let (state, target) = (&self.cleanup.state, &self.point.target);
        let mut command = Command::new(&self.cleanup.luc);
        command.args(["disk", "create", &state.disk]).args(self.plan.disk_of(target).words());
        command.args(["--mkfs", target.fs.as_deref().unwrap_or_default()]);
        if !target.mkfs.is_empty() {
            command.arg("--mkfs-options").arg(&target.mkfs);
        }
        command.arg("--mount").arg(state.mount());
        if !target.mount.is_empty() {
            command.arg("--mount-options").arg(&target.mount);
        }
        self.execute(&mut command)?;
        Ok(())
    }

    /// Makes a file system on a device of the user, and mounts it.
    fn format(&self, request: &DeviceRequest) -> Result<(), SweepError> {
        let (state, target) = (&self.cleanup.state, &self.point.target);
        let device = &request.path;
        let block = BorrowableDevice::open(device, &state.sysfs)?;
        self.cleanup.held.release(&block);
        let uuid = block.prepare(&state.devices, request)?;
        let fs = request.file_system.clone();
        let mkfs = MkfsSpec { options: identified(&fs, &uuid, &target.mkfs), fs };
        self.execute(&mut luc_disk::mkfs_command(device, &mkfs))?;
        let mount = MountSpec { dir: state.mount(), options: target.mount.clone() };
        self.execute(&mut luc_disk::mount_command(device, &mount))?;
        Ok(())
    }

    fn clear(&self) -> Result<(), SweepError> {
        let (state, point) = (&self.cleanup.state, self.point);
        if point.scheduler.is_some() {
            // The loop device outlives the disk and would keep the scheduler.
            ChangedDevice::restore_schedulers(&state.devices, &state.sysfs)?;
        }
        if point.target.device.is_some() {
            let mut command = tool("umount");
            self.execute(command.arg(state.mount()))?;
            self.cleanup.held.claim()?;
        }
        if point.target.is_emulated() {
            let mut command = Command::new(&self.cleanup.luc);
            self.execute(command.args(["disk", "remove", &state.disk]))?;
        }
        for scratch in state.scratch.iter().filter(|scratch| scratch.exists()) {
            fs::remove_dir_all(scratch).map_err(SweepError::io("remove", scratch))?;
        }
        Ok(())
    }

    /// Builds the workload's command, under the gate if the point asks for it.
    fn workload(&self, dir: &Path, seed: u64) -> Result<Command, SweepError> {
        let point = self.point;
        let workload = &point.workload;
        let luc = || self.cleanup.luc.clone().into_os_string();
        let mut words: Vec<OsString> = Vec::new();
        if let SweepPolicy::Gate(batching) = point.policy {
            words.extend([luc(), "run".into(), "--level".into(), "gate".into()]);
            words.extend(["--policy", batching.name(), "--no-why", "--quiet"].map(OsString::from));
            words.extend(["--json".into(), self.gate_report().into_os_string(), "--".into()]);
        }
        if let Some(bench) = workload.bench {
            words.extend([luc(), "bench".into(), bench.name().into(), "--dir".into(), dir.into()]);
            words.extend([bench.clients().into(), point.threads.to_string().into()]);
            words.extend(["--seed".into(), seed.to_string().into()]);
            for (option, value) in &workload.options {
                let option = workload_options::words(bench, option, value, TimeScale::NONE)?;
                words.extend(option.into_iter().map(OsString::from));
            }
            if point.target.no_fsync {
                words.push("--no-fsync".into());
            }
            words.push("--json".into());
        }
        if workload.filebench.is_some() {
            let file = self.cleanup.state.work.join(format!("{}.f", workload.name));
            fs::write(&file, &workload.text).map_err(SweepError::io("write", &file))?;
            words.extend([luc(), "bench".into(), "filebench".into(), file.into()]);
            words.extend(["--dir".into(), dir.into(), "--seed".into(), seed.to_string().into()]);
            let personality = PersonalityOptions::of(&workload.options, point.threads)?.words();
            words.extend(personality.into_iter().map(OsString::from));
            words.push("--json".into());
        }
        for word in workload.command.iter().flatten() {
            let word = word.replace("{dir}", &dir.to_string_lossy());
            let word = word.replace("{threads}", &point.threads.to_string());
            words.push(word.replace("{seed}", &seed.to_string()).into());
        }
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).current_dir(dir);
        Ok(command)
    }

    fn gate_report(&self) -> PathBuf {
        self.cleanup.state.work.join("gate.json")
    }

    /// Reads the counters that the plan names in the workload's report, and the gate's.
    fn own_counters(&self, stdout: &str) -> CounterValues {
        let point = self.point;
        let mut counters = CounterValues::new();
        if !point.workload.counters.is_empty() {
            let report = serde_json::from_str(stdout).unwrap_or_default();
            counters.extend(report_counters::read_named(&report, &point.workload.counters));
        }
        if matches!(point.policy, SweepPolicy::Gate(_)) {
            let report = fs::read_to_string(self.gate_report()).unwrap_or_default();
            let mount = self.cleanup.state.mount();
            let mount = point.target.fs.is_some().then(|| mount.to_string_lossy());
            counters.extend(report_counters::gate(&report, mount.as_deref()));
        }
        counters
    }

    /// Returns the figure, and the length of a series' warm-up.
    fn figure(&self, stdout: &str, elapsed_s: f64) -> Result<(f64, Option<usize>), SweepError> {
        let workload = &self.point.workload;
        let json = |pointer: &str| {
            let value: Value = serde_json::from_str(stdout).ok()?;
            value.pointer(pointer)?.as_f64()
        };
        let (value, cut, place) = match (workload.bench, &workload.figure) {
            (Some(bench), None) => (json(bench.figure()), None, bench.figure().to_owned()),
            _ if workload.filebench.is_some() => (json(FLOWOPS), None, FLOWOPS.to_owned()),
            (None, None) => (Some(elapsed_s), None, "run time".to_owned()),
            (_, Some(FigureLocation { json: Some(pointer), .. })) => {
                (json(pointer), None, pointer.clone())
            }
            (_, Some(figure)) => {
                let expression = figure.regex.clone().unwrap_or_default();
                let series = matches(&expression, stdout);
                if figure.series && !series.is_empty() {
                    let Some(cut) = warm_up(&series) else {
                        return Err(SweepError::Unsteady { what: self.what.clone() });
                    };
                    let rest = &series[cut..];
                    let mean = rest.iter().sum::<f64>() / rest.len() as f64;
                    (Some(mean), Some(cut), expression)
                } else {
                    (series.first().copied(), None, expression)
                }
            }
        };
        match value {
            Some(value) if value.is_finite() && value > 0.0 => Ok((value, cut)),
            _ => Err(SweepError::NoFigure { what: self.what.clone(), figure: place }),
        }
    }

    /// Runs a program to its end and returns its output; a signal to the sweep ends it early.
    fn execute(&self, command: &mut Command) -> Result<String, SweepError> {
        if interrupt_flag::interrupted() {
            return Err(SweepError::Interrupted);
        }
        let work = &self.cleanup.state.work;
        let (out, err) = (work.join("stdout"), work.join("stderr"));
        let create = |path: &PathBuf| File::create(path).map_err(SweepError::io("make", path));
        let program = PathBuf::from(command.get_program());
        let mut child = command
            .stdin(Stdio::null())
            .stdout(create(&out)?)
            .stderr(create(&err)?)
            .process_group(self.cleanup.group())
            .env(SWEEP_VARIABLE, &self.cleanup.state.disk)
            .spawn()
            .map_err(SweepError::io("run", &program))?;
        let mut term_sent: Option<Instant> = None;
        let status = loop {
            if let Some(status) = child.try_wait().map_err(SweepError::io("wait for", &program))? {
                break status;
            }
            match term_sent {
                None if interrupt_flag::interrupted() => {
                    // It may have just ended.
                    let _ = kill_process(Pid::from_child(&child), Signal::TERM);
                    term_sent = Some(Instant::now());
                }
                Some(when) if when.elapsed() > TERM_TIMEOUT => self.cleanup.end_programs(),
                _ => {}
            }
            sleep(POLL_INTERVAL);
        };
        // Background processes of it would keep the disk busy.
        self.cleanup.end_programs();
        if interrupt_flag::interrupted() {
            return Err(SweepError::Interrupted);
        }
        let read = |path: &PathBuf| {
            let bytes = fs::read(path).map_err(SweepError::io("read", path))?;
            Ok::<_, SweepError>(String::from_utf8_lossy(&bytes).into_owned())
        };
        if !status.success() {
            let words = std::iter::once(command.get_program()).chain(command.get_args());
            return Err(SweepError::Command {
                what: self.what.clone(),
                command: words
                    .map(|word| word.to_string_lossy())
                    .collect::<Vec<_>>()
                    .join(" ")
                    // A script is many lines, and an error is one.
                    .split_whitespace()
                    .collect::<Vec<_>>()
                    .join(" "),
                how: status.to_string(),
                said: read(&err)?.lines().last().unwrap_or("it said nothing").to_owned(),
            });
        }
        read(&out)
    }
}

/// Returns every first group that is a number.
fn matches(expression: &str, text: &str) -> Vec<f64> {
    let Ok(regex) = Regex::new(expression) else {
        return Vec::new();
    };
    regex.captures_iter(text).filter_map(|found| found.get(1)?.as_str().parse().ok()).collect()
}

/// Writes back, drops the caches if allowed, and waits. Returns whether they were dropped.
fn settle(plan: &SweepPlan) -> bool {
    rustix::fs::sync();
    let dropped = fs::write("/proc/sys/vm/drop_caches", "3").is_ok();
    let until = Instant::now() + Duration::from_nanos(plan.settle.ns());
    while Instant::now() < until && !interrupt_flag::interrupted() {
        sleep(POLL_INTERVAL.min(until.saturating_duration_since(Instant::now())));
    }
    dropped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_a_command() {
        assert_eq!(matches("rate ([0-9.]+)", "rate 1.5\nrate x\nrate 20"), [1.5, 20.0]);
        assert!(matches("rate (.+)", "none").is_empty());
    }
}
