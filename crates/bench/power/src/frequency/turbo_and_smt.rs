//! Turbo and SMT: switches of the whole machine, and boost of single policies.

use std::path::{Path, PathBuf};

use luc_host::sysfs;
use luc_units::OnPath as _;

use super::FrequencyError;
use super::cpufreq::CpufreqPolicy;

/// A file and the value that it is to have.
#[derive(Debug)]
pub(super) struct SysfsChange {
    path: PathBuf,
    value: String,
}

impl SysfsChange {
    /// Writes it, if it is not so already, and reads back: where turbo is off in the firmware, writing is refused.
    pub(super) fn make(&self) -> Result<(), FrequencyError> {
        let Self { path, value } = self;
        let read = || sysfs::read(path).map_err(FrequencyError::io("read", path));
        if read()? == *value {
            return Ok(());
        }
        sysfs::write(path, value).map_err(FrequencyError::io("write", path))?;
        let found = read()?;
        if found == *value {
            return Ok(());
        }
        Err(FrequencyError::NotReached { path: path.clone(), wanted: value.clone(), found })
    }

    pub(super) fn new(path: PathBuf, value: &str) -> Self {
        Self { path, value: value.to_owned() }
    }
}

/// Lists files that switch turbo, below the folder of the processors, with the value that means on. They are those of
/// intel_pstate, of other drivers, and of single policies, which the one before sets as well.
pub(super) fn turbo_files(cpu: &Path) -> Result<Vec<(PathBuf, &'static str)>, FrequencyError> {
    let mut files =
        vec![(PathBuf::from("intel_pstate/no_turbo"), "0"), (PathBuf::from("cpufreq/boost"), "1")];
    for policy in CpufreqPolicy::all(cpu)? {
        files.push((PathBuf::from(&policy.processor).join("cpufreq/boost"), "1"));
    }
    files.retain(|(file, _)| cpu.join(file).exists());
    Ok(files)
}

/// Lists files and values that turn turbo on or off. Errors: there is no switch, or it cannot be written.
pub(super) fn turbo_changes(cpu: &Path, turbo: bool) -> Result<Vec<SysfsChange>, FrequencyError> {
    let files = turbo_files(cpu)?;
    if files.is_empty() {
        return Err(FrequencyError::NoTurbo(cpu.to_owned()));
    }
    let other = |on: &str| if on == "0" { "1" } else { "0" };
    let mut changes = Vec::new();
    for (file, on) in files {
        let path = cpu.join(file);
        sysfs::check_writable(&path).map_err(FrequencyError::io("write", &path))?;
        changes.push(SysfsChange::new(path, if turbo { on } else { other(on) }));
    }
    Ok(changes)
}

pub(super) const SMT: &str = "smt/control";

/// Returns files and values that turn SMT on or off; none if it is so already. Errors: it cannot be switched.
pub(super) fn smt_change(cpu: &Path, smt: bool) -> Result<Option<SysfsChange>, FrequencyError> {
    let path = cpu.join(SMT);
    let found = sysfs::read(&path).map_err(FrequencyError::io("read", &path))?;
    // A number is of an architecture where several threads of a core can be chosen.
    let is_on = match found.as_str() {
        "on" => true,
        "off" | "1" => false,
        "forceoff" | "notsupported" if !smt => return Ok(None),
        number if number.parse::<u32>().is_ok() => true,
        _ => return Err(FrequencyError::NoSmt { path, found }),
    };
    if is_on == smt {
        return Ok(None);
    }
    sysfs::check_writable(&path).map_err(FrequencyError::io("write", &path))?;
    Ok(Some(SysfsChange::new(path, if smt { "on" } else { "off" })))
}
