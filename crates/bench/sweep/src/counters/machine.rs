//! Counters of the whole machine, of the target's disk, and of the workload's processes.

use std::fs;
use std::time::Duration;

use luc_host::resource_usage::ResourceUsage;

use super::{CounterValues, Disk, name_figures};

/// A tick of /proc/stat (USER_HZ is 100 wherever LUC runs).
const TICK_MS: f64 = 10.0;
const SECTOR_BYTES: f64 = 512.0;

/// Text of files in /proc.
#[derive(Debug, Default)]
pub(super) struct MachineTexts {
    stat: String,
    vmstat: String,
    diskstats: String,
    pressure: [String; 3],
}

const PRESSURES: [&str; 3] = ["cpu", "io", "memory"];

impl MachineTexts {
    pub(super) fn now() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        Self {
            stat: read("/proc/stat"),
            vmstat: read("/proc/vmstat"),
            diskstats: read("/proc/diskstats"),
            pressure: PRESSURES.map(|name| read(&format!("/proc/pressure/{name}"))),
        }
    }

    pub(super) fn totals(&self, disk: Option<&Disk>) -> CounterValues {
        let mut totals = of_stat(&self.stat);
        totals.extend(of_vmstat(&self.vmstat));
        totals.extend(disk.iter().flat_map(|disk| of_disk(&self.diskstats, disk)));
        for (name, text) in PRESSURES.iter().zip(&self.pressure) {
            totals.extend(of_pressure(name, text));
        }
        totals
    }
}

/// Parses proc_stat(5): ticks of processors, events since boot.
fn of_stat(text: &str) -> CounterValues {
    let first = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key))?;
        line.split(' ').find(|word| !word.is_empty())?.parse().ok()
    };
    let mut totals: CounterValues = name_figures(
        "machine",
        [
            ("context_switches", first("ctxt ")),
            ("interrupts", first("intr ")),
            ("soft_interrupts", first("softirq ")),
            ("forks", first("processes ")),
        ],
    )
    .collect();
    let cpu = text.lines().find(|line| line.starts_with("cpu "));
    let ticks: Vec<f64> = cpu
        .into_iter()
        .flat_map(|line| line.split_whitespace().skip(1))
        .map_while(|word| word.parse().ok())
        .collect();
    let names = [
        "user_ms",
        "nice_ms",
        "system_ms",
        "idle_ms",
        "iowait_ms",
        "irq_ms",
        "softirq_ms",
        "steal_ms",
    ];
    for (name, ticks) in names.iter().zip(ticks) {
        totals.insert(format!("cpu.{name}"), ticks * TICK_MS);
    }
    totals
}

/// Parses the counters of /proc/vmstat about writeback, reading and reclaim.
fn of_vmstat(text: &str) -> CounterValues {
    let lines = || text.lines().filter_map(|line| line.split_once(' '));
    let number = |wanted: &str| {
        let (_, value) = lines().find(|(name, _)| *name == wanted)?;
        value.parse::<f64>().ok()
    };
    let sum = |prefix: &str| {
        let values = lines().filter(|(name, _)| name.starts_with(prefix));
        let numbers: Vec<f64> = values.filter_map(|(_, value)| value.parse().ok()).collect();
        (!numbers.is_empty()).then(|| numbers.iter().sum())
    };
    name_figures(
        "vm",
        [
            ("read_kib", number("pgpgin")),
            ("written_kib", number("pgpgout")),
            ("dirtied_pages", number("nr_dirtied")),
            ("written_back_pages", number("nr_written")),
            ("allocated_pages", sum("pgalloc_")),
            ("faults", number("pgfault")),
            ("major_faults", number("pgmajfault")),
            ("reclaimed_pages", sum("pgsteal_")),
            ("scanned_slabs", number("slabs_scanned")),
        ],
    )
    .collect()
}

/// Returns the fields of a device's line.
pub(super) fn disk_line(text: &str, major: u32, minor: u32) -> Option<impl Iterator<Item = &str>> {
    let numbers = [major.to_string(), minor.to_string()];
    let line = text.lines().find(|line| line.split_whitespace().take(2).eq(numbers.iter()))?;
    Some(line.split_whitespace())
}

fn of_disk(text: &str, disk: &Disk) -> CounterValues {
    let fields: Vec<f64> = disk_line(text, disk.major, disk.minor)
        .into_iter()
        .flat_map(|fields| fields.skip(3))
        .map_while(|word| word.parse().ok())
        .collect();
    let field = |number: usize| fields.get(number - 1).copied();
    let bytes = |number: usize| Some(field(number)? * SECTOR_BYTES);
    name_figures(
        "disk",
        [
            ("reads", field(1)),
            ("read_bytes", bytes(3)),
            ("read_ms", field(4)),
            ("writes", field(5)),
            ("merged_writes", field(6)),
            ("written_bytes", bytes(7)),
            ("write_ms", field(8)),
            ("busy_ms", field(10)),
            ("queued_ms", field(11)),
            ("discards", field(12)),
            ("flushes", field(16)),
            ("flush_ms", field(17)),
        ],
    )
    .collect()
}

/// Parses the time in which some or all tasks waited (PSI).
fn of_pressure(name: &str, text: &str) -> CounterValues {
    let total = |kind: &str| {
        let line = text.lines().find(|line| line.starts_with(kind))?;
        line.rsplit_once("total=")?.1.trim().parse().ok()
    };
    name_figures(
        "pressure",
        [
            (&*format!("{name}_some_us"), total("some ")),
            (&*format!("{name}_full_us"), total("full ")),
        ],
    )
    .collect()
}

/// Returns what ended child processes, and theirs, have used.
pub(super) fn used_by_children(usage: &ResourceUsage) -> CounterValues {
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let all = [
        ("user_ms", ms(usage.user)),
        ("system_ms", ms(usage.system)),
        ("minor_faults", usage.minor_faults as f64),
        ("major_faults", usage.major_faults as f64),
        ("voluntary_switches", usage.voluntary_switches as f64),
        ("involuntary_switches", usage.involuntary_switches as f64),
    ];
    let named = |(name, value): (&str, f64)| (format!("workload.{name}"), value);
    all.into_iter().map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_and_ticks() {
        let text = "cpu  100 0 50 200 7 0 0 10 7 7\ncpu0 1 2 3\nintr 90 1 2\nctxt 1234\nbtime 5\nprocesses 77\n\
                    softirq 40 1 2\n";
        let totals = of_stat(text);
        assert_eq!(totals["machine.context_switches"], 1234.0);
        assert_eq!(totals["machine.interrupts"], 90.0);
        assert_eq!(totals["machine.soft_interrupts"], 40.0);
        assert_eq!(totals["machine.forks"], 77.0);
        assert_eq!(totals["cpu.user_ms"], 1000.0);
        assert_eq!(totals["cpu.iowait_ms"], 70.0);
        assert_eq!(totals.len(), 12);
    }

    #[test]
    fn pages() {
        let text = "nr_dirtied 5\nnr_written 4\npgpgin 8\npgpgout 16\npgalloc_dma 1\npgalloc_normal 2\npgfault 6\n";
        let totals = of_vmstat(text);
        assert_eq!(totals["vm.allocated_pages"], 3.0);
        assert_eq!(totals["vm.written_kib"], 16.0);
        assert_eq!(totals["vm.dirtied_pages"], 5.0);
        assert!(!totals.contains_key("vm.reclaimed_pages"));
    }

    #[test]
    fn a_disk_by_its_numbers() {
        let text = "   7       1 loop1 9 9 9 9\n   7      11 loop11 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\n";
        let disk = Disk { major: 7, minor: 11, name: "loop11".to_owned() };
        let totals = of_disk(text, &disk);
        assert_eq!(totals["disk.reads"], 1.0);
        assert_eq!(totals["disk.read_bytes"], 3.0 * 512.0);
        assert_eq!(totals["disk.writes"], 5.0);
        assert_eq!(totals["disk.written_bytes"], 7.0 * 512.0);
        assert_eq!(totals["disk.busy_ms"], 10.0);
        assert_eq!(totals["disk.flushes"], 16.0);
        assert_eq!(totals["disk.flush_ms"], 17.0);
        // Old kernels have fewer fields.
        let other = Disk { minor: 1, ..disk };
        assert_eq!(of_disk(text, &other).len(), 3);
    }

    #[test]
    fn pressure() {
        let text = "some avg10=0.00 avg60=0.10 total=1234\nfull avg10=0.00 total=9\n";
        let totals = of_pressure("io", text);
        assert_eq!(totals["pressure.io_some_us"], 1234.0);
        assert_eq!(totals["pressure.io_full_us"], 9.0);
        assert!(of_pressure("io", "").is_empty());
    }
}
