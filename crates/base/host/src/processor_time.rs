//! The processors' time, and the share of it that the hypervisor took.

use std::fs;

/// Clock ticks per second in /proc, on every architecture that LUC runs on.
const USER_HZ: f64 = 100.0;

/// The processors' time so far, in clock ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessorTicks {
    all: u64,
    stolen: u64,
}

impl ProcessorTicks {
    /// Reads the current times; zeros where /proc/stat cannot be read.
    #[must_use]
    pub fn now() -> Self {
        Self::parse(&fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    /// Parses the first line of /proc/stat: `cpu user nice system idle iowait irq softirq steal ...`. The numbers
    /// behind these are contained in them.
    fn parse(stat: &str) -> Self {
        let line = stat.lines().next().unwrap_or_default();
        let ticks: Vec<u64> =
            line.split_whitespace().skip(1).take(8).map_while(|word| word.parse().ok()).collect();
        Self { all: ticks.iter().sum(), stolen: ticks.get(7).copied().unwrap_or(0) }
    }

    /// The share that was stolen since then; 0 if no time has passed.
    #[must_use]
    pub fn stolen_share_since(self, before: Self) -> f64 {
        let all = self.all.saturating_sub(before.all);
        let stolen = self.stolen.saturating_sub(before.stolen);
        if all == 0 { 0.0 } else { stolen as f64 / all as f64 }
    }
}

/// Returns the processor time of this process and of its children that have ended, in seconds. The kernel counts it
/// in clock ticks of 10 ms. `None` if /proc/self/stat cannot be read.
#[must_use]
pub fn spent_s() -> Option<f64> {
    spent_in_s("/proc/self/stat")
}

/// Returns the processor time of another process and of its children that have ended, in seconds. `None` if it is
/// gone.
#[must_use]
pub fn spent_by_s(process: u32) -> Option<f64> {
    spent_in_s(&format!("/proc/{process}/stat"))
}

fn spent_in_s(stat: &str) -> Option<f64> {
    let ticks = spent_ticks(&fs::read_to_string(stat).ok()?)?;
    Some(ticks as f64 / USER_HZ)
}

/// Sum of utime, stime, cutime and cstime of /proc/PID/stat: fields 14 to 17. The second field may have spaces.
fn spent_ticks(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let fields = rest.split_whitespace().skip(11).take(4);
    fields.map(|word| word.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_stolen_time() {
        let before = ProcessorTicks::parse("cpu  100 0 100 200 0 0 0 10 7 7\ncpu0 1 2 3\n");
        let after = ProcessorTicks::parse("cpu  150 0 100 240 0 0 0 20 9 9\n");
        assert!((after.stolen_share_since(before) - 0.1).abs() < 1e-12);
        assert_eq!(after.stolen_share_since(after), 0.0);
    }

    #[test]
    fn the_time_of_a_process_and_its_children() {
        let stat = "7 (a ) b) S 1 7 7 0 -1 4194304 99 0 0 0 11 22 33 44 20 0 1 0 5";
        assert_eq!(spent_ticks(stat), Some(110));
        assert_eq!(spent_ticks("7 (a) S 1"), Some(0));
        assert!(spent_s().is_some());
        assert!(spent_by_s(std::process::id()).is_some());
        assert_eq!(spent_by_s(u32::MAX), None);
    }

    #[test]
    fn no_proc_is_no_theft() {
        assert_eq!(ProcessorTicks::parse("").stolen_share_since(ProcessorTicks::parse("")), 0.0);
    }
}
