//! A processor's speed in a guest.

use super::super::options::Stretch;
use super::super::plan::Plan;

/// A speed: an instruction takes 2^`shift` ns, and all that is not instructions (the disk, the module's, the
/// scheduler's and the workload's times) takes `stretch` of its time. A sweep has one shift for all of its speeds, so
/// that nothing jumps where two ways of being fast would meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Speed {
    pub(crate) shift: u32,
    pub(crate) stretch: Stretch,
}

impl Speed {
    /// The largest shift at which the slowest speed of the plan stretches nothing below its own time.
    pub(crate) fn of(plan: &Plan, mips: u64) -> Self {
        let of_workloads = plan.workload.iter().filter_map(|load| load.mips.as_ref());
        let of_plan = plan.virtual_time.iter().map(|time| &time.mips);
        let least = of_plan.chain(of_workloads).flatten().min();
        let least = *least.unwrap_or(&mips);
        let shift = (0..10).find(|shift| 1000 >> shift <= least).unwrap_or(10);
        Self {
            shift,
            stretch: Stretch {
                permille: mips << shift,
            },
        }
    }

    /// A rate that the guest saw, at this speed.
    pub(super) fn scale_rate(self, rate: f64) -> f64 {
        rate * self.stretch.permille as f64 / 1000.0
    }

    /// A time that the guest saw, at this speed.
    pub(super) fn scale_time(self, time: f64) -> f64 {
        time * 1000.0 / self.stretch.permille as f64
    }

    /// A figure counted in `unit`, at this speed; what is neither a rate nor a time is the same at all.
    pub(super) fn scale(self, figure: f64, unit: &str) -> f64 {
        match unit {
            "ns" | "us" | "ms" | "s" => self.scale_time(figure),
            unit if unit.ends_with("/s") => self.scale_rate(figure),
            _ => figure,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn speed(speeds: &str, mips: u64) -> Speed {
        let text = format!(
            "[virtual]\nmips = [{speeds}]\n[[workload]]\nname = 'w'\nbench = 'metarates'\n\
             [[target]]\nname = 't'\nfs = 'ext4'"
        );
        let plan = Plan::parse(&text, Path::new("p.toml")).expect("fine");
        Speed::of(&plan, mips)
    }

    #[test]
    fn one_shift_for_all_speeds() {
        for (speeds, mips, shift, permille) in [
            ("1000, 2060", 1000, 0, 1000),
            ("1000, 2060", 2060, 0, 2060),
            ("600, 1200", 600, 1, 1200),
            ("600, 1200", 1200, 1, 2400),
            ("2000, 3000", 3000, 0, 3000),
        ] {
            let speed = speed(speeds, mips);
            assert_eq!((speed.shift, speed.stretch.permille), (shift, permille));
        }
    }

    #[test]
    fn a_faster_processor_sees_a_slower_disk() {
        let speed = speed("1000, 1500", 1500);
        assert_eq!(speed.stretch.stretch(6000), 9000);
        assert!((speed.scale(100.0, "files/s") - 150.0).abs() < 1e-9);
        assert!((speed.scale(150.0, "us") - 100.0).abs() < 1e-9);
        assert!((speed.scale(7.0, "commits") - 7.0).abs() < 1e-9);
    }
}
