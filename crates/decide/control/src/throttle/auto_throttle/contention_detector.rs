//! Detects whether a disk is contended. Without contention the policy does nothing.

/// Time for which a disk must be busy and wanted before it counts as contended, ns.
const MIN_CONTENDED_NS: u64 = 40_000_000;
/// Shortest window over which utilization is measured, ns.
const MIN_WINDOW_NS: u64 = 20_000_000;
/// Utilization above which a disk may be contended.
const MIN_CONTENDED_UTILIZATION: f64 = 0.9;

/// State of the detector. A disk is contended if it is nearly always busy while at least two tasks want it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ContentionDetector {
    window_ns: u64,
    busy_ns: u64,
    last_busy_ns: u64,
    /// Utilization, smoothed over about a second.
    pub(super) busy: f64,
    /// Time for which the disk has been contended, ns.
    contended_ns: u64,
}

impl ContentionDetector {
    /// Takes the disk's busy time so far and the number of tasks that compete for it.
    pub(super) fn look(&mut self, disk_busy_ns: u64, waiting: usize, elapsed_ns: u64) {
        if elapsed_ns > 0 {
            self.busy_ns += disk_busy_ns.saturating_sub(self.last_busy_ns);
        }
        self.last_busy_ns = disk_busy_ns;
        self.window_ns += elapsed_ns;
        if self.window_ns < MIN_WINDOW_NS {
            return;
        }
        let busy = (self.busy_ns as f64 / self.window_ns as f64).min(1.0);
        self.busy += (busy - self.busy) * (self.window_ns as f64 / 1e9).min(1.0);
        if busy > MIN_CONTENDED_UTILIZATION && waiting >= 2 {
            self.contended_ns += self.window_ns;
        } else {
            self.contended_ns = 0;
        }
        (self.window_ns, self.busy_ns) = (0, 0);
    }

    /// Whether contention has lasted long enough.
    pub(super) fn is_contended(&self) -> bool {
        self.contended_ns >= MIN_CONTENDED_NS
    }
}
