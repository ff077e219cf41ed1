//! What the throttle would do, without freezing anybody: watches tasks, and has the policy run on a model of the disk.
//!
//! [`watch`] adds up what each task does, `advice` makes [`figures`] of it: what that means and what would become of
//! it. How good the predictions are is measured by part `throttle-advise` of the evaluation.

mod advice;
pub mod figures;
mod pressure;
mod tally;
pub mod watch;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use luc_control::throttle::sample::Class;
use luc_host::interrupt::interrupted;
use rustix::fd::OwnedFd;

use crate::clock::now_ns;
use crate::config::Config;
use crate::engine::{EngineOptions, wait};
use crate::run::{RunOptions, Task, run_watched};
use crate::{BATCH_FLOOR, Hierarchy, PolicyChoice, ThrottleError};
pub use figures::{Advice, DiskAdvice};
use watch::Watch;

/// How often cgroups that have come are looked for, ns.
const RESCAN_EVERY_NS: u64 = 1_000_000_000;

/// How advice is asked for.
#[derive(Clone, Debug)]
pub struct AdviseOptions {
    /// Disks by name; none: all.
    pub disks: Vec<String>,
    /// The longest freeze that the throttle would be allowed, ns.
    pub max_frozen_ns: u64,
}

/// Runs commands without any throttle, watches them till they end, and advises. `tick` is told the seconds that have
/// passed. The caller has installed [`luc_host::interrupt`]; Ctrl-C ends the commands, and the advice is of what was
/// seen.
///
/// # Errors
///
/// What cannot be done here; nothing is left behind then.
pub fn of_commands(
    luc: &Path,
    commands: &[OsString],
    options: &AdviseOptions,
    tick: &mut dyn FnMut(f64),
) -> Result<Advice, ThrottleError> {
    Hierarchy::find()?;
    let mut watch = Watch::open(&options.disks, Box::new(tick))?;
    let tasks: Vec<Task> = commands
        .iter()
        .map(|command| Task {
            command: command.clone(),
            class: Class::Batch,
            size_bytes: None,
            p99_ns: None,
        })
        .collect();
    let run_options = RunOptions {
        tell_threads_apart: false,
        engine: EngineOptions {
            policy: PolicyChoice::Off,
            disks: options.disks.clone(),
            max_frozen_ns: options.max_frozen_ns,
            batch_floor: BATCH_FLOOR,
        },
        settings: Vec::new(),
        discard_output: true,
    };
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
/// What cannot be done here, or no cgroup matches.
pub fn of_cgroups(
    config: &Config,
    for_ns: u64,
    options: &AdviseOptions,
    tick: &mut dyn FnMut(f64),
) -> Result<Advice, ThrottleError> {
    let hierarchy = Hierarchy::find()?;
    let nowhere = PathBuf::from("/luc-throttle");
    let wanted = config.cgroups(hierarchy.root(), &nowhere);
    if wanted.is_empty() {
        let patterns = config.rules.iter().map(|rule| rule.pattern.as_str());
        return Err(ThrottleError::NoCgroup(patterns.collect::<Vec<_>>().join(", ")));
    }
    let mut watch = Watch::open(&options.disks, Box::new(tick))?;
    let end_ns = now_ns() + for_ns;
    let nothing: [OwnedFd; 0] = [];
    let mut rescan_ns = 0;
    while !interrupted() && now_ns() < end_ns {
        if now_ns() >= rescan_ns {
            watch.follow(&config.cgroups(hierarchy.root(), &nowhere), hierarchy.root());
            rescan_ns = now_ns() + RESCAN_EVERY_NS;
        }
        let until_ns = watch.look_now().min(end_ns);
        wait(None, until_ns, &nothing)?;
    }
    watch.look_now();
    let mut advice = watch.advice(options.max_frozen_ns);
    advice.is_interrupted = interrupted();
    Ok(advice)
}
