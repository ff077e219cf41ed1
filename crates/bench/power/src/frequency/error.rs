//! Errors of the processors' settings, each with its remedy.

use std::io;
use std::path::PathBuf;

use luc_units::FileOperationError;

use super::setting::{FrequencySetting, FrequencySettingError};

/// The processors cannot be set, or not be put back.
#[derive(Debug, thiserror::Error)]
pub enum FrequencyError {
    #[error(transparent)]
    Setting(#[from] FrequencySettingError),
    #[error(
        "frequency {wanted}: this machine has no cpufreq ({path}): write \"throttle:50%\", a quota of processor time \
         that is no frequency, or measure in a virtual machine in virtual time (docs/reference/vm.md)",
        path = .path.display()
    )]
    NoCpufreq {
        wanted: FrequencySetting,
        /// Path where cpufreq would be.
        path: PathBuf,
    },
    #[error("frequency {wanted}: {processor} has {has}; the nearest possible is {nearest}")]
    Outside { wanted: FrequencySetting, processor: String, has: String, nearest: FrequencySetting },
    #[error(
        "frequency-options.turbo: neither intel_pstate/no_turbo nor cpufreq/boost is in {path}: switch turbo in the \
         firmware, and leave the option out",
        path = .0.display()
    )]
    NoTurbo(PathBuf),
    #[error(
        "frequency-options.smt: {path} is '{found}': switch SMT in the firmware, and leave the option out",
        path = .path.display()
    )]
    NoSmt { path: PathBuf, found: String },
    #[error(
        "frequency throttle: no cgroups in {path} have the cpu controller: mount cgroup2 there and write +cpu to its \
         cgroup.subtree_control, or leave the throttle out",
        path = .0.display()
    )]
    NoCgroup(PathBuf),
    #[error(
        "{path} is '{found}' after '{wanted}' was written: the driver or a power daemon does not allow it; stop the \
         daemon, or correct the plan's frequency",
        path = .path.display()
    )]
    NotReached { path: PathBuf, wanted: String, found: String },
    #[error("{path} is in use by another sweep that sets the processors: wait for it", path = .0.display())]
    Busy(PathBuf),
    #[error(
        "{path}: not what a sweep saved of the processors ({reason}): set them by hand, and remove the file",
        path = .path.display()
    )]
    Saved { path: PathBuf, reason: String },
    /// A file could not be read or written.
    #[error("cannot {action} {path}: {reason}; setting processors needs root", path = .path.display())]
    File { action: &'static str, path: PathBuf, reason: io::Error },
}

/// Action of [`FrequencyError::File`] for files that root restores from, when another user may have written them.
pub(super) const TRUST: &str = "trust";

impl FrequencyError {
    /// Returns whether trying again is of no use: a file is not to be trusted, or not understood.
    #[must_use]
    pub fn is_lasting(&self) -> bool {
        match self {
            Self::Saved { .. } => true,
            Self::File { action, .. } => *action == TRUST,
            _ => false,
        }
    }
}

impl From<FileOperationError> for FrequencyError {
    fn from(FileOperationError { what, path, source }: FileOperationError) -> Self {
        Self::File { action: what, path, reason: source }
    }
}
