//! Speeds of a guest's processor, and the stretching of times that follows.

/// Stretching of times in a guest, in thousandths: a processor that stands for a faster one has slower disks and
/// timers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimeScale {
    pub(crate) permille: u64,
}

impl TimeScale {
    pub(crate) const NONE: Self = Self { permille: 1000 };

    /// Stretches a time, in any unit.
    pub(crate) fn apply(self, time: u64) -> u64 {
        time.saturating_mul(self.permille) / 1000
    }
}

/// A speed of a guest's processor. An instruction takes 2^`shift` ns. All other times (disk, module, scheduler,
/// workload) are stretched by `scale`.
///
/// All speeds of a sweep have the same shift, since figures could jump between two shifts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GuestSpeed {
    pub(crate) shift: u32,
    pub(crate) scale: TimeScale,
}

impl GuestSpeed {
    /// Returns a speed of `mips` where the slowest one is `least_mips`: the largest shift at which that one makes no
    /// time shorter than it is.
    pub(crate) fn new(least_mips: u64, mips: u64) -> Self {
        let shift = (0..10).find(|shift| 1000 >> shift <= least_mips).unwrap_or(10);
        Self::of_instruction(1 << shift, mips)
    }

    /// Returns a speed of `mips` in a guest whose instruction takes `ns`, a power of two.
    pub(crate) fn of_instruction(ns: u64, mips: u64) -> Self {
        let shift = ns.trailing_zeros();
        Self { shift, scale: TimeScale { permille: mips << shift } }
    }

    /// Scales a rate that the guest saw to this speed.
    pub(crate) fn scale_rate(self, rate: f64) -> f64 {
        rate * self.scale.permille as f64 / 1000.0
    }

    /// Scales a time that the guest saw to this speed.
    pub(crate) fn scale_time(self, time: f64) -> f64 {
        time * 1000.0 / self.scale.permille as f64
    }

    /// Converts a figure in `unit` to this speed. Units that are neither rates nor times stay unchanged.
    pub(crate) fn scale_figure(self, figure: f64, unit: &str) -> f64 {
        match unit {
            "ns" | "us" | "ms" | "s" => self.scale_time(figure),
            unit if unit.ends_with("/s") => self.scale_rate(figure),
            _ => figure,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_shift_for_all_speeds() {
        for (least_mips, mips, shift, permille) in [
            (1000, 1000, 0, 1000),
            (1000, 2060, 0, 2060),
            (600, 600, 1, 1200),
            (600, 1200, 1, 2400),
            (2000, 3000, 0, 3000),
        ] {
            let speed = GuestSpeed::new(least_mips, mips);
            assert_eq!((speed.shift, speed.scale.permille), (shift, permille));
        }
        // An instruction of 1 ns makes a slow processor's other times shorter.
        let slow = GuestSpeed::of_instruction(1, 500);
        assert_eq!((slow.shift, slow.scale.permille), (0, 500));
    }

    #[test]
    fn a_faster_processor_sees_a_slower_disk() {
        let speed = GuestSpeed::new(1000, 1500);
        assert_eq!(speed.scale.apply(6000), 9000);
        assert!((speed.scale_figure(100.0, "files/s") - 150.0).abs() < 1e-9);
        assert!((speed.scale_figure(150.0, "us") - 100.0).abs() < 1e-9);
        assert!((speed.scale_figure(7.0, "commits") - 7.0).abs() < 1e-9);
    }
}
