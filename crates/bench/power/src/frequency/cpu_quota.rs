//! A quota of processor time, for machines without cpufreq. It is no frequency: programs run at full speed and then
//! have to stop, so caches, memory and devices keep their speed.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use luc_host::sysfs;
use luc_units::OnPath as _;

use super::FrequencyError;

/// Quotas are given out this often, so that a pause is short beside a repeat.
const PERIOD_US: u64 = 10_000;
/// The kernel's least quota.
const MIN_QUOTA_US: u64 = 1_000;

/// Parent of cgroups with the cpu controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuCgroupRoot {
    /// The root of the hierarchy: below another group, its limits would count as well.
    pub root: PathBuf,
    version: Version,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// Finds the hierarchy with the cpu controller: cgroup v2, or v1 if that has it. Changes nothing.
///
/// # Errors
/// [`FrequencyError`]: there is none, or no permission.
pub fn find(sysfs: &Path) -> Result<CpuCgroupRoot, FrequencyError> {
    let top = sysfs.join("fs/cgroup");
    for root in [top.clone(), top.join("unified")] {
        // It is not enabled here: that would be a setting of the whole machine.
        let enabled = sysfs::read(&root.join("cgroup.subtree_control")).unwrap_or_default();
        if enabled.split_whitespace().any(|name| name == "cpu") {
            return place(root, Version::Two);
        }
    }
    for name in ["cpu", "cpu,cpuacct"] {
        let root = top.join(name);
        if root.join("cgroup.procs").exists() {
            return place(root, Version::One);
        }
    }
    Err(FrequencyError::NoCgroup(top))
}

fn place(root: PathBuf, version: Version) -> Result<CpuCgroupRoot, FrequencyError> {
    let procs = root.join("cgroup.procs");
    sysfs::check_writable(&procs).map_err(FrequencyError::io("write", &procs))?;
    Ok(CpuCgroupRoot { root, version })
}

/// A cgroup for workloads. Whoever ends the sweep removes it with [`remove`].
#[derive(Debug)]
pub struct CpuQuotaCgroup {
    dir: PathBuf,
    version: Version,
}

impl CpuQuotaCgroup {
    /// Makes it, with the name `name`.
    ///
    /// # Errors
    /// [`FrequencyError`], from the kernel.
    pub fn create(place: &CpuCgroupRoot, name: &str) -> Result<Self, FrequencyError> {
        let dir = place.root.join(name);
        match fs::create_dir(&dir) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                Err(FrequencyError::io("make", &dir)(error))
            }
            _ => Ok(Self { dir, version: place.version }),
        }
    }

    /// Gives it `percent` of the time of all processors that this process may use.
    ///
    /// # Errors
    /// [`FrequencyError`]: refused by the kernel, or not what is read back.
    pub fn limit(&self, percent: u8) -> Result<(), FrequencyError> {
        let processors = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
        let (quota_us, period_us) = quota(percent, processors);
        let changes = match self.version {
            Version::Two => vec![("cpu.max", format!("{quota_us} {period_us}"))],
            Version::One => vec![
                ("cpu.cfs_quota_us", "-1".to_owned()),
                ("cpu.cfs_period_us", period_us.to_string()),
                ("cpu.cfs_quota_us", quota_us.to_string()),
            ],
        };
        for (name, wanted) in changes {
            let path = self.dir.join(name);
            sysfs::write(&path, &wanted).map_err(FrequencyError::io("write", &path))?;
            let found = sysfs::read(&path).map_err(FrequencyError::io("read", &path))?;
            if found != wanted {
                return Err(FrequencyError::NotReached { path, wanted, found });
            }
        }
        Ok(())
    }

    /// Lets `command` begin in it.
    ///
    /// # Errors
    /// [`FrequencyError`]: it cannot be entered.
    pub fn enter(&self, command: &mut Command) -> Result<(), FrequencyError> {
        let path = self.dir.join("cgroup.procs");
        let procs: File = OpenOptions::new()
            .write(true)
            .open(&path)
            .map_err(FrequencyError::io("write", &path))?;
        let enter = move || {
            // 0 is the writer itself.
            rustix::io::write(&procs, b"0")?;
            Ok(())
        };
        // SAFETY: between fork and exec only write(2) is called, which is async-signal-safe; nothing is allocated.
        unsafe { command.pre_exec(enter) };
        Ok(())
    }
}

/// Computes quota and period in microseconds.
fn quota(percent: u8, processors: u64) -> (u64, u64) {
    let share = u64::from(percent) * processors;
    // Longer periods where the quota would be below the least.
    let period_us = PERIOD_US.max((MIN_QUOTA_US * 100).div_ceil(share));
    (period_us * share / 100, period_us)
}

/// Removes a cgroup, if it exists.
pub fn remove(dir: &Path) -> io::Result<()> {
    match fs::remove_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        outcome => outcome,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas() {
        assert_eq!(quota(50, 2), (10_000, 10_000));
        assert_eq!(quota(25, 1), (2_500, 10_000));
        assert_eq!(quota(1, 1), (1_000, 100_000));
        for percent in 1..=99 {
            for processors in 1..=64 {
                let (quota_us, period_us) = quota(percent, processors);
                assert!(quota_us >= MIN_QUOTA_US && period_us <= 1_000_000);
                let share = quota_us as f64 / period_us as f64 / processors as f64;
                assert!((share * 100.0 - f64::from(percent)).abs() < 0.1);
            }
        }
    }

    #[test]
    fn both_versions_of_cgroups_and_none() {
        let sysfs = tempfile::tempdir().expect("a folder");
        let error = find(sysfs.path()).expect_err("none").to_string();
        assert!(error.contains("cpu controller"), "{error}");
        let make = |path: &str, text: &str| {
            let path = sysfs.path().join("fs/cgroup").join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, text).expect("written");
        };
        make("unified/cgroup.subtree_control", "");
        make("cpu,cpuacct/cgroup.procs", "");
        let found = find(sysfs.path()).expect("version 1");
        assert_eq!(found.version, Version::One);
        make("cgroup.subtree_control", "cpuset cpu io");
        make("cgroup.procs", "");
        let found = find(sysfs.path()).expect("version 2");
        assert_eq!(found.version, Version::Two);
        make("x/cpu.max", "max 100000");
        let throttle = CpuQuotaCgroup::create(&found, "x").expect("there");
        throttle.limit(50).expect("limited");
        let text = fs::read_to_string(sysfs.path().join("fs/cgroup/x/cpu.max")).expect("there");
        let mut words = text.split(' ').map(|word| word.parse::<f64>().expect("a number"));
        let share = words.next().expect("quota") / words.next().expect("period");
        let processors = std::thread::available_parallelism().expect("known").get();
        assert_eq!(share, 0.5 * processors as f64);
    }
}
