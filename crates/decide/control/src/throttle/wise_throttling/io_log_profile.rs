//! The static module: describes a task from its I/O log before it runs.

/// Initial description of a task (WiseThrottling, section 4.2.2 and Fig. 16a).
#[derive(Clone, Debug, PartialEq)]
pub struct IoLogProfile {
    /// Number of check intervals between two inspections of the task, at least 1.
    pub dtimeslice: u64,
    /// Mean demand of each scan phase (a run of busy seconds), bytes per second.
    pub scans_bytes_per_s: Vec<f64>,
    /// Length of each skip phase (a run of idle seconds), seconds.
    pub skips_s: Vec<u64>,
}

/// Takes the bytes that a task moved alone in each second. A second is busy if they exceed `busy_bytes_per_s`
/// (IO_BUSY_THRESHOLD). `dtimeslice` is the mean demand of the scan phases over that threshold (eq. 2).
///
/// Two bugs of Fig. 16a are not copied. A phase that is open at the end of the log counts. Each phase has its own entry
/// from its first second on.
#[must_use]
pub fn profile(log_bytes_per_s: &[u64], busy_bytes_per_s: u64) -> IoLogProfile {
    let is_busy = |bytes: &u64| *bytes > busy_bytes_per_s;
    let phases = log_bytes_per_s.chunk_by(|a, b| is_busy(a) == is_busy(b));
    let (mut scans_bytes_per_s, mut skips_s) = (Vec::new(), Vec::new());
    for phase in phases {
        if phase.first().is_some_and(is_busy) {
            scans_bytes_per_s.push(mean(phase.iter().map(|bytes| *bytes as f64)));
        } else {
            skips_s.push(phase.len() as u64);
        }
    }
    let mean_scan = mean(scans_bytes_per_s.iter().copied());
    let dtimeslice = (mean_scan / busy_bytes_per_s.max(1) as f64) as u64;
    IoLogProfile { dtimeslice: dtimeslice.max(1), scans_bytes_per_s, skips_s }
}

/// Mean of the values; 0 if there are none.
fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len().max(1) as f64;
    values.sum::<f64>() / count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_are_runs_of_busy_and_idle_seconds() {
        let profile = profile(&[30, 50, 0, 5, 0, 80], 10);
        assert_eq!(profile.scans_bytes_per_s, [40.0, 80.0], "the last phase is open, and counts");
        assert_eq!(profile.skips_s, [3]);
        assert_eq!(profile.dtimeslice, 6, "(40 + 80) / 2 / 10");
    }

    #[test]
    fn an_idle_task_is_inspected_at_each_interval() {
        let profile = profile(&[0, 10, 3], 10);
        assert_eq!(profile.dtimeslice, 1, "10 is not above the threshold");
        assert!(profile.scans_bytes_per_s.is_empty());
        assert_eq!(super::profile(&[], 10).dtimeslice, 1);
    }
}
