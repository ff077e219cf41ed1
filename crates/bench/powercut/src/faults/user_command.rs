//! A command of the user on a disk that begins to fail, with luc and without.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::time::Duration;

use luc_disk::FaultSpec;
use luc_host::interrupt_flag::interrupted;
use luc_units::OnPath as _;
use serde::Serialize;

use super::error::FaultsError;
use super::fault_disk::{DIRECTORY_VARIABLE, FaultDisk};
use super::gate::TrialPolicy;
use super::{FaultTrialSetting, text};

/// Interval between checks for the end and for signals.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

#[derive(Debug, Clone)]
pub struct CommandPlan {
    pub setting: FaultTrialSetting,
    /// Options as in `mount -o`.
    pub mount_options: String,
    pub command: Vec<OsString>,
    /// The fault, which holds from the command's start on.
    pub fault: FaultSpec,
}

#[derive(Debug, Clone, Serialize)]
pub struct CommandReport {
    pub command: String,
    pub fault: FaultSpec,
    /// Runs: the first without luc, then one with each policy.
    pub runs: Vec<FaultedCommandRun>,
    /// Runs with luc that ended otherwise than that without.
    pub differences: u64,
}

/// Result of one run of the user's command on a failing disk.
#[derive(Debug, Clone, Serialize)]
pub struct FaultedCommandRun {
    /// The policy; absent: without luc.
    pub policy: Option<String>,
    /// Exit status; 128 + signal if a signal ended it.
    pub status: i32,
    pub failed_requests: u64,
    /// Requests that were of the kind and in the place to fail.
    pub matched_requests: u64,
    /// The last line that it wrote to its standard error.
    pub said: String,
}

impl CommandReport {
    /// Returns whether the command ended the same with luc as without.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.differences == 0
    }
}

/// Runs the command without luc and with each policy, each time on a new file system.
///
/// # Errors
/// [`FaultsError`]; [`FaultsError::NothingFailed`] if the disk failed no request of a run.
pub fn run_command(plan: &CommandPlan) -> Result<CommandReport, FaultsError> {
    if plan.setting.policies.is_empty() {
        return Err(FaultsError::Nothing);
    }
    plan.fault.check(plan.setting.size_bytes)?;
    let place = FaultDisk::create(&plan.setting, &plan.mount_options)?;
    let mut runs = vec![run(plan, &place, None)?];
    for policy in &plan.setting.policies {
        place.renew(&plan.mount_options)?;
        runs.push(run(plan, &place, Some(policy))?);
    }
    place.remove()?;
    let plain = runs[0].status;
    Ok(CommandReport {
        command: text(&plan.command),
        fault: plan.fault.clone(),
        differences: runs.iter().filter(|run| run.status != plain).count() as u64,
        runs,
    })
}

fn run(
    plan: &CommandPlan,
    place: &FaultDisk,
    policy: Option<&TrialPolicy>,
) -> Result<FaultedCommandRun, FaultsError> {
    let setting = &plan.setting;
    let mut command = setting.level.command(policy, place, &plan.command)?;
    let errors_path = place.work().join("stderr");
    let errors =
        File::create(&errors_path).map_err(FaultsError::io("making a file", &errors_path))?;
    command
        .current_dir(place.dir())
        .env(DIRECTORY_VARIABLE, place.dir())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(errors)
        .process_group(0);
    place.fail(&plan.fault)?;
    let program = plan.command[0].to_string_lossy().into_owned();
    let child = command
        .spawn()
        .map_err(|reason| FaultsError::Start { program: program.clone(), reason })?;
    let status = CommandGroup(child).wait();
    let fault = place.clear()?;
    let status = status?;
    if fault.failed == 0 {
        return Err(FaultsError::NothingFailed {
            program,
            arm: policy
                .map_or_else(|| "without luc".to_owned(), |policy| format!("with policy {policy}")),
        });
    }
    Ok(FaultedCommandRun {
        policy: policy.map(TrialPolicy::to_string),
        status: status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)),
        failed_requests: fault.failed,
        matched_requests: fault.matched,
        said: last_line(&errors_path),
    })
}

/// A command's process group, killed when dropped.
struct CommandGroup(Child);

impl CommandGroup {
    fn wait(mut self) -> Result<ExitStatus, FaultsError> {
        loop {
            match self.0.try_wait() {
                Ok(Some(status)) => return Ok(status),
                Ok(None) if interrupted() => return Err(FaultsError::Interrupted),
                Ok(None) => std::thread::sleep(POLL_INTERVAL),
                Err(reason) => {
                    return Err(FaultsError::Io {
                        path: "the command".into(),
                        what: "waiting",
                        reason,
                    });
                }
            }
        }
    }
}

impl Drop for CommandGroup {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(Some(_))) {
            return;
        }
        // SAFETY: a system call with plain integers. The group is that of our child, which has not been waited for and
        // so cannot be somebody else's.
        unsafe { libc::kill(-(self.0.id() as libc::pid_t), libc::SIGKILL) };
        // It was killed: its status says nothing.
        let _ = self.0.wait();
    }
}

fn last_line(path: &Path) -> String {
    let text = fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let last = text.lines().rfind(|line| !line.trim().is_empty());
    last.unwrap_or_default().to_owned()
}
