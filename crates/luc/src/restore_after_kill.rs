//! Restores what killed `luc` processes have left changed on this machine.
//!
//! Every command of root does this first, so nobody has to know what was running. Where nothing is left, it costs one
//! system call per kind of resource.

use std::time::Duration;

/// Time that a command waits for busy resources.
const BUSY_TIMEOUT: Duration = Duration::from_secs(2);

/// Resources that were restored, and those that could not be.
#[derive(Debug, Default)]
pub(crate) struct RestoreOutcome {
    pub(crate) restored: Vec<String>,
    pub(crate) failed: Vec<String>,
}

/// Restores what dead processes have left. Resources of living processes are left alone.
pub(crate) fn all(patience: Duration) -> RestoreOutcome {
    let mut outcome = of_sweeps(patience);
    // Settings of the kernel module that a run has lent.
    match luc_module::setting_leases::restore_abandoned() {
        Ok(0) => {}
        Ok(journals) => {
            let plural = if journals == 1 { "" } else { "s" };
            outcome.restored.push(format!("settings of luc.ko on {journals} journal{plural}"));
        }
        Err(error) => outcome.failed.push(error.to_string()),
    }
    of_throttles(&mut outcome);
    of_demos(patience, &mut outcome);
    outcome
}

/// Disks of demos that were killed with their guardians.
fn of_demos(patience: Duration, outcome: &mut RestoreOutcome) {
    let demos = luc_demo::demo_disk::restore_left(patience);
    if demos.removed > 0 {
        let plural = if demos.removed == 1 { "" } else { "s" };
        let text = format!("after {} killed demo{plural}", demos.removed);
        outcome.restored.push(text);
    }
    outcome.failed.extend(demos.failed);
}

/// Cgroups that a throttle left frozen which was killed with its guardian.
#[cfg(feature = "throttle")]
fn of_throttles(outcome: &mut RestoreOutcome) {
    let throttles = luc_throttle::frozen_record::restore_left();
    if throttles.cgroups > 0 {
        let plural = if throttles.cgroups == 1 { "" } else { "s" };
        let text = format!("{} frozen cgroup{plural}", throttles.cgroups);
        outcome.restored.push(text);
    }
    outcome.failed.extend(throttles.failed);
}

/// A `luc` that throttles thaws what its throttles have left.
#[cfg(not(feature = "throttle"))]
fn of_throttles(_outcome: &mut RestoreOutcome) {}

#[cfg(feature = "sweep")]
fn of_sweeps(patience: Duration) -> RestoreOutcome {
    let sweeps = luc_sweep::restore_left(patience);
    RestoreOutcome {
        restored: sweeps.restored,
        failed: sweeps.failed.iter().map(ToString::to_string).collect(),
    }
}

/// A `luc` that sweeps restores what its sweeps have left.
#[cfg(not(feature = "sweep"))]
fn of_sweeps(_patience: Duration) -> RestoreOutcome {
    RestoreOutcome::default()
}

/// Runs [`all`] before a command, and prints a line on standard error if anything was restored.
pub(crate) fn first() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let outcome = all(BUSY_TIMEOUT);
    for text in outcome.restored {
        eprintln!("luc: {text}: restored");
    }
    for text in outcome.failed {
        eprintln!("luc: not restored: {text}");
    }
}
