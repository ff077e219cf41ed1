//! Tests that a failed write reaches the program that asked for it. A disk fails on order. A program writes and
//! synchronizes with luc and without, and must get the same results.
//!
//! [`run`] makes every trial of a matrix: errnos of the block layer, calls that wait for data, blocks of a file,
//! kinds of files, policies. Many trials share one disk and one file system. Each has a file of its
//! own. One block of that file cannot be written. One client makes all trials of an errno and a policy at the same
//! time.
//!
//! Failed flushes end a file system's journal, so their trials get a new file system each time. [`run_command`] runs a
//! command of the user on a disk that begins to fail.
//!
//! # Where the parts are
//!
//! 1. `fault_trial` is what is tried and what a program was told; `trial_matrix` goes through mount options, policies
//!    and errnos.
//! 2. `fault_disk` is the disk with its file system. `trial_client` is the client's process seen from outside. `client`
//!    is the program under trial (`luc bench fault-client`); it gets its trials over a pipe.
//! 3. `fiemap` says where on the disk a trial's blocks lie, so that the disk lets just these fail.
//! 4. `level` is what brings calls together: `gate` puts a program under `luc run`, `loaded_module` sets the kernel
//!    module on the trials' journal. Both read how much was held.
//! 5. `faults_report` compares. `user_command` does the same with a command of the user's.

pub mod client;
mod error;
mod fault_disk;
mod fault_trial;
mod faults_report;
mod fiemap;
mod gate;
mod level;
mod loaded_module;
mod trial_client;
mod trial_matrix;
mod user_command;

use std::ffi::OsString;
use std::path::PathBuf;

use luc_disk::{BlockErrno, FaultSpec, ModelSpec};

pub use error::FaultsError;
pub use fault_trial::{
    DescriptorBeforeCall, FaultTrial, FaultTrialOutcome, FaultyBlock, TrialCall, TrialCallResult,
    TrialFileState,
};
pub use faults_report::{FaultsReport, PolicyReport, TrialDifference};
pub use gate::{GateCommand, TrialPolicy};
pub use level::BatchingLevel;
pub use loaded_module::LoadedModule;
pub use user_command::{CommandPlan, CommandReport, FaultedCommandRun, run_command};

/// Disk, file system, level and policies that all trials share.
#[derive(Debug, Clone)]
pub struct FaultTrialSetting {
    /// The `luc` binary, run again as the disk's daemon and as the client.
    pub luc: PathBuf,
    /// File system, as in `mkfs.FS`.
    pub fs: String,
    /// Options of mkfs, separated by blanks.
    pub mkfs_options: String,
    pub model: ModelSpec,
    pub size_bytes: u64,
    pub level: BatchingLevel,
    /// The policies to compare with none.
    pub policies: Vec<TrialPolicy>,
}

/// Trials to make: errnos, calls and mount options on one setting.
#[derive(Debug, Clone)]
pub struct FaultTrials {
    pub setting: FaultTrialSetting,
    /// Errnos with which writes fail. With EIO among them, flushes fail as well; they can fail with nothing else.
    pub errnos: Vec<BlockErrno>,
    /// The calls that are to report it.
    pub calls: Vec<TrialCall>,
    /// Options as in `mount -o`; all trials are made with each.
    pub mount_options: Vec<String>,
    /// Threads that synchronize beside the trials.
    pub beside: usize,
}

/// Makes the trials. `tick` gets the number of steps done, and of all steps.
///
/// # Errors
/// [`FaultsError`]: bad input, or a machine that cannot do it. Differences are no error but in the report.
pub fn run(
    plan: &FaultTrials,
    tick: &mut dyn FnMut(u64, u64),
) -> Result<FaultsReport, FaultsError> {
    if plan.beside == 0 || plan.beside > 256 {
        return Err(FaultsError::Threads(plan.beside));
    }
    if plan.setting.policies.is_empty() || plan.errnos.is_empty() || plan.calls.is_empty() {
        return Err(FaultsError::Nothing);
    }
    trial_matrix::run(plan, tick)
}

/// Writes a command line as text.
fn text(words: &[OsString]) -> String {
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    words.join(" ")
}

fn flushes() -> FaultSpec {
    FaultSpec { on: vec![luc_disk::FaultKind::Flush], ..FaultSpec::writes(BlockErrno::EIO) }
}
