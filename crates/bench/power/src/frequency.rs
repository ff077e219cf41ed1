//! The processors' frequency: set for a run, checked by reading back, and put back on any exit.
//!
//! [`FrequencySetting`] and [`TurboAndSmtOptions`] are what a plan says; `check` tells before anything is touched
//! whether the machine can do it; `BorrowedFrequency` holds the processors while a sweep uses them; `restore` puts
//! everything back from the file that `BorrowedFrequency` wrote first, so that any process can do it. Where there is no
//! cpufreq, `cpu_quota` is a quota of processor time, and says that it is no frequency.
//!
//! The files are those of the kernel's admin-guide/pm/cpufreq.rst, intel_pstate.rst, amd-pstate.rst and of
//! ABI/testing/sysfs-devices-system-cpu.

pub mod cpu_quota;
mod cpufreq;
mod error;
mod saved_settings;
mod setting;
#[cfg(test)]
mod tests;
mod turbo_and_smt;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use luc_units::OnPath as _;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use cpufreq::{CpufreqPolicy, cpu_dir};
pub use error::FrequencyError;
pub use saved_settings::restore;
use saved_settings::{SavedProcessorSettings, keep};
pub use setting::{FrequencySetting, FrequencySettingError};
use turbo_and_smt::{smt_change, turbo_changes};

/// Turbo and SMT for a whole sweep. Options that are not given change nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TurboAndSmtOptions {
    /// Frequencies above the nominal one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turbo: Option<bool>,
    /// More than one thread per core.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smt: Option<bool>,
}

impl TurboAndSmtOptions {
    /// Returns whether nothing is given.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Checks that the machine can do all of it, without changes.
///
/// # Errors
/// [`FrequencyError`]: no cpufreq, no switch for turbo or SMT, or no permission. A frequency that a processor does
/// not have is an error that names the nearest one.
pub fn check(
    sysfs: &Path,
    settings: &[FrequencySetting],
    options: &TurboAndSmtOptions,
) -> Result<(), FrequencyError> {
    let cpu = cpu_dir(sysfs);
    let frequencies = settings.iter().filter_map(FrequencySetting::khz);
    let mut policies = Vec::new();
    for khz in frequencies {
        if policies.is_empty() {
            policies = CpufreqPolicy::all(&cpu)?;
        }
        if policies.is_empty() {
            return Err(FrequencyError::NoCpufreq {
                wanted: FrequencySetting::from_khz(khz),
                path: cpu.join("cpu*/cpufreq"),
            });
        }
        for policy in &policies {
            policy.check(khz, options.turbo == Some(false))?;
        }
    }
    if let Some(turbo) = options.turbo {
        turbo_changes(&cpu, turbo)?;
    }
    if let Some(smt) = options.smt {
        smt_change(&cpu, smt)?;
    }
    if settings.iter().any(|setting| setting.share().is_some()) {
        cpu_quota::find(sysfs)?;
    }
    Ok(())
}

/// Locks the processors' settings against other sweeps, for as long as the file or a copy of it is open.
///
/// # Errors
/// [`FrequencyError::Busy`]: another sweep has them.
pub fn lock(sysfs: &Path) -> Result<File, FrequencyError> {
    let path = cpu_dir(sysfs);
    let file = File::open(&path).map_err(FrequencyError::io("open", &path))?;
    let begun = Instant::now();
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(file),
            // The cleanup process of a sweep that has just ended closes its files one after the other.
            Err(rustix::io::Errno::WOULDBLOCK) if begun.elapsed() < Duration::from_secs(2) => {
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(FrequencyError::Busy(path)),
            Err(error) => return Err(FrequencyError::io("lock", &path)(error)),
        }
    }
}

/// Borrowed processor settings. The original settings are on disk before anything is changed. Whoever ends the sweep
/// calls [`restore`] with that file.
#[derive(Debug)]
pub struct BorrowedFrequency {
    cpu: PathBuf,
    /// Settings after [`TurboAndSmtOptions`] were applied: without turbo, limits may be lower than before.
    as_is: SavedProcessorSettings,
    /// Without the processors that [`TurboAndSmtOptions`] took offline.
    policies: Vec<CpufreqPolicy>,
}

impl BorrowedFrequency {
    /// Saves the current settings to `file`, then applies `options`.
    ///
    /// # Errors
    /// [`FrequencyError`]; `file` says what to restore, if it is there.
    pub fn take(
        sysfs: &Path,
        file: &Path,
        options: &TurboAndSmtOptions,
    ) -> Result<Self, FrequencyError> {
        let cpu = cpu_dir(sysfs);
        keep(&SavedProcessorSettings::read(&cpu)?, file)?;
        // SMT first: what is offline needs no turbo switch.
        if let Some(smt) = options.smt
            && let Some(change) = smt_change(&cpu, smt)?
        {
            change.make()?;
        }
        if let Some(turbo) = options.turbo {
            for change in turbo_changes(&cpu, turbo)? {
                change.make()?;
            }
        }
        Ok(Self {
            as_is: SavedProcessorSettings::read(&cpu)?,
            policies: CpufreqPolicy::all(&cpu)?,
            cpu,
        })
    }

    /// Brings every processor to `setting`; a throttle is none, and leaves them as they were.
    ///
    /// # Errors
    /// [`FrequencyError`]: refused by the kernel, or not what is read back.
    pub fn set(&self, setting: &FrequencySetting) -> Result<(), FrequencyError> {
        match setting.khz() {
            Some(khz) => self.policies.iter().try_for_each(|policy| policy.pin(khz)),
            None => self.as_is.restore_policies(&self.cpu),
        }
    }
}

/// Parses saved settings and serializes them again; `None` if they are not a sweep's.
#[must_use]
pub fn saved(text: &str) -> Option<String> {
    let saved = SavedProcessorSettings::parse(text).ok()?;
    Some(serde_json::json!(saved).to_string())
}

/// Returns lowest and highest frequency that the processors report now, kHz; `None` without cpufreq.
#[must_use]
pub fn now_khz(sysfs: &Path) -> Option<[u64; 2]> {
    let policies = CpufreqPolicy::all(&cpu_dir(sysfs)).ok()?;
    let now: Vec<u64> =
        policies.iter().filter_map(|policy| policy.number("scaling_cur_freq").ok()).collect();
    Some([*now.iter().min()?, *now.iter().max()?])
}
