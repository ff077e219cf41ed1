//! From a client's latencies and the batch's bytes to a page.

use luc_harness::cells;
use luc_harness::error::EvaluateError;
use luc_harness::harness::{elements, missing};
use luc_harness::report::{Page, Table, Target, number};
use serde_json::Value;

use super::scenario::{Latency, Scenario};
use super::settings::{ClientSetting, STRICT};
use crate::rows::{self, Rows};
use crate::settings::PEAK_BYTES_PER_SECOND;

/// Name of a figure, and its function of a run.
type Figure = (&'static str, fn(&ClientRun) -> f64);

/// A run of a client beside batch, and alone in the same guest.
#[derive(Debug, Clone, Copy)]
struct ClientRun {
    beside: Latency,
    alone: Latency,
    batch_mb_per_s: f64,
}

impl ClientRun {
    /// The client's rate over that alone, %: resctl-bench's `isol%`.
    fn isolation_percent(&self) -> f64 {
        let rate = |latency: &Latency| latency.requests / latency.seconds;
        100.0 * rate(&self.beside) / rate(&self.alone)
    }

    /// Increase of the mean latency, % of that alone: resctl-bench's `lat-imp%`.
    fn impact_percent(&self) -> f64 {
        100.0 * (self.beside.mean_ms / self.alone.mean_ms - 1.0)
    }

    /// The batch's part of the disk's peak, %.
    fn work_percent(&self) -> f64 {
        100.0 * self.batch_mb_per_s * 1e6 / PEAK_BYTES_PER_SECOND as f64
    }
}

type Row = rows::Row<ClientRun>;

fn p99_ms(row: &Row) -> f64 {
    median_of(row, |run| run.beside.p99_ms)
}

fn median_of(row: &Row, of: impl Fn(&ClientRun) -> f64) -> f64 {
    row.median(of).unwrap_or(f64::NAN)
}

#[derive(Debug, Clone)]
pub(super) struct ScenarioGroup {
    scenario: Scenario,
    alone: Vec<Latency>,
    rows: Rows<ClientRun>,
}

impl ScenarioGroup {
    pub(super) fn new(scenario: Scenario) -> Self {
        Self { scenario, alone: Vec::new(), rows: Rows::new() }
    }

    pub(super) fn is_of(&self, scenario: Scenario) -> bool {
        self.scenario == scenario
    }

    /// Adds the result of a guest.
    pub(super) fn add(
        &mut self,
        settings: &[ClientSetting],
        result: &Value,
    ) -> Result<(), EvaluateError> {
        let latency = |cell: &Value| {
            let found = self.scenario.latency(&cell["client"]);
            found.ok_or_else(|| missing("a client's latencies"))
        };
        let moved = |cell: &Value, name: &str| {
            let figure = cell["moved"][name].as_f64();
            figure.ok_or_else(|| missing("what the disk moved"))
        };
        // What the disk moved per second, and how many requests the client made in that time.
        let bytes = |cell: &Value, latency: &Latency| -> Result<(f64, f64, f64), EvaluateError> {
            let seconds = moved(cell, "seconds")?;
            let bytes = moved(cell, "read_bytes")? + moved(cell, "written_bytes")?;
            Ok((bytes, seconds, latency.requests / latency.seconds * seconds))
        };
        let alone = latency(&result["alone"])?;
        let (alone_bytes, _, alone_requests) = bytes(&result["alone"], &alone)?;
        self.alone.push(alone);
        for cell in elements(&result["cells"]) {
            let name = cell["setting"].as_str().unwrap_or_default();
            let setting = settings.iter().find(|setting| setting.name == name);
            let setting = setting.ok_or_else(|| missing(name))?;
            let beside = latency(cell)?;
            let (bytes, seconds, requests) = bytes(cell, &beside)?;
            let batch_bytes = (bytes - requests * alone_bytes / alone_requests).max(0.0);
            let run = ClientRun { beside, alone, batch_mb_per_s: batch_bytes / seconds / 1e6 };
            self.rows.add(name, setting.is_ours(), run);
        }
        Ok(())
    }

    /// Returns the rival with the smallest median of a figure.
    fn best(&self, of: impl Fn(&ClientRun) -> f64) -> Option<&Row> {
        self.rows
            .rivals()
            .min_by(|one, other| median_of(one, &of).total_cmp(&median_of(other, &of)))
    }

    /// Returns our setting with the highest batch rate among those whose 99th percentile is not above a rival's. Also
    /// returns the ratio of its batch rate to the rival's.
    fn against(&self, rival: &Row) -> Option<(&Row, f64)> {
        let as_soon = self.rows.ours().filter(|row| p99_ms(row) <= p99_ms(rival));
        let ratios = as_soon.filter_map(|row| Some((row, row.ratio(rival, |r| r.batch_mb_per_s)?)));
        ratios.max_by(|one, other| one.1.total_cmp(&other.1))
    }

    fn table(&self) -> (String, Table) {
        let mut table = Table::new(&[
            "under",
            "mean, ms",
            "p50, ms",
            "p99, ms",
            "longest, ms",
            "isol %",
            "lat-imp %",
            "batch, MB/s",
            "of the peak, %",
            "ours at no higher p99: batch, times",
        ]);
        let spread = |values: Vec<f64>| rows::spread(&values);
        let alone = |of: fn(&Latency) -> f64| spread(self.alone.iter().map(of).collect());
        let mut first = vec![
            "alone".to_owned(),
            alone(|latency| latency.mean_ms),
            alone(|latency| latency.p50_ms),
            alone(|latency| latency.p99_ms),
            alone(|latency| latency.max_ms),
        ];
        first.extend(["100", "0", "-", "-", "-"].map(str::to_owned));
        table.row(first);
        for row in self.rows.iter() {
            let ours = match self.against(row).filter(|_| !row.is_ours) {
                Some((ours, ratio)) => format!("{} ({})", number(ratio), ours.name),
                None => "-".to_owned(),
            };
            table.row(cells![
                row.name,
                spread(row.figures(|run| run.beside.mean_ms)),
                spread(row.figures(|run| run.beside.p50_ms)),
                spread(row.figures(|run| run.beside.p99_ms)),
                spread(row.figures(|run| run.beside.max_ms)),
                spread(row.figures(ClientRun::isolation_percent)),
                spread(row.figures(ClientRun::impact_percent)),
                spread(row.figures(|run| run.batch_mb_per_s)),
                spread(row.figures(ClientRun::work_percent)),
                ours
            ]);
        }
        let sentence = format!("**{}**: {}.", self.scenario.name(), self.scenario.about());
        (sentence, table)
    }

    fn targets(&self) -> Vec<Target> {
        match self.scenario {
            Scenario::Reads => self.targets_of_reads(),
            Scenario::Fsyncs => self.targets_of_fsyncs(),
        }
    }

    fn targets_of_reads(&self) -> Vec<Target> {
        let best = self.best(|run| run.beside.p99_ms);
        let against = best.and_then(|rival| self.against(rival));
        let name = |row: Option<&Row>| row.map_or("none", |row| row.name.as_str()).to_owned();
        let p99 = |row: Option<&Row>| row.map_or_else(|| "-".to_owned(), |row| number(p99_ms(row)));
        let ours = against.map(|(row, _)| row);
        let strict = self.rows.ours().find(|row| row.name.ends_with(STRICT));
        vec![
            Target::at_least(
                format!(
                    "reads: batch rate ({}, p99 {} ms) over that under the rival of the lowest p99 ({}, {} ms)",
                    name(ours),
                    p99(ours),
                    name(best),
                    p99(best)
                ),
                against.map(|(_, ratio)| ratio),
                1.8,
            ),
            Target::below(
                format!("reads: mean latency ({}) over that alone", name(strict)),
                strict.and_then(|row| row.median(|run| run.beside.mean_ms / run.alone.mean_ms)),
                1.1,
            ),
        ]
    }

    fn targets_of_fsyncs(&self) -> Vec<Target> {
        let figures: [Figure; 2] =
            [("mean", |run| run.beside.mean_ms), ("99th percentile", |run| run.beside.p99_ms)];
        let ratios = |row: &Row| -> Option<[f64; 2]> {
            let mut all = [0.0; 2];
            for (ratio, (_, of)) in all.iter_mut().zip(figures) {
                *ratio = row.ratio(self.best(of)?, of)?;
            }
            Some(all)
        };
        // The one of ours whose worse ratio is least.
        let worse = |row: &&Row| ratios(row).map_or(f64::INFINITY, |[a, b]| a.max(b));
        let ours = self.rows.ours().min_by(|one, other| worse(one).total_cmp(&worse(other)));
        let batch = |row: &Row| number(median_of(row, |run| run.batch_mb_per_s));
        let mut all = Vec::new();
        for (place, (name, of)) in figures.into_iter().enumerate() {
            let about = ours.zip(self.best(of)).map(|(ours, rival)| {
                format!(
                    "fsyncs: {name} ({}, batch {} MB/s) over the best rival's ({}, batch {} MB/s)",
                    ours.name,
                    batch(ours),
                    rival.name,
                    batch(rival)
                )
            });
            let ratio = ours.and_then(ratios).map(|ratios| ratios[place]);
            let about = about.unwrap_or_else(|| format!("fsyncs: {name}"));
            all.push(Target::below(about, ratio, 0.5));
        }
        all
    }
}

pub(super) fn page(groups: &[ScenarioGroup], release: &str) -> Page {
    Page {
        title: "A client that must be answered soon, beside batch".to_owned(),
        about: about(release),
        tables: groups.iter().map(ScenarioGroup::table).collect(),
        targets: groups.iter().flat_map(ScenarioGroup::targets).collect(),
    }
}

fn about(release: &str) -> String {
    format!(
        "In guests with Linux {release} in virtual time a client works for a while beside batch tasks that do not end, on \
         an emulated hard disk of 7200 rpm (full stroke over 2 GiB, one request at a time; elevators hold 64), each in a \
         cgroup (v2) of its own; which file is where is drawn anew for each repeat. The client alone is without a \
         scheduler. Latency is that of each read or fsync, as the client sees it. isol % is the client's rate over that \
         alone, lat-imp % what is added to its mean latency, both as resctl-bench has them. Batch is what the disk moved \
         meanwhile, less what the client's requests move when it is alone. `p99` settings of luc throttle are `--p99`, \
         `batch_floor 0` is `--batch-floor 0`. The last column compares each rival with that of our settings which gives \
         the batch most at a 99th percentile that is not above the rival's. Medians over the places of files, with the \
         range. io.latency is not in these kernels."
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::settings::{ours, plain};
    use super::*;

    fn cell(name: &str, p99_ms: f64, mb: f64) -> Value {
        json!({
            "setting": name,
            "client": { "measured_s": 10.0, "latency": {
                "count": 100, "mean_us": p99_ms * 500.0, "p50_us": p99_ms * 400.0, "p99_us": p99_ms * 1e3,
                "max_us": p99_ms * 2e3,
            } },
            "moved": { "seconds": 10.0, "read_bytes": mb * 1e7 + 409_600.0, "written_bytes": 0.0 },
        })
    }

    #[test]
    fn the_batch_is_compared_at_a_percentile_that_is_no_higher() {
        let mut group = ScenarioGroup::new(Scenario::Reads);
        let settings: Vec<ClientSetting> =
            [plain()].into_iter().chain(ours(Scenario::Reads)).collect();
        let [default, strict] = [&settings[1].name, &settings[2].name];
        let result = json!({
            "alone": cell("", 10.0, 0.0),
            "cells": [cell("none", 30.0, 5.0), cell(default, 31.0, 50.0), cell(strict, 10.5, 10.0)],
        });
        group.add(&settings, &result).expect("a result");
        let rival = group.best(|run| run.beside.p99_ms).expect("one");
        let (ours, ratio) = group.against(rival).expect("ours");
        assert_eq!((&ours.name, rival.name.as_str()), (strict, "none"));
        assert!((ratio - 2.0).abs() < 1e-6, "{ratio}");
        let targets: Vec<String> = group.targets().iter().map(ToString::to_string).collect();
        assert!(targets[0].contains(">= 1.8 -> met (2.000)"), "{targets:?}");
        assert!(targets[1].contains("-> met (1.05)"), "{targets:?}");
        let (_, table) = group.table();
        assert!(table.to_string().contains("| 2.00 ("), "{table}");
    }
}
