//! Results of a sweep: medians with intervals, ratios to the first value of each axis, and unfinished points.

mod disturbances;
mod energy;
mod files;

use std::collections::{BTreeSet, HashMap};
use std::fmt;

use luc_power::energy::EnergyProvenance;
use luc_stats::{
    MIN_REPEATS, MedianInterval, StoppingVerdict, median, paired_ratios, relative_half_width,
};
use serde::Serialize;

pub use energy::PointEnergy;

use super::axis::SweepAxis;
use super::best_selection::{self, ComparedPoints};
use super::figure_correlations::{FigureCorrelations, explain};
use super::plan::{SweepPlan, VirtualTime};
use super::repeat_schedule::RepeatSchedule;
use super::results_journal::{PointFailure, RecordedResults, RepeatRecord};
use super::sweep_points::SweepPoint;
use luc_units::number_formats::FourDigits;

/// Report of a sweep: its plan, points, groups and repeats.
#[derive(Debug, Serialize)]
pub struct SweepReport {
    pub plan: SweepPlan,
    /// Source of the energy figures, or the reason why there are none.
    pub energy: EnergyProvenance,
    /// Whether it was interrupted; the same command goes on.
    pub interrupted: bool,
    pub points: Vec<PointReport>,
    /// Selections, if only the best is wanted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<ComparedPoints>,
    /// Points that could not be measured, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<PointFailure>,
    pub explanations: Vec<FigureCorrelations>,
    /// Every repeat, in the order made.
    pub repeats: Vec<RepeatRecord>,
    #[serde(skip)]
    axes: Vec<SweepAxis>,
}

#[derive(Debug, Serialize)]
pub struct PointReport {
    /// Values of its axes, joined as its name.
    pub key: String,
    /// The axes and its values.
    #[serde(skip)]
    pub axes: Vec<(SweepAxis, String)>,
    pub unit: String,
    pub count: usize,
    /// Median and 95 % interval; `None` of fewer than 6 repeats.
    pub interval: Option<MedianInterval>,
    /// Median and range of repeats in virtual time, where those are too few for an interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<MedianInterval>,
    /// Half of the interval over the median.
    pub relative_half_width: Option<f64>,
    /// Whether the point is finished, and within the goal.
    pub verdict: StoppingVerdict,
    /// Against the same point with the first value of each axis.
    pub ratios: Vec<PointRatio>,
    /// Energy of its repeats; `None` if it was never measured.
    pub energy: Option<PointEnergy>,
}

/// Paired ratios of two points.
#[derive(Debug, Serialize)]
pub struct PointRatio {
    /// The axis in which they differ.
    pub axis: SweepAxis,
    /// First value of that axis.
    pub to: String,
    /// Pairs: rounds that both have.
    pub pairs: usize,
    /// Median of the ratios and its 95 % interval; of few pairs in virtual time their range.
    pub interval: MedianInterval,
}

pub(super) fn report(
    plan: &SweepPlan,
    points: &[SweepPoint],
    results: RecordedResults,
    energy: EnergyProvenance,
    interrupted: bool,
) -> SweepReport {
    // 1. Values and verdict of each point.
    let RecordedResults { records, failures } = results;
    let records = records.as_slice();
    let verdicts = RepeatSchedule::new(plan, points, records, &failures).verdicts();
    let mut values: HashMap<&str, Vec<f64>> = HashMap::new();
    for record in records {
        values.entry(&record.key).or_default().push(record.value);
    }
    let of = |key: &str| values.get(key).map(Vec::as_slice).unwrap_or_default();
    // 2. Each point's report, with ratios to the first value of each axis.
    let first = points.first().map(SweepPoint::axes);
    // A workload may have lists of its own in place of the plan's.
    let mut first_of: HashMap<&str, Vec<(SweepAxis, String)>> = HashMap::new();
    for point in points {
        first_of.entry(&point.workload.name).or_insert_with(|| point.axes());
    }
    let in_virtual_time = plan.virtual_time.is_some();
    let range_of = |values: &[f64]| range(values).filter(|_| in_virtual_time);
    let point = |(point, verdict): (&SweepPoint, StoppingVerdict)| {
        let key = point.key();
        let goal = plan.goal_of(&point.workload);
        let interval = goal.interval(of(&key));
        let axes = point.axes();
        let ratio = |at: usize| {
            let (axis, to) = first_of.get(&*point.workload.name)?[at].clone();
            let mut other: Vec<String> = axes.iter().map(|(_, value)| value.clone()).collect();
            if other[at] == to {
                return None;
            }
            other[at].clone_from(&to);
            let ratios = paired_ratios(of(&key), of(&other.join(","))).ok()?;
            Some(PointRatio {
                axis,
                to,
                pairs: ratios.len(),
                interval: goal.interval(&ratios).or_else(|| range_of(&ratios))?,
            })
        };
        PointReport {
            unit: point.unit().to_owned(),
            count: of(&key).len(),
            relative_half_width: interval.as_ref().and_then(relative_half_width),
            verdict,
            // Ratios of different workloads would compare different figures.
            ratios: (1..axes.len()).filter_map(ratio).collect(),
            range: range_of(of(&key)).filter(|_| interval.is_none()),
            interval,
            energy: energy::of_point(point, records, &key, &goal),
            axes,
            key,
        }
    };
    SweepReport {
        plan: plan.clone(),
        energy,
        axes: first.iter().flatten().map(|(axis, _)| *axis).collect(),
        interrupted,
        points: points.iter().zip(verdicts).map(point).collect(),
        groups: if plan.stop.best {
            best_selection::select_all(&plan.goal(), points, records)
        } else {
            Vec::new()
        },
        explanations: explain(points, records, plan.seed),
        repeats: records.to_vec(),
        failures,
    }
}

/// Returns median, least and greatest value.
fn range(values: &[f64]) -> Option<MedianInterval> {
    Some(MedianInterval {
        median: median(values)?,
        low: values.iter().copied().reduce(f64::min)?,
        high: values.iter().copied().reduce(f64::max)?,
    })
}

impl PointReport {
    /// Returns its value of an axis; empty if the sweep does not have that axis.
    #[must_use]
    pub fn value(&self, axis: SweepAxis) -> &str {
        let found = self.axes.iter().find(|(known, _)| *known == axis);
        found.map_or("", |(_, value)| value)
    }
}

impl SweepReport {
    /// Returns the axes, in the order in which a point's key has its values.
    #[must_use]
    pub fn axes(&self) -> &[SweepAxis] {
        &self.axes
    }

    /// Returns the point of a repeat's key.
    #[must_use]
    pub fn point(&self, key: &str) -> Option<&PointReport> {
        self.points.iter().find(|point| point.key == key)
    }

    /// Returns the repeats of a point, in the order made.
    pub fn repeats_of(&self, point: &PointReport) -> impl Iterator<Item = &RepeatRecord> {
        let repeats = self.repeats.iter();
        repeats.filter(|repeat| repeat.key == point.key)
    }

    /// Returns whether repeats are still to be made.
    #[must_use]
    pub fn wants_more(&self) -> bool {
        let wants = |point: &PointReport| matches!(point.verdict, StoppingVerdict::More(_));
        self.points.iter().any(wants)
    }

    /// Counts points whose interval is wider than the goal, with all repeats made.
    #[must_use]
    pub fn not_converged(&self) -> usize {
        if self.plan.virtual_time.is_some() {
            // Their number of repeats is fixed.
            return 0;
        }
        let is_wide = |point: &&PointReport| point.verdict == StoppingVerdict::NotConverged;
        self.points.iter().filter(is_wide).count()
    }

    /// Returns whether a power cut on a target may cost more than the program itself risks.
    #[must_use]
    pub fn is_unsafe(&self, target: &str) -> bool {
        let mut targets = self.plan.target.iter();
        targets.any(|known| known.name == target && known.danger().is_some())
    }

    /// Counts points that still lack repeats.
    #[must_use]
    pub fn unfinished(&self) -> usize {
        let is_open = |point: &&PointReport| matches!(point.verdict, StoppingVerdict::More(_));
        self.points.iter().filter(is_open).count()
    }

    /// Names the QEMUs of the guests, as in ` by QEMU 7.2.22 (Debian 1:7.2), one processor`.
    fn by_qemu(&self) -> String {
        let of_repeat = |repeat: &'_ RepeatRecord| repeat.environment.qemu.clone();
        let qemus: BTreeSet<String> = self.repeats.iter().filter_map(of_repeat).collect();
        let named: Vec<String> = qemus.into_iter().collect();
        match named.as_slice() {
            [] => String::new(),
            named => format!(" by {}", named.join("; ")),
        }
    }

    /// Returns notes on all points, one per line: dangers, meaning of the throttle, source of energy.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        struct Notes<'a>(&'a SweepReport);
        impl fmt::Display for Notes<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.write_notes(f)
            }
        }
        Notes(self).to_string().lines().map(str::to_owned).collect()
    }

    fn write_notes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.plan.throttles() {
            writeln!(
                f,
                "a throttle is not a frequency but a quota of processor time (cgroup): caches, memory and devices stay \
                 as fast as they are"
            )?;
        }
        for target in &self.plan.target {
            if let Some(danger) = target.danger() {
                writeln!(f, "target '{}' is UNSAFE: {danger}", target.name)?;
            }
        }
        disturbances::write(f, self)?;
        energy::write_about(f, &self.energy, &self.repeats)
    }

    fn write_explanations(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for explanation in &self.explanations {
            let strongest = explanation.strongest(3);
            if strongest.is_empty() {
                continue;
            }
            let shown: Vec<String> = strongest
                .iter()
                .map(|(name, correlation)| format!("{name} {correlation:+.2}"))
                .collect();
            writeln!(
                f,
                "{} is correlated with {} (by ranks, {} repeats)",
                explanation.workload,
                shown.join(", "),
                explanation.repeats
            )?;
        }
        Ok(())
    }

    fn write_point(&self, f: &mut fmt::Formatter<'_>, point: &PointReport) -> fmt::Result {
        let PointReport { key, unit, count, .. } = point;
        let Some(MedianInterval { median, low, high }) = point.interval.or(point.range) else {
            return match self.failures.iter().find(|failure| failure.key == *key) {
                Some(failure) => writeln!(f, "{key}: not measured: {}", failure.failed),
                None => writeln!(f, "{key}: {count} repeats, too few for an interval"),
            };
        };
        let [median, low, high] = [median, low, high].map(FourDigits);
        write!(f, "{key}: {median} {unit} ({low} to {high}), ")?;
        if self.plan.virtual_time.is_some() {
            writeln!(f, "{count} repeats")?;
            return write_ratios(f, &point.ratios);
        }
        let width = point.relative_half_width.unwrap_or(f64::NAN) * 100.0;
        write!(f, "+-{width:.1} %, {count} repeats")?;
        match point.verdict {
            StoppingVerdict::Converged | StoppingVerdict::Failed => writeln!(f)?,
            StoppingVerdict::Worse => writeln!(f, ", given up: worse than the best")?,
            StoppingVerdict::NotConverged => writeln!(f, "  ** NOT CONVERGED **")?,
            StoppingVerdict::More(wanted) => writeln!(f, ", unfinished: {wanted} wanted")?,
        }
        write_ratios(f, &point.ratios)?;
        if self.energy.source.is_some() {
            writeln!(f, "    energy: {}", energy::EnergyLine(point.energy.as_ref()))?;
        }
        Ok(())
    }
}

impl fmt::Display for SweepReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let goal = self.plan.stop.goal * 100.0;
        let (points, repeats) = (self.points.len(), self.repeats.len());
        match &self.plan.virtual_time {
            None => writeln!(
                f,
                "{points} points, {repeats} repeats; medians with 95 % intervals, goal +-{goal:.1} %"
            )?,
            Some(VirtualTime { kernel, .. }) => writeln!(
                f,
                "{points} points, {repeats} repeats in virtual time on Linux {kernel}{}, each with a seed of its own; \
                 medians with 95 % intervals, of fewer than {MIN_REPEATS} repeats with their range",
                self.by_qemu()
            )?,
        }
        self.points.iter().try_for_each(|point| self.write_point(f, point))?;
        for ComparedPoints { group, unit, selection, .. } in &self.groups {
            if let Some(selection) = selection {
                write!(f, "{group}: {}", selection.text(unit))?;
            }
        }
        self.write_explanations(f)?;
        self.write_notes(f)?;
        match self.not_converged() {
            0 => Ok(()),
            count => writeln!(
                f,
                "** {count} of {} points NOT CONVERGED: their intervals are wider than the goal; raise stop.max, or \
                 run the workload longer **",
                self.points.len()
            ),
        }
    }
}

fn write_ratios(f: &mut fmt::Formatter<'_>, ratios: &[PointRatio]) -> fmt::Result {
    for PointRatio { axis, to, pairs, interval } in ratios {
        let MedianInterval { median, low, high } = interval;
        writeln!(f, "    {median:.3} ({low:.3} to {high:.3}) x {axis} {to}, {pairs} pairs")?;
    }
    Ok(())
}
