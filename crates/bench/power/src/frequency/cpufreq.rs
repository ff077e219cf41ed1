//! Policies of cpufreq: their ranges, and setting a policy to a frequency.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use luc_host::sysfs;
use luc_units::OnPath as _;

use super::{FrequencyError, FrequencySetting};

/// Returns the folder of the processors below the root of sysfs.
pub(super) fn cpu_dir(sysfs: &Path) -> PathBuf {
    sysfs.join("devices/system/cpu")
}

/// Rounding of drivers without a table, to multiples of a bus clock.
const STEP_KHZ: u64 = 100_000;

/// Processors that have one frequency in common.
#[derive(Debug, Clone)]
pub(super) struct CpufreqPolicy {
    /// The first of its processors, as `cpu0`.
    pub(super) processor: String,
    dir: PathBuf,
}

impl CpufreqPolicy {
    /// Returns the policies of all online processors; none without cpufreq.
    pub(super) fn all(cpu: &Path) -> Result<Vec<Self>, FrequencyError> {
        let entries = match fs::read_dir(cpu) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(FrequencyError::io("list", cpu))?,
        };
        let mut numbers: Vec<u32> =
            entries.flatten().filter_map(|entry| number_of(entry.file_name().to_str()?)).collect();
        numbers.sort_unstable();
        let mut seen = BTreeSet::new();
        let mut policies = Vec::new();
        for number in numbers {
            let policy = Self::of(cpu, &format!("cpu{number}"));
            // An offline processor has the folder, or a link to it, but it cannot be read.
            if policy.text("scaling_driver").is_err() {
                continue;
            }
            let path = policy.dir.canonicalize();
            if seen.insert(path.unwrap_or_else(|_| policy.dir.clone())) {
                policies.push(policy);
            }
        }
        Ok(policies)
    }

    pub(super) fn of(cpu: &Path, processor: &str) -> Self {
        Self { processor: processor.to_owned(), dir: cpu.join(processor).join("cpufreq") }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    pub(super) fn text(&self, name: &str) -> Result<String, FrequencyError> {
        let path = self.path(name);
        sysfs::read(&path).map_err(FrequencyError::io("read", &path))
    }

    pub(super) fn number(&self, name: &str) -> Result<u64, FrequencyError> {
        let path = self.path(name);
        sysfs::read_number(&path).map_err(FrequencyError::io("read", &path))
    }

    pub(super) fn write(&self, name: &str, value: &str) -> Result<(), FrequencyError> {
        let path = self.path(name);
        sysfs::write(&path, value).map_err(FrequencyError::io("write", &path))
    }

    /// Returns the frequencies of a driver with a table (acpi-cpufreq), in rising order; else none.
    fn table(&self) -> Vec<u64> {
        let mut table: Vec<u64> = self
            .text("scaling_available_frequencies")
            .unwrap_or_default()
            .split_whitespace()
            .filter_map(|word| word.parse().ok())
            .collect();
        table.sort_unstable();
        table
    }

    fn has_userspace(&self) -> bool {
        self.text("scaling_available_governors")
            .is_ok_and(|governors| governors.split_whitespace().any(|name| name == "userspace"))
            && self.path("scaling_setspeed").exists()
    }

    /// Returns the highest frequency without turbo. intel_pstate reports it; for other drivers ACPI does (in MHz, 0 if
    /// unknown).
    fn without_turbo(&self) -> Option<u64> {
        let nominal = || {
            let path = self.dir.parent()?.join("acpi_cppc/nominal_freq");
            let mhz = sysfs::read_number(&path).ok()?;
            (mhz > 0).then_some(mhz * 1000)
        };
        self.number("base_frequency").ok().or_else(nominal)
    }

    /// Checks that it can be set to `khz`, without changes.
    pub(super) fn check(&self, khz: u64, turbo_off: bool) -> Result<(), FrequencyError> {
        let show = |khz: u64| FrequencySetting::from_khz(khz).to_string();
        let outside = |has: String, nearest: u64| FrequencyError::Outside {
            wanted: FrequencySetting::from_khz(khz),
            processor: self.processor.clone(),
            has,
            nearest: FrequencySetting::from_khz(nearest),
        };
        let low = self.number("cpuinfo_min_freq")?;
        let mut high = self.number("cpuinfo_max_freq")?;
        if turbo_off {
            high = high.min(self.without_turbo().unwrap_or(high));
        }
        let table = self.table();
        match table.iter().min_by_key(|has| has.abs_diff(khz)) {
            Some(&nearest) if nearest != khz => {
                let has: Vec<String> = table.iter().map(|&khz| show(khz)).collect();
                return Err(outside(has.join(", "), nearest));
            }
            None if !(low..=high).contains(&khz) => {
                let has = format!("{} to {}", show(low), show(high));
                return Err(outside(has, khz.clamp(low, high)));
            }
            _ => {}
        }
        let mut names = vec!["scaling_min_freq", "scaling_max_freq"];
        if self.has_userspace() {
            names.extend(["scaling_governor", "scaling_setspeed"]);
        }
        for name in names {
            let path = self.path(name);
            sysfs::check_writable(&path).map_err(FrequencyError::io("write", &path))?;
        }
        Ok(())
    }

    /// Sets it to `khz`: both limits, and the governor `userspace` if there is one.
    pub(super) fn pin(&self, khz: u64) -> Result<(), FrequencyError> {
        self.limit(khz, khz)?;
        if !self.has_userspace() {
            return Ok(());
        }
        if self.text("scaling_governor")? != "userspace" {
            self.write("scaling_governor", "userspace")?;
            self.check_reached("scaling_governor", "userspace")?;
        }
        self.write("scaling_setspeed", &khz.to_string())?;
        // It reads as the frequency that the driver has set.
        let found = self.number("scaling_setspeed")?;
        let slack = if self.table().is_empty() { STEP_KHZ } else { 0 };
        if found.abs_diff(khz) > slack {
            return Err(self.explain_not_reached(
                "scaling_setspeed",
                &khz.to_string(),
                found.to_string(),
            ));
        }
        Ok(())
    }

    /// Sets both limits, in the order in which the lower is never above the upper: the kernel refuses that, or
    /// silently takes something else.
    pub(super) fn limit(&self, min_khz: u64, max_khz: u64) -> Result<(), FrequencyError> {
        let (min, max) = (min_khz.to_string(), max_khz.to_string());
        let mut changes = [("scaling_min_freq", &min), ("scaling_max_freq", &max)];
        // A limit that is no number compares with nothing, and is written all the same.
        let max_now = self.number("scaling_max_freq");
        if max_now.is_ok_and(|now_khz| min_khz > now_khz) {
            changes.reverse();
        }
        for (name, value) in changes {
            if self.text(name)? != *value {
                self.write(name, value)?;
            }
        }
        for (name, value) in changes {
            self.check_reached(name, value)?;
        }
        Ok(())
    }

    pub(super) fn check_reached(&self, name: &str, wanted: &str) -> Result<(), FrequencyError> {
        let found = self.text(name)?;
        if found == wanted {
            return Ok(());
        }
        Err(self.explain_not_reached(name, wanted, found))
    }

    fn explain_not_reached(&self, name: &str, wanted: &str, found: String) -> FrequencyError {
        FrequencyError::NotReached { path: self.path(name), wanted: wanted.to_owned(), found }
    }
}

pub(super) fn number_of(name: &str) -> Option<u32> {
    name.strip_prefix("cpu")?.parse().ok()
}
