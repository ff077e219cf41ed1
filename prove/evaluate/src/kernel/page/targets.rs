//! Is it what was promised?

use luc_stats::median;

use super::super::super::report::{Target, spread_as};
use super::super::cells::{Load, NOT_LOADED, REPEATED_LOADS, SPEEDS, Sheet};
use super::super::results::Results;
use super::measured;
use super::series::{Series, rates_by_seed, speeds};

/// Settings that the user must choose.
const FIXED: [&str; 5] = ["stock", "delay", "pid", "copy heuristic", "copy on"];
/// Settings that find out for themselves.
const AUTOMATIC: [&str; 3] = ["auto", "copy auto", "both auto"];

pub(super) fn targets(results: &Results) -> Vec<Target> {
    let least_speeds = Load::ALL
        .map(|load| measured(results, load))
        .into_iter()
        .min();
    let mut targets = vec![Target::at_least(
        "speeds over a factor of 4, for each workload,",
        least_speeds.map(|speeds| speeds as f64),
        8.0,
    )];
    for load in Load::ALL {
        targets.push(gain(results, load, least_gain(load)));
    }
    for load in Load::ALL {
        let of = |setting| Series::of_seeds(results, load, setting);
        let halves = Series::greatest(&[of("auto"), of("copy auto")]);
        targets.push(worst(
            format!(
                "{}: both auto over its better half, at any speed,",
                load.name()
            ),
            &of("both auto").over(&halves),
            0.98,
        ));
    }
    for load in Load::ALL {
        let fixed = Series::greatest(&FIXED.map(|setting| Series::of(results, load, setting)));
        let both = Series::of(results, load, "both auto");
        targets.push(worst(
            format!(
                "{}: both auto over the best fixed setting, at any speed,",
                load.name()
            ),
            &both.over(&fixed),
            0.95,
        ));
    }
    for load in Load::ALL {
        let stock = Series::of_seeds(results, load, "stock");
        for setting in AUTOMATIC {
            targets.push(worst(
                format!("{}: {setting} over stock, at any speed,", load.name()),
                &Series::of_seeds(results, load, setting).over(&stock),
                0.98,
            ));
        }
    }
    for (load, bound) in [(Load::Varmail, 6.0), (Load::Oltp, 9.0)] {
        let fall = Series::of_seeds(results, load, "both auto").greatest_fall();
        targets.push(Target::below(
            format!(
                "{}: remaining slowdown at any step, both auto, %,",
                load.name()
            ),
            fall.map(|fall| fall.share.max(0.0) * 100.0),
            bound,
        ));
    }
    targets.extend(presence(results));
    targets.extend(again(results));
    targets
}

/// What the gain should be.
fn least_gain(load: Load) -> f64 {
    match load {
        Load::Metarates(_) => 1.8,
        Load::InitialWrite(_) => 2.0,
        Load::Varmail => 1.2,
        Load::Oltp => 1.15,
    }
}

/// The gain of "both auto" at its worst speed; its best, and that of the best fixed setting, beside it.
fn gain(results: &Results, load: Load, bound: f64) -> Target {
    let stock = Series::of_seeds(results, load, "stock");
    let what = format!("{}: both auto over stock, at every speed,", load.name());
    let both = Series::of_seeds(results, load, "both auto").over(&stock);
    let fixed = Series::greatest(&FIXED.map(|setting| Series::of(results, load, setting)));
    let (Some((least, most)), Some((fixed_least, fixed_most))) =
        (both.range(), fixed.over(&stock).range())
    else {
        return Target::at_least(what, None, bound);
    };
    Target::new(
        format!("{what} >= {bound}"),
        least.1 >= bound,
        format!(
            "{:.2} at {} MIPS to {:.2} at {} MIPS; the best fixed setting {:.2} to {:.2}",
            least.1,
            least.0.mips(),
            most.1,
            most.0.mips(),
            fixed_least.1,
            fixed_most.1
        ),
    )
}

/// `ratio` is at least `bound` at the speed where it is least.
fn worst(what: String, ratio: &Series, bound: f64) -> Target {
    match ratio.range() {
        Some(((speed, least), _)) => Target::new(
            format!("{what} >= {bound}"),
            least >= bound,
            format!("{least:.3} at {} MIPS", speed.mips()),
        ),
        None => Target::at_least(what, None, bound),
    }
}

/// Does it cost anything that the module is there? Of a workload, all pairs of runs with the same seed at the same speed
/// together: a single speed's pairs scatter by more than what is looked for.
fn presence(results: &Results) -> impl Iterator<Item = Target> {
    REPEATED_LOADS.into_iter().map(|load| {
        let ratios: Vec<f64> = speeds()
            .flat_map(|speed| {
                let rates = |setting| rates_by_seed(results, load, speed, setting);
                let pairs = rates("stock").zip(rates(NOT_LOADED));
                pairs.filter_map(|(with, without)| Some(with? / without?))
            })
            .collect();
        let what = format!(
            "{}: the module loaded and off over not loaded, median of {} pairs over all speeds, >= 0.99",
            load.name(),
            ratios.len()
        );
        match median(&ratios) {
            Some(ratio) => Target::new(
                what,
                ratio >= 0.99,
                spread_as(&ratios, |ratio| format!("{ratio:.4}")),
            ),
            None => Target::at_least(what, None, 0.99),
        }
    })
}

/// Does a repeat give the same?
fn again(results: &Results) -> Option<Target> {
    let (load, speed) = (Load::Varmail, SPEEDS[0]);
    let first = results.cells(Sheet::Sweep, load, speed)?;
    let second = results.cells(Sheet::Again, load, speed)?;
    let same = first.iter().zip(second).filter(|(a, b)| a == b).count();
    Some(Target::new(
        "a group that is made twice gives the same figures, all of them",
        same == first.len() && first.len() == second.len(),
        format!("{same} of {} cells", first.len()),
    ))
}
