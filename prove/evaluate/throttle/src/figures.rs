//! From the times of tasks to a page: the best rival, and the distance of ours from it.

use luc_harness::cells;
use luc_harness::error::EvaluateError;
use luc_harness::harness::{elements, missing};
use luc_harness::report::{Page, Table, Target, number};
use luc_stats::{TaskTimes, Together, together, worst_against};
use serde_json::Value;

use super::mixes::{Mix, Model};
use super::rows::{self, Rows, spread};
use super::settings::Setting;

/// Policy that targets are about, the default of `luc throttle`.
const OURS: &str = "luc throttle, auto";
/// Minimum part of the best rival's throughput or weighted speedup that a rival must reach. A slower one is not run
/// at other places of the files.
pub(super) const MIN_PART_OF_BEST: f64 = 0.8;
/// Setting of a system that was not tuned.
const UNTUNED: &str = "none";

/// Whether a rival leaves BFQ the kernel's own `timeout_sync`.
fn is_usual(rival: &str) -> bool {
    !rival.contains("timeout_sync")
}

pub(super) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

#[derive(Debug, Clone)]
struct MixRun {
    tasks: Vec<TaskTimes>,
    together: Together,
}

impl MixRun {
    /// Weighted speedup, which is shown with the worst slowdown.
    fn speedup(&self) -> f64 {
        self.together.speedup.parts().0
    }

    fn worst_slowdown(&self) -> f64 {
        self.together.speedup.parts().1
    }

    /// Time until all are done, over the sum of their times alone.
    fn over_alone(&self) -> f64 {
        let alone: f64 = self.tasks.iter().map(|task| task.alone).sum();
        self.together.makespan / alone
    }
}

/// All runs of a mix under one setting.
type Row = rows::Row<MixRun>;

#[derive(Debug, Clone)]
pub(super) struct Group {
    mix: Mix,
    rows: Rows<MixRun>,
}

impl Group {
    pub(super) fn new(mix: &Mix) -> Self {
        Self { mix: mix.clone(), rows: Rows::new() }
    }

    /// Adds the result of a guest.
    pub(super) fn add(
        &mut self,
        settings: &[&Setting],
        result: &Value,
    ) -> Result<(), EvaluateError> {
        let alone: Vec<f64> = serde_json::from_value(result["alone_s"].clone())
            .map_err(|_| missing("the times alone"))?;
        for cell in elements(&result["cells"]) {
            let name = cell["setting"].as_str().unwrap_or_default();
            let setting = settings.iter().find(|setting| setting.name == name);
            let setting = setting.ok_or_else(|| missing(name))?;
            let times: Vec<(f64, f64)> = serde_json::from_value(cell["tasks"].clone())
                .map_err(|_| missing("the times of tasks"))?;
            let tasks: Vec<TaskTimes> = alone
                .iter()
                .zip(&times)
                .map(|(&alone, &(start, finish))| TaskTimes {
                    alone,
                    // All are there at once; one that is frozen before it begins has begun to wait.
                    start: self.mix.at_a_time.map_or(0.0, |_| start),
                    finish,
                })
                .collect();
            let together = together(&tasks).map_err(|_| missing("a task's time"))?;
            let run = MixRun { tasks, together };
            self.rows.add(name, setting.is_ours(), run);
        }
        Ok(())
    }

    /// Whether a rival may be the best at further places, by its medians so far.
    ///
    /// It is compared with the best of all, or of those with the usual `timeout_sync`. On a disk without an arm targets
    /// compare with `none`, which is always kept.
    pub(super) fn is_near_best(&self, rival: &str) -> bool {
        if rival == UNTUNED && self.mix.model != Model::Hdd {
            return true;
        }
        let is_near = |of: fn(&MixRun) -> f64| {
            let own = self.rows.get(rival).and_then(|row| row.median(of));
            let best = if is_usual(rival) { self.best_usual(of) } else { self.best(of) };
            let best = best.and_then(|row| row.median(of));
            own.zip(best).is_none_or(|(own, best)| own >= MIN_PART_OF_BEST * best)
        };
        is_near(|run| run.together.throughput) || is_near(MixRun::speedup)
    }

    /// Returns the rival with the largest median of a figure.
    fn best(&self, of: impl Fn(&MixRun) -> f64) -> Option<&Row> {
        self.best_of(of, |_| true)
    }

    /// Returns the best rival of those that leave BFQ the kernel's own `timeout_sync`.
    fn best_usual(&self, of: impl Fn(&MixRun) -> f64) -> Option<&Row> {
        self.best_of(of, |row| is_usual(&row.name))
    }

    fn best_of(
        &self,
        of: impl Fn(&MixRun) -> f64,
        is_wanted: impl Fn(&Row) -> bool,
    ) -> Option<&Row> {
        let rivals = self.rows.rivals().filter(|row| is_wanted(row));
        let figures = rivals.filter_map(|row| Some((row.median(&of)?, row)));
        figures.max_by(|one, other| one.0.total_cmp(&other.0)).map(|(_, row)| row)
    }

    /// Compares ours with these rivals: throughput, if there is a bound for it, and weighted speedup.
    fn targets_of_usual(&self, throughput: Option<f64>, speedup: Option<f64>) -> Vec<Target> {
        let name = &self.mix.name;
        let of = |row: Option<&Row>| row.map_or("-", |row| row.name.as_str()).to_owned();
        let by_throughput = self.best_usual(|run| run.together.throughput);
        let by_speedup = self.best_usual(MixRun::speedup);
        let throughput = throughput.map(|bound| {
            let what = format!(
                "{name}: throughput against the best rival but for timeout_sync ({})",
                of(by_throughput)
            );
            Target::at_least(what, self.throughput_against(by_throughput), bound)
        });
        let speedup = speedup.map(|bound| {
            let what = format!(
                "{name}: weighted speedup against the best rival but for timeout_sync ({})",
                of(by_speedup)
            );
            let ratio =
                self.ratio(by_speedup, |ours, rival| Some(ours.speedup() / rival.speedup()));
            Target::at_least(what, ratio, bound)
        });
        throughput.into_iter().chain(speedup).collect()
    }

    /// Median over places of a comparison of ours with a rival.
    fn ratio(
        &self,
        rival: Option<&Row>,
        of: impl Fn(&MixRun, &MixRun) -> Option<f64>,
    ) -> Option<f64> {
        self.rows.get(OURS)?.against(rival?, of)
    }

    fn throughput_against(&self, rival: Option<&Row>) -> Option<f64> {
        self.ratio(rival, |ours, rival| Some(ours.together.throughput / rival.together.throughput))
    }

    fn best_by_throughput(&self) -> Option<&Row> {
        self.best(|run| run.together.throughput)
    }

    fn best_by_speedup(&self) -> Option<&Row> {
        self.best(MixRun::speedup)
    }

    /// Weighted speedup, relative to the rival that has most of it.
    fn speedup_against_best(&self) -> Option<f64> {
        self.ratio(self.best_by_speedup(), |ours, rival| Some(ours.speedup() / rival.speedup()))
    }

    /// Worst slowdown, relative to the worst under the rival with the most throughput.
    fn worst_against_best(&self) -> Option<f64> {
        self.ratio(self.best_by_throughput(), |ours, rival| {
            Some(ours.worst_slowdown() / rival.worst_slowdown())
        })
    }

    /// Largest of the tasks' times, relative to their own under that rival. If both run tasks one after the other in
    /// different orders, it says nothing more.
    fn largest_against_best(&self) -> Option<f64> {
        self.ratio(self.best_by_throughput(), |ours, rival| {
            worst_against(&ours.tasks, &rival.tasks).ok()
        })
    }

    /// Makes the table, with a row for each setting.
    fn table(&self) -> (String, Table) {
        let mut table = Table::new(&[
            "under",
            "all done, s",
            "over the sum alone",
            "TP, of none",
            "WS",
            "worst slowdown",
            "mean slowdown",
            "mean finish, s",
            "fairness",
        ]);
        let plain = self.rows.get(UNTUNED);
        for row in self.rows.iter() {
            let of_plain = plain.map(|plain| {
                let runs = row.runs.iter().zip(&plain.runs);
                runs.map(|(run, plain)| run.together.throughput / plain.together.throughput)
                    .collect::<Vec<f64>>()
            });
            table.row(cells![
                row.name,
                spread(&row.figures(|run| run.together.makespan)),
                spread(&row.figures(MixRun::over_alone)),
                spread(&of_plain.unwrap_or_default()),
                spread(&row.figures(MixRun::speedup)),
                spread(&row.figures(MixRun::worst_slowdown)),
                spread(&row.figures(|run| run.together.mean_slowdown)),
                spread(&row.figures(|run| run.together.mean_finish)),
                spread(&row.figures(|run| run.together.fairness))
            ]);
        }
        let best = |row: Option<&Row>| row.map_or("-", |row| row.name.as_str()).to_owned();
        let sentence = format!(
            "**{}** ({}; {} MiB each, on {}). Best rival by throughput: {}; by weighted speedup: {}.",
            self.mix.name,
            self.mix.about(),
            self.mix.sizes(),
            self.mix.model.name(),
            best(self.best_by_throughput()),
            best(self.best_by_speedup())
        );
        (sentence, table)
    }

    fn targets(&self) -> Vec<Target> {
        let name = &self.mix.name;
        let best = self.best_by_throughput().map_or("-", |row| row.name.as_str());
        let on_best = format!("{name}: throughput against the best rival ({best})");
        let on_plain = self.throughput_against(self.rows.get(UNTUNED));
        if self.mix.has_nothing_to_gain() {
            let what = format!("{name}: run time over that without luc throttle");
            let slower = on_plain.map(|ratio| 1.0 / ratio);
            return vec![Target::below(what, slower, 1.01)];
        }
        if self.mix.model != Model::Hdd {
            let speedup = self.rows.get(OURS).and_then(|row| row.median(MixRun::speedup));
            let worst = self.rows.get(OURS).and_then(|row| row.median(MixRun::worst_slowdown));
            let worst = worst.map_or_else(|| "-".to_owned(), number);
            return vec![
                Target::at_least(
                    format!("{name}: weighted speedup (worst task {worst} times its time alone)"),
                    speedup,
                    1.7,
                ),
                Target::at_least(format!("{name}: throughput against none"), on_plain, 0.99),
            ];
        }
        if self.mix.at_a_time.is_some() {
            let mut all = vec![
                Target::at_least(format!("{name}: throughput against none"), on_plain, 3.0),
                Target::at_least(on_best, self.throughput_against(self.best_by_throughput()), 1.08),
            ];
            all.extend(self.targets_of_usual(Some(1.08), None));
            return all;
        }
        let streams = |few: f64, many: f64| if self.mix.kinds.len() > 4 { many } else { few };
        let speedup = |bound| {
            let rival = self.best_by_speedup().map_or("-", |row| row.name.as_str());
            let worst = self.worst_against_best().map_or_else(|| "-".to_owned(), number);
            let what = format!(
                "{name}: weighted speedup against the best rival ({rival}), with {worst} of the worst slowdown under {best}"
            );
            Target::at_least(what, self.speedup_against_best(), bound)
        };
        let is_equal = self.mix.file_mib.windows(2).all(|pair| pair[0] == pair[1]);
        if !is_equal || !name.ends_with("streams") {
            let mut all = vec![speedup(1.3)];
            all.extend(self.targets_of_usual(None, Some(1.3)));
            return all;
        }
        let mut all = vec![Target::below(
            format!("{name}: all done over the sum of the times alone"),
            self.rows.get(OURS).and_then(|row| row.median(MixRun::over_alone)),
            1.03,
        )];
        let does_not_help = |row: &&Row| {
            let name = row.name.as_str();
            let of_default = !name.contains("read-ahead") && !name.contains("BFQ");
            of_default && !row.is_ours
        };
        let against: Option<Vec<f64>> = self
            .rows
            .iter()
            .filter(does_not_help)
            .map(|row| self.throughput_against(Some(row)))
            .collect();
        all.push(Target::at_least(
            format!("{name}: throughput against each rival that only shares out"),
            against.and_then(|ratios| ratios.into_iter().reduce(f64::min)),
            streams(5.0, 7.0),
        ));
        all.push(Target::at_least(
            on_best,
            self.throughput_against(self.best_by_throughput()),
            1.08,
        ));
        all.push(speedup(streams(2.0, 2.5)));
        all.extend(self.targets_of_usual(Some(1.08), Some(streams(2.0, 2.5))));
        let own = self.largest_against_best().map_or_else(|| "-".to_owned(), number);
        all.push(Target::below(
            format!(
                "{name}: the worst slowdown over that under the best rival ({best}; a task's time over its own there: at \
                 most {own})"
            ),
            self.worst_against_best(),
            1.02,
        ));
        all
    }
}

pub(super) fn page(title: &str, groups: &[Group], about: String) -> Page {
    Page {
        title: title.to_owned(),
        about,
        tables: groups.iter().map(Group::table).collect(),
        targets: groups.iter().flat_map(Group::targets).collect(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::settings::{Setting, ours, plain, schedulers};
    use super::*;

    fn cell(setting: &Setting, finishes: &[f64]) -> Value {
        let tasks: Vec<(f64, f64)> = finishes.iter().map(|&finish| (0.0, finish)).collect();
        json!({ "setting": setting.name, "tasks": tasks, "throttle": null })
    }

    #[test]
    fn the_best_rival_is_found_by_the_figures() {
        let mut group = Group::new(&Mix::streams(2, 8));
        let bfq = schedulers().remove(3);
        let auto = ours().remove(0);
        let plain = plain();
        let result = json!({
            "alone_s": [1.0, 1.0],
            "cells": [cell(&plain, &[10.0, 10.0]), cell(&bfq, &[2.2, 2.2]), cell(&auto, &[1.0, 2.0])],
        });
        group.add(&[&plain, &bfq, &auto], &result).expect("a result");
        assert_eq!(group.best_by_throughput().expect("one").name, bfq.name);
        let close = |value: Option<f64>, to: f64| (value.expect("a figure") - to).abs() < 1e-9;
        assert!(close(group.throughput_against(group.best_by_throughput()), 1.1));
        assert!(close(group.speedup_against_best(), 1.5 / (2.0 / 2.2)));
        let near = [&bfq.name, &plain.name, "unknown"].map(|name| group.is_near_best(name));
        assert_eq!(near, [true, false, true]);
        assert!(close(group.worst_against_best(), 2.0 / 2.2));
        assert!(close(group.largest_against_best(), 2.0 / 2.2));
        let targets: Vec<String> = group.targets().iter().map(ToString::to_string).collect();
        assert_eq!(targets.len(), 7);
        assert!(targets[2].contains("BFQ, low_latency 0) >= 1.08 -> met"), "{targets:?}");
        let (sentence, table) = group.table();
        assert!(sentence.contains("2 streams"), "{sentence}");
        assert!(table.to_string().contains("| 1.50 |"), "{table}");
    }
}
