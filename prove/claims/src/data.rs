//! Raw data of a page: figures of each repeat, by the axes of its point.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use luc_sweep::{DiscardedRepeat, RepeatRecord, SweepReport};
use luc_units::OnPath as _;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ClaimsError;
use super::claims::Claims;
use super::figures;
use super::series::{Selection, Series};

/// Figures of a sweep that are kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Data {
    pub part: String,
    /// Target of `make` that makes the page.
    pub made_by: String,
    /// Description of the machine and the program.
    pub machine: Value,
    /// Kernels on which the points ran.
    pub kernel: Vec<String>,
    /// QEMUs of the guests and how they ran the processors; none where the points ran on this machine itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub qemu: Vec<String>,
    /// Names of the axes, in the order of each point's values.
    pub axes: Vec<String>,
    /// Number of points that still lacked repeats.
    #[serde(default)]
    pub unfinished: usize,
    /// Number of repeats that were made again, since the hypervisor took too much time.
    #[serde(default)]
    pub disturbed: usize,
    pub points: Vec<Point>,
    /// Measurements of some workloads at another time than the rest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub later: Vec<Later>,
    /// Further measurements beside the sweep.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<Value>,
}

/// Measurement of some workloads alone, whose points stand in place of earlier ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Later {
    pub workloads: Vec<String>,
    /// Description of the machine and the program.
    pub machine: Value,
}

/// Repeats of a point. A figure has a value for each round, or none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Value of each axis.
    pub point: Vec<String>,
    /// Rounds in which it was repeated.
    pub rounds: Vec<usize>,
    /// Values of each figure, in the order of the rounds.
    pub figures: BTreeMap<String, Vec<Option<f64>>>,
    /// Circumstances of each repeat, in the order of the rounds; older data have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repeats: Vec<Circumstances>,
}

/// The machine during a repeat, and attempts at it that did not count.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Circumstances {
    /// Start, seconds since 1970.
    pub started_unix_s: u64,
    /// Load average of the last minute, at the end.
    pub load: f64,
    /// Share of the processors' time that the hypervisor took.
    pub stolen_share: f64,
    /// Attempts before it that the hypervisor disturbed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub discarded: Vec<DiscardedRepeat>,
}

impl Circumstances {
    fn of(record: &RepeatRecord) -> Self {
        let about = &record.environment;
        Self {
            started_unix_s: about.started_unix_s,
            load: about.load,
            stolen_share: about.stolen_share,
            discarded: record.discarded.clone(),
        }
    }
}

impl Data {
    /// Takes the figures of a sweep: the plan's figure and those that `claims` define.
    pub fn of(
        part: &str,
        report: &SweepReport,
        claims: &Claims,
        machine: Value,
    ) -> Result<Self, ClaimsError> {
        let environments = || report.repeats.iter().map(|record| &record.environment);
        let distinct = |names: BTreeSet<String>| names.into_iter().collect();
        let kernel = distinct(environments().map(|about| about.kernel.clone()).collect());
        let qemu = distinct(environments().filter_map(|about| about.qemu.clone()).collect());
        let mut of_point: BTreeMap<&str, Vec<&RepeatRecord>> = BTreeMap::new();
        for record in &report.repeats {
            of_point.entry(&record.key).or_default().push(record);
        }
        let mut points = Vec::new();
        for point in &report.points {
            let Some(records) = of_point.get(&*point.key) else {
                continue;
            };
            let axes: Selection = selection(&point.axes);
            points.push(Point {
                point: point.axes.iter().map(|(_, value)| value.clone()).collect(),
                rounds: records.iter().map(|record| record.round).collect(),
                figures: figures::of_records(claims, &axes, records)?,
                repeats: records.iter().map(|record| Circumstances::of(record)).collect(),
            });
        }
        let axes = report.points.first().map(|point| &point.axes);
        Ok(Self {
            part: part.to_owned(),
            made_by: format!("make evaluate-{part}"),
            machine,
            kernel,
            qemu,
            axes: axes.into_iter().flatten().map(|(axis, _)| (*axis).to_string()).collect(),
            unfinished: report.unfinished(),
            disturbed: report.repeats.iter().map(|record| record.discarded.len()).sum(),
            points,
            later: Vec::new(),
            runs: Vec::new(),
        })
    }

    /// Replaces the points of the workloads that `part` has by its own.
    #[must_use]
    pub fn with_part(mut self, part: Self) -> Self {
        let workload = |data: &Self, point: &Point| {
            let found = data.axes_of(point).find(|(axis, _)| *axis == "workload");
            found.map(|(_, workload)| workload.to_owned())
        };
        let workloads: BTreeSet<String> =
            part.points.iter().filter_map(|point| workload(&part, point)).collect();
        let all = std::mem::take(&mut self.points).into_iter();
        self.points = all
            .filter(|point| workload(&self, point).is_none_or(|name| !workloads.contains(&name)))
            .chain(part.points)
            .collect();
        for later in &mut self.later {
            later.workloads.retain(|name| !workloads.contains(name));
        }
        self.later.retain(|later| !later.workloads.is_empty());
        self.later
            .push(Later { workloads: workloads.into_iter().collect(), machine: part.machine });
        for (all, more) in [(&mut self.kernel, part.kernel), (&mut self.qemu, part.qemu)] {
            let distinct: BTreeSet<String> = all.drain(..).chain(more).collect();
            all.extend(distinct);
        }
        self.unfinished += part.unfinished;
        self.disturbed += part.disturbed;
        self
    }

    /// Reads the data of an earlier run.
    pub fn read(path: &Path) -> Result<Self, ClaimsError> {
        let text = fs::read_to_string(path).map_err(ClaimsError::io("read", path))?;
        serde_json::from_str(&text).map_err(ClaimsError::io("read", path))
    }

    /// Writes the data, a line for each point.
    pub fn write(&self, path: &Path) -> Result<(), ClaimsError> {
        let lines = |values: Vec<String>| format!("[\n{}\n]", values.join(",\n"));
        let points = self.points.iter().map(|point| serde_json::json!(point).to_string());
        let mut frame = serde_json::json!(self);
        let (all_points, all_runs) =
            (lines(points.collect()), self.runs.iter().map(Value::to_string));
        let all_runs = lines(all_runs.collect());
        frame["points"] = Value::Null;
        if !self.runs.is_empty() {
            frame["runs"] = Value::Null;
        }
        let text = format!("{frame:#}\n")
            .replacen("\"points\": null", &format!("\"points\": {all_points}"), 1)
            .replacen("\"runs\": null", &format!("\"runs\": {all_runs}"), 1);
        let partial = path.with_extension("json.new");
        fs::write(&partial, text).map_err(ClaimsError::io("write", &partial))?;
        fs::rename(&partial, path).map_err(ClaimsError::io("write", path))
    }

    /// Returns the maximum number of repeats of a point.
    pub fn repeats(&self) -> usize {
        self.points.iter().map(|point| point.rounds.len()).sum()
    }

    pub(super) fn axes_of<'a>(
        &'a self,
        point: &'a Point,
    ) -> impl Iterator<Item = (&'a str, &'a str)> {
        let names = self.axes.iter().map(String::as_str);
        names.zip(point.point.iter().map(String::as_str))
    }

    /// Returns a figure of the points that have these values, by the axis `along`. An error names two points that are
    /// not told apart.
    pub(super) fn series(
        &self,
        selection: &Selection,
        along: Option<&str>,
        figure: &str,
    ) -> Result<Series, String> {
        let mut series = Series::default();
        for point in &self.points {
            let has =
                |axis: &str, value: &str| selection.get(axis).is_none_or(|wanted| wanted == value);
            if !self.axes_of(point).all(|(axis, value)| has(axis, value)) {
                continue;
            }
            let Some(values) = point.figures.get(figure) else {
                continue;
            };
            let place = self.axes_of(point).find(|(axis, _)| Some(*axis) == along);
            let place = place.and_then(|(_, value)| value.parse().ok()).unwrap_or(0);
            if series.at(place).is_some() {
                return Err(format!(
                    "{selection:?} is more than one point, as {}",
                    point.point.join(",")
                ));
            }
            let repeats = point.rounds.iter().copied().zip(values);
            let repeats = repeats.filter_map(|(round, value)| Some((round, (*value)?)));
            series.0.push((place, repeats.collect()));
        }
        series.0.retain(|(_, repeats)| !repeats.is_empty());
        series.0.sort_by_key(|(place, _)| *place);
        Ok(series)
    }
}

/// Returns axes and values as a selection.
pub(super) fn selection<A: ToString>(axes: &[(A, String)]) -> Selection {
    let pair = |(axis, value): &(A, String)| (axis.to_string(), value.clone());
    axes.iter().map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(machine: &str, points: &[(&str, f64)]) -> Data {
        let point = |(workload, value): &(&str, f64)| serde_json::json!({"point": [workload], "rounds": [0], "figures": {"value": [value]}});
        let points: Vec<Value> = points.iter().map(point).collect();
        let data = serde_json::json!({
            "part": "p", "made_by": "make evaluate-p", "machine": machine, "kernel": ["6.1"], "axes": ["workload"],
            "points": points,
        });
        serde_json::from_value(data).expect("data")
    }

    #[test]
    fn a_part_replaces_its_workloads_and_names_its_machine() {
        let whole = data("old", &[("web", 1.0), ("mail", 2.0)]);
        let first = whole.clone().with_part(data("new", &[("web", 3.0)]));
        let values = |data: &Data| -> Vec<(String, Option<f64>)> {
            let value = |point: &Point| (point.point[0].clone(), point.figures["value"][0]);
            data.points.iter().map(value).collect()
        };
        let own = |name: &str, value| (name.to_owned(), Some(value));
        assert_eq!(values(&first), [own("mail", 2.0), own("web", 3.0)]);
        assert_eq!((first.machine.as_str(), first.kernel.len()), (Some("old"), 1));
        let both = first.with_part(data("newer", &[("web", 4.0), ("mail", 5.0)]));
        assert_eq!(values(&both), [own("web", 4.0), own("mail", 5.0)]);
        let later =
            Later { workloads: vec!["mail".to_owned(), "web".to_owned()], machine: "newer".into() };
        assert_eq!(both.later, [later]);
    }
}
