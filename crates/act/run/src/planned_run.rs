//! One run at its level: the gate in the programs, the module in the kernel, or both.

use std::path::PathBuf;
use std::process::Command as Process;
use std::time::{Duration, Instant};

use luc_explain::SyncWayCounts;
use luc_gate::CallSettings as GateSettings;
use luc_gate::GatePolicy;
use luc_gate::figures::RunFigures;
use luc_gate::inspect::filesystem;
use luc_launch::{GateReach, GatedRunOutcome, OnStart, RunCommand, RunSurroundings, RunWatcher};
use luc_module::level::{EffectiveLevel, JournalUse, LevelPlan, ModuleRun};
use luc_module::{
    BlockDeviceNumber, Error, JournalSettings, MachinePaths, SettingKey, used_file_systems,
};
use luc_units::number_formats::FormattedTime;
use serde::Serialize;

use crate::RunError;

/// Time between two checks of the command's open files, for files that the gate does not see.
const OPEN_FILES_INTERVAL: Duration = Duration::from_millis(250);

/// The result of a run at any level.
#[derive(Debug, Serialize)]
pub struct RunOutcome {
    #[serde(flatten)]
    pub gate: GatedRunOutcome,
    /// The level that the run worked at.
    level: EffectiveLevel,
    /// The module's figures on each journal that the command used.
    kernel: Vec<KernelUse>,
    /// Synchronizations that did not reach the gate, by the recorder; `None` if the run was not recorded.
    pub passing_by: Option<RecordedSyncWays>,
    /// Reason why it was not recorded, if it was to be.
    #[serde(skip)]
    pub unrecorded: Option<String>,
    /// Settings of the module that could not be lent or restored, a line each.
    #[serde(skip)]
    pub failures: Vec<String>,
}

/// Synchronizations by their ways. All ways but the first pass by the gate.
#[derive(Debug, Serialize)]
pub struct RecordedSyncWays {
    /// Time after the command's start at which the count began.
    pub since_s: f64,
    #[serde(flatten)]
    pub ways: SyncWayCounts,
}

#[derive(Debug, Serialize)]
struct KernelUse {
    mount_point: Option<String>,
    #[serde(flatten)]
    used: JournalUse,
}

/// Turns the gate's options into the module's settings.
///
/// # Errors
/// A value that the module does not take.
pub fn requested(
    policy: GatePolicy,
    max_wait_ns: Option<u64>,
    copy_out: Option<&str>,
) -> Result<JournalSettings, Error> {
    let mut settings = JournalSettings::default();
    let name = match policy {
        GatePolicy::Off => "off",
        GatePolicy::Auto => "auto",
        GatePolicy::Delay(delay) => {
            settings.add(SettingKey::DelayUs, delay.delay_ns.div_ceil(1_000))?;
            settings.add(SettingKey::MaxRestarts, delay.max_restarts)?;
            "delay"
        }
        GatePolicy::Pid { set_point } => {
            if let Some(set_point) = set_point {
                settings.add(SettingKey::SetPoint, set_point)?;
            }
            "pid"
        }
    };
    settings.add(SettingKey::Policy, name)?;
    if let Some(ns) = max_wait_ns {
        settings.add(SettingKey::MaxHoldUs, ns.div_ceil(1_000))?;
    }
    let copy_out = copy_out.unwrap_or(if policy == GatePolicy::Off { "off" } else { "auto" });
    settings.add(SettingKey::CopyOut, copy_out)?;
    Ok(settings)
}

/// A command, and all that is decided about its run.
#[derive(Clone, Debug)]
pub struct PlannedRun {
    /// The program `luc`, which watches over lent settings.
    pub luc: PathBuf,
    pub machine: MachinePaths,
    pub plan: LevelPlan,
    pub command: RunCommand,
    pub settings: GateSettings,
    pub reach: GateReach,
}

impl PlannedRun {
    /// The same run without the gate and the module, to compare with. `None` if the module batches and may not be
    /// stopped.
    #[must_use]
    pub fn without(&self) -> Option<Self> {
        let plan = self.plan.without()?;
        let settings = GateSettings { policy: GatePolicy::Off, ..self.settings };
        Some(Self { plan, settings, ..self.clone() })
    }

    /// Runs the command once. `started` is told the command's process as soon as there is one.
    ///
    /// # Errors
    /// [`RunError::Launch`]; the command has not been started then.
    pub fn run(&self, started: Option<OnStart<'_>>) -> Result<RunOutcome, RunError> {
        let mut settings = self.settings;
        if self.plan.level == EffectiveLevel::Kernel {
            settings.policy = GatePolicy::Off;
        }
        if self.plan.is_watching() {
            return self.launch_and_watch(&settings, started);
        }
        let gate = luc_launch::run(&self.command, &settings, self.around(started, None))?;
        Ok(self.outcome(gate, Vec::new(), &[]))
    }

    /// Runs the command, and lends the module's settings to the journals that it uses.
    fn launch_and_watch(
        &self,
        settings: &GateSettings,
        started: Option<OnStart<'_>>,
    ) -> Result<RunOutcome, RunError> {
        let watcher = |holder: &str| {
            let mut watcher = Process::new(&self.luc);
            watcher.args(["kernel", "watch", holder]);
            watcher
        };
        let mut session = ModuleRun::new(&self.machine, self.plan.clone(), &watcher);
        let mut looked = Instant::now();
        let mut watch = |process: u32, figures: Option<&RunFigures>| {
            for (device, _) in figures.into_iter().flat_map(RunFigures::used) {
                let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
                session.uses(BlockDeviceNumber { major, minor });
            }
            if looked.elapsed() >= OPEN_FILES_INTERVAL {
                used_file_systems::sample(process)
                    .into_iter()
                    .for_each(|device| session.uses(device));
                looked = Instant::now();
            }
        };
        let around = self.around(started, Some(&mut watch));
        let gate = luc_launch::run(&self.command, settings, around)?;
        let (uses, failures) = session.end();
        Ok(self.outcome(gate, uses, &failures))
    }

    fn outcome(
        &self,
        gate: GatedRunOutcome,
        uses: Vec<JournalUse>,
        failures: &[Error],
    ) -> RunOutcome {
        RunOutcome {
            gate,
            level: self.plan.level,
            kernel: uses.into_iter().map(KernelUse::new).collect(),
            passing_by: None,
            unrecorded: None,
            failures: failures.iter().map(ToString::to_string).collect(),
        }
    }

    fn around<'a>(
        &self,
        started: Option<OnStart<'a>>,
        watch: Option<RunWatcher<'a>>,
    ) -> RunSurroundings<'a> {
        let count_only = self.plan.count_only.iter().map(|d| (d.major, d.minor)).collect();
        RunSurroundings { reach: self.reach, count_only, started, watch }
    }
}

impl KernelUse {
    fn new(used: JournalUse) -> Self {
        let BlockDeviceNumber { major, minor } = used.device;
        let mounted = filesystem::of_device(major, minor).ok();
        Self { mount_point: mounted.map(|found| found.mount_point.display().to_string()), used }
    }
}

impl std::fmt::Display for RunOutcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for used in &self.kernel {
            write!(f, "{used}")?;
        }
        let is_counted = self.gate.calls() > 0 || self.gate.notified.is_some();
        if self.level != EffectiveLevel::Gate && !is_counted {
            return writeln!(
                f,
                "luc: the library that counts saw no call: latencies are not known"
            );
        }
        write!(f, "{}", self.gate)?;
        match (&self.passing_by, &self.unrecorded) {
            (Some(RecordedSyncWays { since_s, ways }), _) => match ways.passing_by() {
                Some(others) => writeln!(
                    f,
                    "luc: {others} pass by, as luc run gets to fsync, fdatasync and msync alone{}",
                    format_since(*since_s)
                ),
                None => Ok(()),
            },
            (None, Some(reason)) if self.gate.calls() == 0 => writeln!(
                f,
                "luc: sync writes and io_uring calls would have passed by; whether there were any is not known: {reason}"
            ),
            _ => Ok(()),
        }
    }
}

/// The beginning of an observation, if it was not the start.
fn format_since(since_s: f64) -> String {
    if since_s > 0.0 { format!(" (seen from {since_s:.2} s on)") } else { String::new() }
}

impl std::fmt::Display for KernelUse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let used = &self.used;
        let place = self.mount_point.as_deref().unwrap_or(&used.journal);
        write!(
            f,
            "luc: {place} ({}): kernel module, policy {}, copy-out {}: ",
            used.journal, used.policy, used.copy_out,
        )?;
        let Some(stats) = &used.stats else {
            return writeln!(f, "only root may read its figures");
        };
        writeln!(
            f,
            "{} fsyncs in {} commits{}",
            stats.fsyncs,
            stats.commits,
            format_if_known(used.fsyncs_per_commit, |n| format!(
                ", {n:.1} for each that an fsync asked for"
            )),
        )?;
        writeln!(
            f,
            "     kernel: {} commits held{}; {} of {} writes delayed{}; {} copies, {} KiB{}",
            stats.holds,
            format_if_known(stats.mean_hold_ns(), |ns| format!(
                ", {} on average",
                FormattedTime(ns)
            )),
            stats.writes_delayed,
            stats.writes,
            format_if_known(stats.mean_write_delay_ns(), |ns| format!(
                ", {} on average",
                FormattedTime(ns)
            )),
            stats.copies,
            stats.copy_bytes / 1024,
            if stats.copies_failed > 0 {
                format!(", {} failed for want of memory", stats.copies_failed)
            } else {
                String::new()
            },
        )
    }
}

fn format_if_known(number: Option<f64>, text: impl Fn(f64) -> String) -> String {
    number.map_or_else(String::new, text)
}

/// The name of a level in a sentence.
#[must_use]
pub fn level_name(level: EffectiveLevel) -> &'static str {
    match level {
        EffectiveLevel::Gate => "the gate",
        EffectiveLevel::Kernel => "the kernel module",
        EffectiveLevel::Both => "the kernel module and the gate",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(policy: &str, max_wait_ns: Option<u64>) -> Vec<String> {
        let policy = policy.parse().unwrap();
        let settings = requested(policy, max_wait_ns, None).unwrap();
        settings.iter().map(|(key, value)| format!("{key}={value}")).collect()
    }

    #[test]
    fn the_gate_s_options_are_the_module_s_settings() {
        assert_eq!(words("auto", None), ["copy_out=auto", "policy=auto"]);
        assert_eq!(words("off", None), ["copy_out=off", "policy=off"]);
        assert_eq!(
            words("delay:250us:3", Some(2_000_000)),
            ["delay_us=250", "max_restarts=3", "max_hold_us=2000", "copy_out=auto", "policy=delay"]
        );
        assert_eq!(words("pid:32", None), ["set_point=32", "copy_out=auto", "policy=pid"]);
    }

    #[test]
    fn what_the_module_cannot_do_is_refused() {
        let policy = "delay:100ms".parse().unwrap();
        let error = requested(policy, None, None).unwrap_err().to_string();
        assert!(error.contains("delay_us=100000"), "{error}");
    }
}
