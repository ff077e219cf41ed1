//! Whether there is anything to do at all: is the disk contended?

/// A disk is contended when it was so for this long, ns.
const CONTENDED_NS: u64 = 40_000_000;
/// The disk's busy time is judged over at least this long, ns.
const BUSY_WINDOW_NS: u64 = 20_000_000;
/// A disk is busy enough to be contended above this part of the time.
const CONTENDED_BUSY: f64 = 0.9;

/// Whether the disk is contended: busy nearly all the time, while at least two tasks want it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Contention {
    window_ns: u64,
    busy_ns: u64,
    last_busy_ns: u64,
    /// Busy part of the time, smoothed over about a second.
    pub(super) busy: f64,
    /// For how long it has been contended, ns.
    contended_ns: u64,
}

impl Contention {
    /// Takes the disk's busy time so far and the number of tasks that compete for it.
    pub(super) fn look(&mut self, disk_busy_ns: u64, waiting: usize, elapsed_ns: u64) {
        if elapsed_ns > 0 {
            self.busy_ns += disk_busy_ns.saturating_sub(self.last_busy_ns);
        }
        self.last_busy_ns = disk_busy_ns;
        self.window_ns += elapsed_ns;
        if self.window_ns < BUSY_WINDOW_NS {
            return;
        }
        let busy = (self.busy_ns as f64 / self.window_ns as f64).min(1.0);
        self.busy += (busy - self.busy) * (self.window_ns as f64 / 1e9).min(1.0);
        if busy > CONTENDED_BUSY && waiting >= 2 {
            self.contended_ns += self.window_ns;
        } else {
            self.contended_ns = 0;
        }
        (self.window_ns, self.busy_ns) = (0, 0);
    }

    /// Whether it has been contended for long enough.
    pub(super) fn is_contended(&self) -> bool {
        self.contended_ns >= CONTENDED_NS
    }
}
