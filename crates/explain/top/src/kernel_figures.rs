//! Figures of the kernel beside the events: I/O pressure, and busy times of disks.

use std::collections::BTreeMap;
use std::fs;
use std::time::Instant;

use luc_events::Dev;
use luc_events::tables::MountedFileSystem;
use luc_explain::TraceReport;

use crate::IoPressureLast10s;

/// Reads `/proc/pressure/io`, if this kernel has it.
pub(crate) fn pressure() -> Option<IoPressureLast10s> {
    parse_pressure(&fs::read_to_string("/proc/pressure/io").ok()?)
}

fn parse_pressure(text: &str) -> Option<IoPressureLast10s> {
    let share = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name))?;
        let average = line.split(' ').find_map(|word| word.strip_prefix("avg10="))?;
        Some(average.parse::<f64>().ok()? / 100.0)
    };
    Some(IoPressureLast10s { some: share("some ")?, full: share("full ").unwrap_or(0.0) })
}

/// Returns the kernel's names of the disks that tasks share.
pub(crate) fn disk_names(report: &TraceReport) -> BTreeMap<Dev, String> {
    let shared = report.disks.iter().filter(|disk| disk.contention.is_some());
    let name = |dev: Dev| {
        let link = fs::read_link(format!("/sys/dev/block/{dev}")).ok()?;
        let name = link.file_name()?.to_string_lossy().into_owned();
        Some((dev, luc_units::plain(&name)))
    };
    shared.filter_map(|disk| name(disk.dev)).collect()
}

/// Busy times of disks at the last look.
#[derive(Debug)]
pub(crate) struct DiskBusyTimes {
    at: Instant,
    busy_ms: BTreeMap<Dev, u64>,
}

impl DiskBusyTimes {
    pub(crate) fn new() -> Self {
        Self { at: Instant::now(), busy_ms: BTreeMap::new() }
    }

    /// Returns the share of the time since the last look in which each file system's disk was busy.
    pub(crate) fn look<'a>(
        &mut self,
        file_systems: impl Iterator<Item = &'a MountedFileSystem>,
    ) -> BTreeMap<Dev, f64> {
        let elapsed_ms = self.at.elapsed().as_secs_f64() * 1e3;
        self.at = Instant::now();
        let mut shares = BTreeMap::new();
        let mut now = BTreeMap::new();
        for row in file_systems.filter(|row| row.disk != Dev::default()) {
            let Some(busy_ms) = busy_ms(row.disk) else {
                continue;
            };
            now.insert(row.disk, busy_ms);
            if let Some(before) = self.busy_ms.get(&row.disk) {
                let share = busy_ms.saturating_sub(*before) as f64 / elapsed_ms.max(1.0);
                shares.insert(row.dev, share.min(1.0));
            }
        }
        self.busy_ms = now;
        shares
    }
}

fn busy_ms(disk: Dev) -> Option<u64> {
    let text = fs::read_to_string(format!("/sys/dev/block/{disk}/stat")).ok()?;
    text.split_whitespace().nth(9)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pressure_is_read_as_shares() {
        let text = "some avg10=12.50 avg60=1.00 avg300=0.10 total=123\n\
                    full avg10=8.00 avg60=0.00 avg300=0.00 total=45\n";
        let found = parse_pressure(text).unwrap();
        assert_eq!((found.some, found.full), (0.125, 0.08));
        assert_eq!(parse_pressure("nonsense"), None);
    }
}
