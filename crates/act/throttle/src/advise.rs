//! Predicts the throttle's actions without freezing: watches tasks, and runs the policy on a model of the disk.
//!
//! [`advise_watch`] adds up the activity of each task. `derive_advice` turns it into [`advice_figures`]: the meaning of
//! the activity, and a forecast. Part `throttle-advise` of the evaluation measures how good the predictions are.

pub mod advice_figures;
pub mod advise_watch;
mod cgroup_pressure;
mod derive_advice;
mod task_tally;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use luc_control::throttle::policy_input::TaskClass;
use luc_host::interrupt_flag::interrupted;
use rustix::fd::OwnedFd;

use crate::config::ThrottleConfig;
use crate::engine::wait;
use crate::kernel_clocks::now_ns;
use crate::run_commands::{CommandTask, ThrottledRunOptions, run_watched};
use crate::{CgroupHierarchy, ThrottleError};
pub use advice_figures::{DiskAdvice, ThrottleAdvice};
use advise_watch::AdviseWatch;

/// Interval between two searches for new cgroups, ns.
const RESCAN_INTERVAL_NS: u64 = 1_000_000_000;

#[derive(Clone, Debug)]
pub struct AdviseOptions {
    /// Names of the disks; empty: all disks.
    pub disks: Vec<String>,
    /// Longest freeze that the throttle would be allowed, ns.
    pub max_frozen_ns: u64,
}

/// Runs commands without a throttle, watches them until they end, and advises. `tick` gets the seconds that have
/// passed. The caller has installed [`luc_host::interrupt_flag`]. Ctrl-C ends the commands, and the advice is based on
/// what was observed.
///
/// # Errors
///
/// Unmet requirements of this machine; nothing is left behind then.
pub fn of_commands(
    luc: &Path,
    commands: &[OsString],
    options: &AdviseOptions,
    tick: &mut dyn FnMut(f64),
) -> Result<ThrottleAdvice, ThrottleError> {
    CgroupHierarchy::find()?;
    let mut watch = AdviseWatch::open(&options.disks, Box::new(tick))?;
    let tasks: Vec<CommandTask> = commands
        .iter()
        .map(|command| CommandTask::new(command.clone(), TaskClass::Batch))
        .collect();
    let run_options = ThrottledRunOptions::unthrottled(options.disks.clone());
    let outcome = run_watched(luc, &tasks, &run_options, Some(&mut watch))?;
    let mut advice = watch.advice(options.max_frozen_ns);
    advice.is_interrupted = outcome.interrupted;
    advice.statuses = outcome.tasks.iter().map(|task| task.status).collect();
    Ok(advice)
}

/// Watches the cgroups that a configuration names for `for_ns`, or until Ctrl-C, and advises.
///
/// # Errors
///
/// Unmet requirements of this machine, or no cgroup matches.
pub fn of_cgroups(
    config: &ThrottleConfig,
    for_ns: u64,
    options: &AdviseOptions,
    tick: &mut dyn FnMut(f64),
) -> Result<ThrottleAdvice, ThrottleError> {
    let hierarchy = CgroupHierarchy::find()?;
    let nowhere = PathBuf::from("/luc-throttle");
    let wanted = config.cgroups(hierarchy.root(), &nowhere);
    if wanted.is_empty() {
        let patterns = config.rules.iter().map(|rule| rule.pattern.as_str());
        return Err(ThrottleError::NoCgroup(patterns.collect::<Vec<_>>().join(", ")));
    }
    let mut watch = AdviseWatch::open(&options.disks, Box::new(tick))?;
    let end_ns = now_ns() + for_ns;
    let nothing: [OwnedFd; 0] = [];
    let mut rescan_ns = 0;
    while !interrupted() && now_ns() < end_ns {
        if now_ns() >= rescan_ns {
            watch.follow(&config.cgroups(hierarchy.root(), &nowhere), hierarchy.root());
            rescan_ns = now_ns() + RESCAN_INTERVAL_NS;
        }
        let until_ns = watch.look_now().min(end_ns);
        wait(None, until_ns, &nothing)?;
    }
    watch.look_now();
    let mut advice = watch.advice(options.max_frozen_ns);
    advice.is_interrupted = interrupted();
    Ok(advice)
}
