//! Axes along which the points of a sweep differ.

use std::fmt;

use serde::{Serialize, Serializer};

/// An axis; results and reports call it by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SweepAxis {
    Workload,
    Threads,
    Target,
    /// Under the gate, under the module, or without either.
    Policy,
    /// Name, without dashes, of an option of `luc bench` that has a list of values.
    Option(&'static str),
    /// The disk's I/O scheduler.
    Scheduler,
    Frequency,
    /// The speed in virtual time, millions of instructions per second.
    Mips,
    /// Number of a guest's processors.
    Processors,
}

impl SweepAxis {
    /// Returns its name in the plan and in the columns of the results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Workload => "workload",
            Self::Threads => "threads",
            Self::Target => "target",
            Self::Policy => "policy",
            Self::Option(name) => name,
            Self::Scheduler => "scheduler",
            Self::Frequency => "frequency",
            Self::Mips => "mips",
            Self::Processors => "processors",
        }
    }
}

impl fmt::Display for SweepAxis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for SweepAxis {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use luc_power::energy::EnergyProvenance;

    use super::*;
    use crate::report::report;
    use crate::results_journal::RecordedResults;
    use crate::sweep_points::points;
    use crate::test_plan::{plan, record};

    #[test]
    fn a_repeat_s_key_is_a_point_with_its_axes() {
        let plan = plan();
        let records = vec![record("w,8,b,off", 0, 5.0), record("w,1,a,off", 0, 6.0)];
        let results = RecordedResults { records, failures: Vec::new() };
        let report = report(&plan, &points(&plan), results, EnergyProvenance::default(), false);
        let axes = [SweepAxis::Workload, SweepAxis::Threads, SweepAxis::Target, SweepAxis::Policy];
        assert_eq!(report.axes(), axes);
        let point = report.point(&report.repeats[0].key).expect("there");
        assert_eq!(axes.map(|axis| point.value(axis)), ["w", "8", "b", "off"]);
        assert_eq!(point.value(SweepAxis::Mips), "");
        let values: Vec<f64> = report.repeats_of(point).map(|one| one.value).collect();
        assert_eq!(values, [5.0]);
        assert!(report.point("w,2,a,off").is_none());
    }
}
