//! Axes of a sweep, and names of points in graphs.

use luc_graphs::EstimatedValue;
use luc_stats::{MIN_REPEATS, MedianInterval};

use crate::{PointReport, SweepAxis, SweepReport};

/// Axes and their values, in the plan's order.
pub(super) struct PlanAxes(Vec<(SweepAxis, Vec<String>)>);

impl PlanAxes {
    pub(super) fn of(report: &SweepReport) -> Self {
        let mut axes: Vec<(SweepAxis, Vec<String>)> = Vec::new();
        for (axis, value) in report.points.iter().flat_map(|point| &point.axes) {
            match axes.iter_mut().find(|(name, _)| name == axis) {
                Some((_, values)) if values.contains(value) => {}
                Some((_, values)) => values.push(value.clone()),
                None => axes.push((*axis, vec![value.clone()])),
            }
        }
        Self(axes)
    }

    pub(super) fn values(&self, axis: SweepAxis) -> &[String] {
        let found = self.0.iter().find(|(known, _)| *known == axis);
        found.map_or(&[], |(_, values)| values)
    }

    /// Returns the axes with several values.
    pub(super) fn varied(&self) -> impl Iterator<Item = SweepAxis> + '_ {
        let several = self.0.iter().filter(|(_, values)| values.len() > 1);
        several.map(|(axis, _)| *axis)
    }

    /// Returns axes in which none of `points` differ: names without them tell them apart.
    pub(super) fn common(&self, points: &[&PointReport]) -> Vec<SweepAxis> {
        let is_common = |axis: &SweepAxis| {
            let mut values = points.iter().map(|point| point.value(*axis));
            let first = values.next();
            values.all(|value| Some(value) == first)
        };
        self.varied().filter(is_common).collect()
    }

    /// Returns a point's values of the axes with several, except those in `except`.
    pub(super) fn name(&self, point: &PointReport, except: &[SweepAxis]) -> String {
        let words: Vec<String> = self
            .varied()
            .filter(|axis| !except.contains(axis))
            .map(|axis| value_name(axis, point.value(axis)))
            .collect();
        if words.is_empty() {
            return "all".to_owned();
        }
        words.join(", ")
    }
}

/// Returns `8 threads`, `ext4`, `policy auto`.
pub(super) fn value_name(axis: SweepAxis, value: &str) -> String {
    match axis {
        SweepAxis::Threads if value == "1" => "1 thread".to_owned(),
        SweepAxis::Threads => format!("{value} threads"),
        SweepAxis::Target | SweepAxis::Workload | SweepAxis::Frequency => value.to_owned(),
        SweepAxis::Mips => format!("{value} MIPS"),
        SweepAxis::Processors if value == "1" => "1 processor".to_owned(),
        SweepAxis::Processors => format!("{value} processors"),
        SweepAxis::Policy | SweepAxis::Scheduler | SweepAxis::Option(_) => {
            format!("{axis} {value}")
        }
    }
}

/// Returns the number that a value of an axis is; frequencies in GHz.
pub(super) fn number(value: &str) -> Option<f64> {
    let end = value.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(value.len());
    let (digits, unit) = value.split_at(end);
    let factor = match unit {
        "" | "GHz" => 1.0,
        "MHz" => 1e-3,
        "kHz" => 1e-6,
        "k" => 1024.0,
        "m" | "M" => 1024.0 * 1024.0,
        _ => return None,
    };
    Some(digits.parse::<f64>().ok()? * factor)
}

/// Returns the meaning of a figure's bounds: few repeats in virtual time have a range and no interval.
pub(super) fn spread(report: &SweepReport) -> &'static str {
    match &report.plan.virtual_time {
        Some(_) if report.plan.stop.best => "95 % interval, or range of few",
        Some(guests) if guests.repeats < MIN_REPEATS => "range",
        _ => "95 % interval",
    }
}

/// Returns whether the unit is a time, so that less is better.
pub(super) fn is_time(unit: &str) -> bool {
    ["s", "ms", "us", "ns", "seconds"].contains(&unit)
}

pub(super) fn estimate(interval: &MedianInterval) -> EstimatedValue {
    EstimatedValue { value: interval.median, interval: Some((interval.low, interval.high)) }
}

/// Converts a ratio of figures to a speedup.
pub(super) fn speedup(ratio: &MedianInterval, unit: &str) -> EstimatedValue {
    if !is_time(unit) {
        return estimate(ratio);
    }
    EstimatedValue {
        value: 1.0 / ratio.median,
        interval: Some((1.0 / ratio.high, 1.0 / ratio.low)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_values() {
        assert_eq!(number("8"), Some(8.0));
        assert_eq!(number("2.4GHz"), Some(2.4));
        assert_eq!(number("800MHz"), Some(0.8));
        assert_eq!(number("64k"), Some(65536.0));
        for value in ["as-is", "throttle:50%(not-a-frequency)", "", "ext4", "1.2.3"] {
            assert_eq!(number(value), None, "{value}");
        }
    }

    #[test]
    fn a_shorter_time_is_a_speedup() {
        let half = MedianInterval { median: 0.5, low: 0.4, high: 0.8 };
        assert_eq!(speedup(&half, "files/s"), estimate(&half));
        let faster = speedup(&half, "s");
        assert_eq!((faster.value, faster.interval), (2.0, Some((1.25, 2.5))));
    }
}
