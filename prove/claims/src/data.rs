//! Raw data of a page: figures of each repeat, by the axes of its point.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use luc_sweep::{Record, Report};
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
    /// Further measurements beside the sweep.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<Value>,
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
}

impl Data {
    /// Takes the figures of a sweep: the plan's figure and those that `claims` define.
    pub fn of(
        part: &str,
        report: &Report,
        claims: &Claims,
        machine: Value,
    ) -> Result<Self, ClaimsError> {
        let environments = || report.repeats.iter().map(|record| &record.environment);
        let distinct = |names: BTreeSet<String>| names.into_iter().collect();
        let kernel = distinct(environments().map(|about| about.kernel.clone()).collect());
        let qemu = distinct(environments().filter_map(|about| about.qemu.clone()).collect());
        let mut of_point: BTreeMap<&str, Vec<&Record>> = BTreeMap::new();
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
            runs: Vec::new(),
        })
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
