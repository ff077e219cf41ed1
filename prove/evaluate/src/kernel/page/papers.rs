//! The papers' headline figures beside ours.

use super::super::super::report::Table;
use super::super::cells::Load;
use super::super::results::Results;
use super::series::Series;

/// Above the table.
pub(super) const ABOUT: &str = "The papers' gains (LUC paper, section V; thesis, sections 4.6 and 5.4) and \
    those of the same controller here, over all speeds. In a closed loop whose clients are in two groups \
    that take turns, sharing every commit can at most double the rate, less what the processor needs; \
    where the papers have more, something else must have helped, such as seeks that fewer commits save: \
    these disks have none. Their processors were real ones with several cores:";

/// A gain that a paper reports.
struct Reported {
    load: Load,
    setting: &'static str,
    /// Lowest and highest; the same if only \"up to\" is given.
    gain: (f64, f64),
}

const fn reported(load: Load, setting: &'static str, low: f64, high: f64) -> Reported {
    Reported {
        load,
        setting,
        gain: (low, high),
    }
}

const REPORTED: [Reported; 8] = [
    reported(Load::Metarates(4), "delay", 2.57, 2.57),
    reported(Load::Metarates(16), "delay", 1.82, 1.82),
    reported(Load::Metarates(32), "delay", 1.49, 1.49),
    reported(Load::Metarates(4), "pid", 2.26, 2.26),
    reported(Load::InitialWrite(256), "delay", 3.65, 3.65),
    reported(Load::Varmail, "pid", 1.03, 1.23),
    reported(Load::Oltp, "copy heuristic", 1.11, 1.25),
    reported(Load::Oltp, "both auto", 1.25, 1.25),
];

pub(super) fn table(results: &Results) -> Table {
    let mut table = Table::new(&[
        "workload, setting",
        "paper",
        "here",
        "and \"both auto\"",
        "verdict",
    ]);
    for Reported {
        load,
        setting,
        gain,
    } in &REPORTED
    {
        let stock = Series::of(results, *load, "stock");
        let range = |setting| Series::of(results, *load, setting).over(&stock).range();
        let (Some((least, most)), Some((auto_least, auto_most))) =
            (range(setting), range("both auto"))
        else {
            continue;
        };
        table.row(vec![
            format!("{}, {setting}", load.name()),
            paper(*gain),
            format!("{:.2} to {:.2}", least.1, most.1),
            format!("{:.2} to {:.2}", auto_least.1, auto_most.1),
            verdict(gain.1, most.1.max(auto_most.1)).to_owned(),
        ]);
    }
    table
}

fn paper((low, high): (f64, f64)) -> String {
    if low < high {
        format!("{low} to {high}")
    } else {
        format!("up to {high}")
    }
}

/// The best that the module does here against the papers' best.
fn verdict(paper: f64, here: f64) -> &'static str {
    match here / paper {
        1.02.. => "beaten",
        0.98.. => "reached",
        _ => "not reached",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_follow_the_figures() {
        assert_eq!(verdict(1.25, 1.33), "beaten");
        assert_eq!(verdict(1.25, 1.25), "reached");
        assert_eq!(verdict(3.65, 1.0), "not reached");
        assert_eq!(paper((1.03, 1.23)), "1.03 to 1.23");
        assert_eq!(paper((2.57, 2.57)), "up to 2.57");
    }
}
