//! Saves the processors' settings in a file, and restores them.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Component, Path, PathBuf};

use luc_host::root_owned;
use luc_host::sysfs;
use luc_units::OnPath as _;
use serde::{Deserialize, Serialize};

use super::cpufreq::{CpufreqPolicy, cpu_dir, number_of};
use super::error::{FrequencyError, TRUST};
use super::turbo_and_smt::{SMT, SysfsChange, turbo_files};

/// All settings that a sweep may change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SavedProcessorSettings {
    smt: Option<String>,
    /// Switches of turbo, by their paths below the folder of the processors.
    turbo: Vec<(PathBuf, String)>,
    policies: Vec<SavedPolicy>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct SavedPolicy {
    processor: String,
    governor: String,
    min_khz: u64,
    max_khz: u64,
    /// Set speed; only under the governor `userspace`.
    speed_khz: Option<u64>,
}

impl SavedProcessorSettings {
    pub(super) fn read(cpu: &Path) -> Result<Self, FrequencyError> {
        let mut turbo = Vec::new();
        for (file, _) in turbo_files(cpu)? {
            let path = cpu.join(&file);
            let value = sysfs::read(&path).map_err(FrequencyError::io("read", &path))?;
            turbo.push((file, value));
        }
        let policies =
            CpufreqPolicy::all(cpu)?.iter().map(SavedPolicy::read).collect::<Result<_, _>>()?;
        Ok(Self { smt: sysfs::read(&cpu.join(SMT)).ok(), turbo, policies })
    }

    /// Restores everything. SMT comes first, since offline processors cannot be set. Turbo comes next, since limits may
    /// exceed the highest frequency without it.
    fn restore(&self, cpu: &Path) -> Result<(), FrequencyError> {
        if let Some(smt) = &self.smt {
            SysfsChange::new(cpu.join(SMT), smt).make()?;
        }
        for (file, value) in &self.turbo {
            SysfsChange::new(cpu.join(file), value).make()?;
        }
        self.restore_policies(cpu)
    }

    /// Governors and limits only, of the processors that are online.
    pub(super) fn restore_policies(&self, cpu: &Path) -> Result<(), FrequencyError> {
        let online = CpufreqPolicy::all(cpu)?;
        let is_online =
            |saved: &&SavedPolicy| online.iter().any(|policy| policy.processor == saved.processor);
        self.policies.iter().filter(is_online).try_for_each(|policy| policy.restore(cpu))
    }

    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let saved: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if !saved.is_sane() {
            return Err("a name that is no processor's".to_owned());
        }
        Ok(saved)
    }

    /// Checks that all names are of processors and switches, since another user may have written the file.
    fn is_sane(&self) -> bool {
        let is_switch = |path: &Path| {
            path.components().all(|part| matches!(part, Component::Normal(_)))
                && (path.ends_with("no_turbo") || path.ends_with("boost"))
        };
        self.turbo.iter().all(|(path, _)| is_switch(path))
            && self.policies.iter().all(|policy| number_of(&policy.processor).is_some())
    }
}

impl SavedPolicy {
    fn read(policy: &CpufreqPolicy) -> Result<Self, FrequencyError> {
        let governor = policy.text("scaling_governor")?;
        Ok(Self {
            processor: policy.processor.clone(),
            min_khz: policy.number("scaling_min_freq")?,
            max_khz: policy.number("scaling_max_freq")?,
            speed_khz: (governor == "userspace")
                .then(|| policy.number("scaling_setspeed"))
                .transpose()?,
            governor,
        })
    }

    fn restore(&self, cpu: &Path) -> Result<(), FrequencyError> {
        let policy = CpufreqPolicy::of(cpu, &self.processor);
        policy.limit(self.min_khz, self.max_khz)?;
        if policy.text("scaling_governor")? != self.governor {
            policy.write("scaling_governor", &self.governor)?;
            policy.check_reached("scaling_governor", &self.governor)?;
        }
        match self.speed_khz {
            Some(khz) if policy.number("scaling_setspeed").ok() != Some(khz) => {
                policy.write("scaling_setspeed", &khz.to_string())
            }
            _ => Ok(()),
        }
    }
}

/// Writes it to `file`, whole or not at all; it is on the disk when this returns.
pub(super) fn keep(saved: &SavedProcessorSettings, file: &Path) -> Result<(), FrequencyError> {
    let new = file.with_extension("new");
    let text = serde_json::json!(saved).to_string();
    root_owned::create(&new)
        .and_then(|mut to| to.write_all(text.as_bytes()).and_then(|()| to.sync_all()))
        .map_err(FrequencyError::io("write", &new))?;
    fs::rename(&new, file)
        .and_then(|()| sync_folder(file))
        .map_err(FrequencyError::io("write", file))
}

/// Restores the settings in `file` and removes it; does nothing without the file. It can be repeated after a failure.
///
/// # Errors
/// [`FrequencyError`]: something could not be put back; the file stays.
pub fn restore(sysfs: &Path, file: &Path) -> Result<(), FrequencyError> {
    let Some(text) = root_owned::read(file).map_err(FrequencyError::io(TRUST, file))? else {
        return Ok(());
    };
    let wrong = |reason: String| FrequencyError::Saved { path: file.to_owned(), reason };
    let saved = SavedProcessorSettings::parse(&text).map_err(wrong)?;
    saved.restore(&cpu_dir(sysfs))?;
    fs::remove_file(file)
        .and_then(|()| sync_folder(file))
        .map_err(FrequencyError::io("remove", file))
}

fn sync_folder(file: &Path) -> io::Result<()> {
    file.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}
