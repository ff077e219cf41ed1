//! Counters of the machine, read before and after each workload where reading costs little.
//!
//! A name is `source.what_unit`; without a unit it is a number of things. `machine` counts for the whole machine,
//! `file_systems` for the target's file system, and `report_counters` reads the workload's report.

mod file_systems;
mod machine;
pub(super) mod report_counters;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use luc_host::resource_usage::ResourceUsage;

/// Values of counters, by name.
pub type CounterValues = BTreeMap<String, f64>;

/// The disk below a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Disk {
    major: u32,
    minor: u32,
    /// Name in the kernel, as `loop0`.
    name: String,
}

/// Counters of the machine just before a workload.
#[derive(Debug)]
pub(super) struct CounterReadingBefore {
    sysfs: PathBuf,
    disk: Option<Disk>,
    before: Reading,
}

/// Texts of the kernel's files at one moment. They are parsed after the workload, to keep reading quick.
#[derive(Debug, Default)]
struct Reading {
    machine: machine::MachineTexts,
    file_system: file_systems::FileSystemTexts,
    usage: ResourceUsage,
}

impl Reading {
    fn now(sysfs: &Path, disk: Option<&Disk>) -> Self {
        Self {
            machine: machine::MachineTexts::now(),
            file_system: disk.map_or_else(file_systems::FileSystemTexts::default, |disk| {
                file_systems::FileSystemTexts::now(Path::new("/proc"), sysfs, &disk.name)
            }),
            usage: ResourceUsage::of_children(),
        }
    }

    /// Returns the counters that only grow.
    fn totals(&self, disk: Option<&Disk>) -> CounterValues {
        let mut totals = self.machine.totals(disk);
        totals.extend(self.file_system.totals());
        totals.extend(machine::used_by_children(&self.usage));
        totals
    }
}

impl CounterReadingBefore {
    /// Reads the counters for a workload that is about to work in `dir`.
    pub(super) fn begin(dir: &Path, sysfs: &Path) -> Self {
        let disk = Disk::below(dir);
        Self { before: Reading::now(sysfs, disk.as_ref()), sysfs: sysfs.to_owned(), disk }
    }

    /// Ends the counting, just after the workload.
    pub(super) fn end(self) -> CounterReadings {
        let after = Reading::now(&self.sysfs, self.disk.as_ref());
        let Self { disk, before, .. } = self;
        CounterReadings { disk, before, after }
    }
}

/// Counters of the machine just before and just after a workload.
#[derive(Debug)]
pub(super) struct CounterReadings {
    disk: Option<Disk>,
    before: Reading,
    after: Reading,
}

impl CounterReadings {
    /// Returns the differences of all totals, the file system's means, and the workload's own figures.
    pub(super) fn counters(&self, stdout: &str, elapsed_s: f64) -> CounterValues {
        let disk = self.disk.as_ref();
        let mut counters = differences(&self.before.totals(disk), self.after.totals(disk));
        counters.extend(self.after.file_system.levels());
        counters.extend(report_counters::counters(stdout));
        counters.insert("workload.elapsed_s".to_owned(), elapsed_s);
        counters
    }
}

/// Returns the growth of counters that are in both. A counter that went down was reset and is left out.
fn differences(before: &CounterValues, after: CounterValues) -> CounterValues {
    let difference = |(name, after): (String, f64)| {
        let grown = after - before.get(&name)?;
        (grown >= 0.0).then_some((name, grown))
    };
    after.into_iter().filter_map(difference).collect()
}

impl Disk {
    /// Finds the disk below `dir`; `None` if its file system is on no block device.
    fn below(dir: &Path) -> Option<Self> {
        let number = fs::metadata(dir).ok()?.dev();
        let source = || {
            // btrfs has an anonymous device number; the source of its mount is the disk.
            let about = luc_disk::mount_of(&dir.canonicalize().ok()?)?;
            let source = about.split(' ').nth(1)?.to_owned();
            Some(fs::metadata(source).ok()?.rdev())
        };
        Self::with_number(number).or_else(|| Self::with_number(source()?))
    }

    fn with_number(number: u64) -> Option<Self> {
        let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
        let text = fs::read_to_string("/proc/diskstats").ok()?;
        let name = machine::disk_line(&text, major, minor)?.nth(2)?.to_owned();
        Some(Self { major, minor, name })
    }
}

/// Returns numbers by their names, as pairs.
fn name_figures<const N: usize>(
    source: &str,
    figures: [(&str, Option<f64>); N],
) -> impl Iterator<Item = (String, f64)> {
    let named = |(name, figure): (&str, Option<f64>)| Some((format!("{source}.{name}"), figure?));
    figures.map(named).into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(pairs: &[(&str, f64)]) -> CounterValues {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
    }

    #[test]
    fn differences_are_of_what_both_have() {
        let before = counters(&[("a.x", 3.0), ("a.wrapped", 9.0), ("a.gone", 1.0)]);
        let after = counters(&[("a.x", 5.0), ("a.wrapped", 2.0), ("a.new", 1.0)]);
        assert_eq!(differences(&before, after), counters(&[("a.x", 2.0)]));
    }

    #[test]
    fn a_process_that_faults_is_counted() {
        let folder = tempfile::tempdir().expect("a folder");
        let counting = CounterReadingBefore::begin(folder.path(), Path::new("/sys"));
        let status = std::process::Command::new("sh")
            .args(["-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"])
            .status()
            .expect("sh runs");
        assert!(status.success());
        let counted = counting.end().counters("", 0.5);
        assert!(counted["workload.minor_faults"] > 0.0, "{counted:?}");
        assert!(counted["machine.forks"] >= 1.0, "{counted:?}");
        assert_eq!(counted["workload.elapsed_s"], 0.5);
    }

    #[test]
    fn no_disk_below_proc() {
        assert_eq!(Disk::below(Path::new("/proc/self")), None);
        assert_eq!(Disk::below(Path::new("/no/such")), None);
    }
}
