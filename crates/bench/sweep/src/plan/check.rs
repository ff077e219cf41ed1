//! Checks that a plan is consistent and possible on this machine.

use std::path::Path;

use luc_disk::MkfsSpec;
use luc_power::energy::{self, EnergySourceChoice};
use luc_power::frequency::{self, FrequencySetting};
use luc_stats::MIN_REPEATS;
use luc_units::parse_duration_ns;

use super::file_systems::kernel_has;
use super::unique_list::check_unique;
use super::virtual_time::check_host;
use super::{PlanDisk, PlanWorkload, StopRule, SweepPlan, SweepPolicy, SweepTarget};
use crate::builtin_workload::BuiltinWorkload;
use crate::error::SweepError;
use crate::time_scale::TimeScale;
use crate::workload_options;
use luc_stats::selection::MIN_ROUNDS;
use luc_workload::name_suggestion::meant;

impl SweepPlan {
    pub(super) fn check(&self) -> Result<(), SweepError> {
        // 1. The stopping rule.
        let refuse = |reason: String| Err(SweepError::Plan(reason));
        let StopRule { goal, min, max, best, stolen } = self.stop;
        let fewest = if best { MIN_ROUNDS } else { MIN_REPEATS };
        if !(goal > 0.0 && goal < 1.0) {
            return refuse(format!("stop.goal = {goal}: write a share such as 0.05"));
        }
        if let Some(share) = stolen
            && !(share > 0.0 && share < 1.0)
        {
            return refuse(format!("stop.stolen = {share}: write a share such as 0.02"));
        }
        if min < fewest || max < min || max > 10_000 {
            return refuse(format!(
                "stop.min = {min}, stop.max = {max}: min is at least {fewest} (fewer give no interval), max at \
                 least min and at most 10000"
            ));
        }
        // 2. The axes, and whether they go with the targets and the stopping rule.
        check_threads("threads", &self.threads)?;
        check_policies("policy", &self.policy)?;
        if !self.frequency.is_empty() {
            check_unique("frequency", self.frequency.iter().map(FrequencySetting::to_string))?;
        }
        if !self.scheduler.is_empty() {
            check_unique("scheduler", self.scheduler.iter().map(|at| at.name().to_owned()))?;
            if let Some(target) = self.target.iter().find(|at| at.fs.is_none()) {
                return refuse(format!(
                    "scheduler goes with targets that have a disk of their own, and '{}' is a directory: leave one of \
                     them out",
                    target.name
                ));
            }
        }
        check_energy(&self.energy)?;
        let is_rate = |workload: &PlanWorkload| {
            workload.figure.as_ref().is_some_and(|figure| figure.unit.ends_with("/s"))
        };
        let is_command = |workload: &&PlanWorkload| workload.command.is_some();
        if let Some(workload) = self.workload.iter().filter(is_command).find(|one| !is_rate(one))
            && best
        {
            return refuse(format!(
                "workload '{}': stop.best takes the highest figure as the best: write a figure that is a rate, with a \
                 unit that ends in /s",
                workload.name
            ));
        }
        // 3. Workloads, targets and disks, and the machine or the guests that run them.
        check_axis("workload", self.workload.iter().map(|workload| workload.name.clone()))?;
        check_axis("target", self.target.iter().map(|target| target.name.clone()))?;
        for workload in &self.workload {
            workload.check(workload.threads.as_ref().unwrap_or(&self.threads))?;
            workload.check_own_axes(&self.target)?;
        }
        self.target.iter().try_for_each(|target| target.check(&self.disk))?;
        for target in self.target.iter().filter(|target| target.is_emulated()) {
            self.disk_of(target).check()?;
        }
        match &self.virtual_time {
            Some(virtual_time) => virtual_time.check(self),
            None => check_host(self),
        }
    }

    /// Checks that this machine can run the plan.
    pub(crate) fn check_machine(&self, sysfs: &Path) -> Result<(), SweepError> {
        if let Some(virtual_time) = &self.virtual_time {
            self.target.iter().try_for_each(SweepTarget::check_program)?;
            if let Some(reason) = luc_vm::missing() {
                return Err(reason.into());
            }
            return virtual_time.qemu().map(drop);
        }
        frequency::check(sysfs, &self.frequency, &self.frequency_options)?;
        if self.poll_idle {
            luc_borrow::open_latency()?;
        }
        for target in &self.target {
            let Some(fs) = &target.fs else { continue };
            if !kernel_has(fs) {
                return Err(SweepError::Plan(format!(
                    "target '{}': this kernel has no {fs}: leave the target out, or run the sweep where it is",
                    target.name
                )));
            }
            if !rustix::process::geteuid().is_root() {
                return Err(luc_disk::Error::NotRoot.into());
            }
            luc_disk::check_mkfs(&MkfsSpec { fs: fs.clone(), options: String::new() })?;
        }
        Ok(())
    }
}

impl PlanWorkload {
    fn check(&self, threads: &[usize]) -> Result<(), SweepError> {
        // 1. What is run, with its options.
        let name = &self.name;
        let refuse = |reason: &str| Err(SweepError::Plan(format!("workload '{name}': {reason}")));
        if self.filebench.is_some() {
            if self.bench.is_some() || self.command.is_some() || self.figure.is_some() {
                return refuse("filebench goes without bench, command and figure");
            }
            return self.check_personality(threads);
        }
        match (self.bench, &self.command) {
            (Some(bench), None) => {
                if matches!(&self.figure, Some(figure) if figure.json.is_none()) {
                    return refuse("the figure of a bench is in its JSON: write json = \"/a/b\"");
                }
                let has = |option| self.options.contains_key(option);
                let takes_a_time =
                    matches!(bench, BuiltinWorkload::Metarates | BuiltinWorkload::Varmail);
                if takes_a_time && has("arrivals") && !has("rounds") {
                    return refuse("arrivals are those of a round: write rounds as well");
                }
                for (option, value) in &self.options {
                    let values = workload_options::values(value);
                    check_unique(option, values.iter().map(ToString::to_string))?;
                    for value in values {
                        workload_options::words(bench, option, value, TimeScale::NONE)?;
                    }
                    if value.is_array() {
                        check_option_axis(option, workload_options::labels(value))?;
                    }
                }
            }
            (None, Some(command)) => {
                if command.is_empty() || !self.options.is_empty() {
                    return refuse(
                        "write command = [\"program\", \"argument\", ...], without options",
                    );
                }
            }
            _ => return refuse("write one of bench, filebench and command"),
        }
        // 2. The counters and the figure.
        if let Some((name, pointer)) =
            self.counters.iter().find(|(_, pointer)| !pointer.starts_with('/'))
        {
            return refuse(&format!(
                "counters: {name} = \"{pointer}\" is no JSON pointer: write \"/a/b\""
            ));
        }
        let Some(figure) = &self.figure else {
            return Ok(());
        };
        match (&figure.regex, &figure.json) {
            (Some(regex), None) => match regex_lite::Regex::new(regex) {
                Ok(regex) if regex.captures_len() > 1 => Ok(()),
                Ok(_) => refuse("figure.regex has no group: write ( ) around the number"),
                Err(error) => refuse(&format!("figure.regex: {error}").replace('\n', " ")),
            },
            (None, Some(pointer)) if !figure.series && pointer.starts_with('/') => Ok(()),
            _ => refuse(
                "figure: write regex = \"... ([0-9.]+)\", or json = \"/a/b\" (without series)",
            ),
        }
    }
}

impl PlanWorkload {
    /// Checks that a workload file is right for every number of threads, and heeds it if there are several.
    fn check_personality(&self, threads: &[usize]) -> Result<(), SweepError> {
        let mut heeds = false;
        for &count in threads {
            let personality = workload_options::PersonalityOptions::of(&self.options, count)?;
            heeds = personality.heeds_threads;
            let file = self.filebench.as_deref().unwrap_or_default();
            luc_filebench::WorkloadFile::parse(file, &self.text, &personality.set)?;
        }
        if threads.len() > 1 && !heeds {
            return Err(SweepError::Plan(format!(
                "workload '{}': threads has several values, which a workload file does not see: write options = {{ \
                 set = [\"nthreads={{threads}}\"] }}",
                self.name
            )));
        }
        Ok(())
    }

    /// Checks the workload's lists that replace the plan's.
    fn check_own_axes(&self, targets: &[SweepTarget]) -> Result<(), SweepError> {
        let own = |what: &str| format!("workload '{}': {what}", self.name);
        if let Some(threads) = &self.threads {
            check_threads(&own("threads"), threads)?;
        }
        if let Some(policy) = &self.policy {
            check_policies(&own("policy"), policy)?;
        }
        if let Some(names) = &self.target {
            check_axis(&own("target"), names.iter().cloned())?;
            let known: Vec<&str> = targets.iter().map(|target| &*target.name).collect();
            if let Some(name) = names.iter().find(|name| !known.contains(&&***name)) {
                let hint = meant(name, &known);
                return Err(SweepError::Plan(own(&format!("target '{name}'{hint}"))));
            }
        }
        let heeds_no_fsync = self.bench.is_some_and(|bench| bench != BuiltinWorkload::Commit);
        if !heeds_no_fsync {
            let no_fsync = targets.iter().find(|target| {
                let is_mine = self.target.as_ref().is_none_or(|names| names.contains(&target.name));
                is_mine && target.no_fsync
            });
            if let Some(target) = no_fsync {
                return Err(SweepError::Plan(own(&format!(
                    "target '{}' has no-fsync, which commit, workload files and commands do not heed: give the \
                     workload a list target without it",
                    target.name
                ))));
            }
        }
        Ok(())
    }
}

impl PlanDisk {
    fn check(&self) -> Result<(), SweepError> {
        let model = self.spec()?;
        let size_bytes = self.size.bytes();
        if size_bytes > 1 << 44 || !size_bytes.is_multiple_of(4096) {
            return Err(luc_disk::Error::Size(size_bytes).into());
        }
        for (option, value) in self.costs() {
            if value.is_some() && model.name() != "fixed" {
                return Err(SweepError::Plan(format!(
                    "disk.{option} does not go with model '{}': leave it out, or write model = \"fixed\"",
                    model.name()
                )));
            }
        }
        Ok(())
    }
}

/// Checks that a meter has a command, and that its other keys come with one.
fn check_energy(energy: &energy::EnergyOptions) -> Result<(), SweepError> {
    let refuse = |reason: String| Err(SweepError::Plan(format!("energy: {reason}")));
    parse_duration_ns(&energy.idle)?;
    if energy.command.is_none() && (energy.regex.is_some() || energy.scope.is_some()) {
        return refuse("regex and scope go with command".to_owned());
    }
    if energy.command.is_some() && energy.source != EnergySourceChoice::Auto {
        return refuse("write either source or command".to_owned());
    }
    match energy.regex.as_deref().map(regex_lite::Regex::new) {
        Some(Err(error)) => refuse(format!("regex: {error}").replace('\n', " ")),
        Some(Ok(regex)) if regex.captures_len() < 2 => {
            refuse("regex has no group: write ( ) around the watts".to_owned())
        }
        _ => Ok(()),
    }
}

fn check_threads(name: &str, threads: &[usize]) -> Result<(), SweepError> {
    check_unique(name, threads.iter().map(ToString::to_string))?;
    if threads.iter().any(|&count| count == 0 || count > 4096) {
        return Err(SweepError::Plan(format!("{name}: write numbers from 1 to 4096")));
    }
    Ok(())
}

pub(super) fn check_policies(name: &str, policies: &[SweepPolicy]) -> Result<(), SweepError> {
    check_unique(name, policies.iter().map(SweepPolicy::to_string))
}

/// Checks that an axis has values without duplicates. Their names must fit in keys and file names.
fn check_axis(name: &str, values: impl Iterator<Item = String>) -> Result<(), SweepError> {
    let of_name = |c: char| c.is_ascii_alphanumeric() || "._+-".contains(c);
    axis_of(name, values, of_name, "'.', '_', '+' and '-'")
}

/// Checks the same of an option's values, which name no file.
fn check_option_axis(name: &str, values: impl Iterator<Item = String>) -> Result<(), SweepError> {
    let of_value = |c: char| c.is_ascii_alphanumeric() || "._+-:".contains(c);
    axis_of(name, values, of_value, "'.', '_', '+', '-' and ':'")
}

fn axis_of(
    name: &str,
    values: impl Iterator<Item = String>,
    is_allowed: impl Fn(char) -> bool,
    marks: &str,
) -> Result<(), SweepError> {
    let values: Vec<String> = values.collect();
    for value in &values {
        if value.is_empty() || !value.chars().all(&is_allowed) {
            return Err(SweepError::Plan(format!(
                "{name} '{value}': a name has letters, digits, {marks}"
            )));
        }
    }
    check_unique(name, values.into_iter())
}

/// Shortens serde's message to one line, and adds the nearest name if one is unknown. The first name in backquotes is
/// the given one, the others are known.
pub(super) fn reason(message: &str) -> String {
    let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
    let names: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    match names.as_slice() {
        [given, known @ ..] if message.starts_with("unknown ") => {
            format!("{message}{}", meant(given, known))
        }
        _ => format!("{message}; see `luc sweep --help`"),
    }
}
