//! The page: tables, and targets computed from all seeds.

use luc_harness::cells;
use luc_harness::report::{Table, Target, number};
use luc_stats::quantile;

use super::mesh::{self, NAME as MESH};
use super::pair::{PairRun, PairScenario};

/// Minimum number of events over all scenarios.
const MIN_EVENTS: usize = 1_000_000;

/// A scenario with the runs of all seeds.
pub(super) struct MeasuredPairs {
    pub(super) row: PairScenario,
    pub(super) runs: Vec<PairRun>,
}

impl MeasuredPairs {
    /// Figures of all runs, in ascending order.
    fn all(&self, of: impl Fn(&PairRun) -> &Vec<f64>) -> Vec<f64> {
        let each = self.runs.iter().flat_map(of);
        let mut all: Vec<f64> = each.copied().collect();
        all.sort_unstable_by(f64::total_cmp);
        all
    }

    fn sum(&self, of: impl Fn(&PairRun) -> usize) -> usize {
        self.runs.iter().map(of).sum()
    }

    fn mean(&self, of: impl Fn(&PairRun) -> f64) -> f64 {
        self.runs.iter().map(of).sum::<f64>() / self.runs.len() as f64
    }

    fn worst(&self, of: impl Fn(&PairRun) -> f64) -> f64 {
        self.runs.iter().map(of).fold(0.0, f64::max)
    }

    fn half_width(&self) -> f64 {
        let widths = self.all(|run| &run.half_widths);
        widths.iter().sum::<f64>() / widths.len() as f64
    }

    /// Mean half-width beside half the smallest round trip.
    fn width_ratio(&self) -> f64 {
        self.half_width() / self.row.ways().half_round_trip()
    }

    /// Ratio of the median error of one line to that of the fit, less the asymmetry.
    fn line_ratio(&self) -> f64 {
        quantile_of(&self.all(|run| &run.line_extra), 0.5)
            / quantile_of(&self.all(|run| &run.extra), 0.5)
    }

    /// Ratio of the median error of one line to that of the fit, with the asymmetry.
    fn whole_line_ratio(&self) -> f64 {
        quantile_of(&self.all(|run| &run.line_whole), 0.5)
            / quantile_of(&self.all(|run| &run.whole), 0.5)
    }
}

/// Returns the quantile of figures in ascending order; NaN of none.
fn quantile_of(figures: &[f64], share: f64) -> f64 {
    quantile(figures, share).unwrap_or(f64::NAN)
}

/// Makes all tables that have a row.
pub(super) fn tables(measured: &[MeasuredPairs], meshes: &[mesh::MeshRun]) -> Vec<(String, Table)> {
    let mesh_says = format!(
        "{} hosts that all talk with each other, {} messages/s each way and pair for {} s, least delays of 10 to 16.9 µs \
         drawn for each way of each pair; errors are those of the difference of two hosts:",
        mesh::HOSTS,
        mesh::PER_S,
        mesh::SECONDS
    );
    let tables = vec![
        ("The fit of a pair:".to_owned(), tabulate_fits(measured)),
        ("One line per pair, on the same messages:".to_owned(), tabulate_lines(measured)),
        (
            "One offset for all of the time, as Perfetto has it, on the same messages:".to_owned(),
            tabulate_offsets(measured),
        ),
        (mesh_says, tabulate_meshes(meshes)),
    ];
    tables.into_iter().filter(|(_, table)| !table.is_empty()).collect()
}

fn tabulate_fits(measured: &[MeasuredPairs]) -> Table {
    let mut table = Table::new(&[
        "scenario",
        "extra error p50 / p99 / max, ns",
        "p99 of the worst seed, ns",
        "half-width mean / p99, µs",
        "mean beside half the smallest round trip",
        "truth inside",
        "fit of all messages, ms of processor time, worst",
    ]);
    for one in measured {
        let (extra, widths) = (one.all(|run| &run.extra), one.all(|run| &run.half_widths));
        let (inside, events) = (one.sum(|run| run.inside), one.sum(|run| run.events));
        let quantiles = [0.5, 0.99, 1.0].map(|share| number(quantile_of(&extra, share)));
        table.row(cells![
            one.row.name,
            quantiles.join(" / "),
            number(one.worst(|run| quantile_of(&run.extra, 0.99))),
            format!("{:.3} / {:.3}", one.half_width() / 1e3, quantile_of(&widths, 0.99) / 1e3),
            format!("{:.4}", one.width_ratio()),
            format!("{inside} of {events}"),
            number(one.worst(|run| run.fit_ms))
        ]);
    }
    table
}

fn tabulate_lines(measured: &[MeasuredPairs]) -> Table {
    let mut table = Table::new(&[
        "scenario",
        "error p50 / max, µs",
        "its messages that arrive before they were sent",
        "the fit's",
        "median error beside the fit's, less the asymmetry",
        "with it",
    ]);
    for one in measured {
        let line = one.all(|run| &run.line_whole);
        let quantiles = [0.5, 1.0].map(|share| number(quantile_of(&line, share) / 1e3));
        table.row(cells![
            one.row.name,
            quantiles.join(" / "),
            format!("{:.1} %", one.mean(|run| run.line_inverted_share) * 100.0),
            format!("{:.4} %", one.mean(|run| run.inverted_share) * 100.0),
            number(one.line_ratio()),
            number(one.whole_line_ratio())
        ]);
    }
    table
}

fn tabulate_offsets(measured: &[MeasuredPairs]) -> Table {
    let mut table = Table::new(&[
        "scenario",
        "the first second's: error p50 / max, ms",
        "messages that arrive before they were sent",
        "the best: error p50 / max, ms",
        "messages that arrive before they were sent",
        "the fit: error p50 / max, µs",
    ]);
    for one in measured {
        let quantiles = |figures: fn(&PairRun) -> &Vec<f64>, unit_ns: f64| {
            let all = one.all(figures);
            [0.5, 1.0].map(|share| number(quantile_of(&all, share) / unit_ns)).join(" / ")
        };
        let share = |figure: fn(&PairRun) -> f64| format!("{:.1} %", one.mean(figure) * 100.0);
        table.row(cells![
            one.row.name,
            quantiles(|run| &run.first_offset_whole, 1e6),
            share(|run| run.first_offset_inverted_share),
            quantiles(|run| &run.best_offset_whole, 1e6),
            share(|run| run.best_offset_inverted_share),
            quantiles(|run| &run.whole, 1e3)
        ]);
    }
    table
}

fn tabulate_meshes(meshes: &[mesh::MeshRun]) -> Table {
    let mut table = Table::new(&[
        "run",
        "rms of a pair, ns",
        "in the mesh, ns",
        "ratio",
        "half-width of a pair, µs",
        "in the mesh, µs",
        "truth inside",
    ]);
    for (at, run) in meshes.iter().enumerate() {
        table.row(cells![
            at + 1,
            number(run.pair_rms_ns),
            number(run.mesh_rms_ns),
            format!("{:.3}", run.mesh_rms_ns / run.pair_rms_ns),
            number(run.pair_half_width_ns / 1e3),
            number(run.mesh_half_width_ns / 1e3),
            format!("{} of {}", run.inside, run.events)
        ]);
    }
    table
}

/// Makes the targets of all scenarios that were run.
pub(super) fn targets(measured: &[MeasuredPairs], meshes: &[mesh::MeshRun]) -> Vec<Target> {
    let mut targets = vec![all_inside(measured, meshes)];
    targets.extend(measured.iter().map(|one| {
        let most = if one.row.per_s < 1000.0 { 1.05 } else { 1.01 };
        Target::new(
            format!("{}: half-width <= {most} x half the smallest round trip", one.row.name),
            one.width_ratio() <= most,
            format!("{:.4}", one.width_ratio()),
        )
    }));
    for one in measured {
        let most = match one.row.per_s {
            10_000.0 => 20.0,
            _ if one.row.kappa_ns_per_s2 >= 5000.0 => 60.0,
            _ => continue,
        };
        let p99 = quantile_of(&one.all(|run| &run.extra), 0.99);
        targets.push(Target::new(
            format!("{}: p99 of the error less the asymmetry <= {most} ns", one.row.name),
            p99 <= most,
            format!("{p99:.1} ns"),
        ));
    }
    targets.extend(measured.iter().map(|one| {
        Target::at_least(
            format!(
                "{}: median error of one line beside the fit's, less the asymmetry",
                one.row.name
            ),
            Some(one.line_ratio()),
            100.0,
        )
    }));
    if !measured.is_empty() {
        let inverted = measured.iter().map(|one| one.worst(|run| run.inverted_share));
        let inverted = inverted.fold(0.0, f64::max);
        targets.push(Target::new(
            "no message arrives before it was sent, by the fit, in any scenario",
            inverted == 0.0,
            format!("worst share {:.6} %", inverted * 100.0),
        ));
    }
    let speed = measured.iter().filter(|one| one.row.per_s == 1000.0);
    targets.extend(speed.map(|one| one.worst(|run| run.fit_ms)).reduce(f64::max).map(|slowest| {
        Target::below("300 s of 1,000 messages/s each way, fitted, ms", Some(slowest), 1000.0)
    }));
    let ratios = meshes.iter().map(|run| run.mesh_rms_ns / run.pair_rms_ns);
    targets.extend(ratios.reduce(f64::max).map(|worst| {
        Target::new(
            format!("{MESH}: rms of the asymmetry's error <= 0.35 of a pair's, in each run"),
            worst <= 0.35,
            format!("{worst:.3} at worst, {:.3} over all runs", mesh::ratio(meshes)),
        )
    }));
    targets
}

fn all_inside(measured: &[MeasuredPairs], meshes: &[mesh::MeshRun]) -> Target {
    let mut inside: usize = measured.iter().map(|one| one.sum(|run| run.inside)).sum();
    let mut events: usize = measured.iter().map(|one| one.sum(|run| run.events)).sum();
    inside += meshes.iter().map(|run| run.inside).sum::<usize>();
    events += meshes.iter().map(|run| run.events).sum::<usize>();
    Target::new(
        format!("the truth is within the guaranteed bounds at all of at least {MIN_EVENTS} events"),
        inside == events && events >= MIN_EVENTS,
        format!("{inside} of {events}"),
    )
}
