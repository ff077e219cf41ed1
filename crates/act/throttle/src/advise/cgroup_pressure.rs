//! Waiting times of a cgroup's processes, by the kernel's pressure files.

use std::fs;
use std::path::{Path, PathBuf};

/// A cgroup's pressure files, if this kernel has them.
#[derive(Debug)]
pub(super) struct CgroupPressure {
    io: PathBuf,
    processor: PathBuf,
    used: PathBuf,
    last: Option<PressureWait>,
}

/// Waiting times of a cgroup's threads that had something to do, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PressureWait {
    /// Time in which all of them waited for block I/O.
    pub(super) io_ns: u64,
    /// Time in which at least one of them waited for a processor.
    pub(super) processor_ns: u64,
}

impl CgroupPressure {
    pub(super) fn of(cgroup: &Path) -> Self {
        let mut this = Self {
            io: cgroup.join("io.pressure"),
            processor: cgroup.join("cpu.pressure"),
            used: cgroup.join("cpu.stat"),
            last: None,
        };
        this.last = this.read();
        this
    }

    /// Waiting times since the last call; `None` if the kernel does not report them.
    pub(super) fn take(&mut self) -> Option<PressureWait> {
        let now = self.read()?;
        let last = self.last.replace(now)?;
        Some(PressureWait {
            io_ns: now.io_ns.saturating_sub(last.io_ns),
            processor_ns: now.processor_ns.saturating_sub(last.processor_ns),
        })
    }

    /// Processor time that it has used in all, ns; 0 if the kernel does not report it.
    pub(super) fn processor_ns(&self) -> u64 {
        let text = fs::read_to_string(&self.used).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("usage_usec "));
        let used_us = line.and_then(|used| used.trim().parse::<u64>().ok());
        used_us.unwrap_or(0).saturating_mul(1_000)
    }

    fn read(&self) -> Option<PressureWait> {
        let text = fs::read_to_string(&self.io).ok()?;
        let processor = fs::read_to_string(&self.processor).unwrap_or_default();
        Some(PressureWait {
            io_ns: total_ns(&text, "full")?,
            processor_ns: total_ns(&processor, "some").unwrap_or(0),
        })
    }
}

/// Parses `total=` of a line, which is in microseconds.
fn total_ns(text: &str, line: &str) -> Option<u64> {
    let line = text.lines().find(|text| text.starts_with(line))?;
    let (_, total) = line.rsplit_once("total=")?;
    total.trim().parse::<u64>().ok()?.checked_mul(1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_read() {
        let text = "some avg10=0.22 avg60=0.17 avg300=1.11 total=58761459\n\
                    full avg10=0.00 avg60=0.13 avg300=0.96 total=57\n";
        assert_eq!(total_ns(text, "full"), Some(57_000));
        assert_eq!(total_ns(text, "some"), Some(58_761_459_000));
        assert_eq!(total_ns("", "full"), None);
        assert_eq!(CgroupPressure::of(Path::new("/nonexistent")).take(), None);
    }
}
