//! Part `coverage`: do 95 % intervals cover 95 %?

use luc_harness::report::{Page, Table, Target};
use luc_stats::simulated::{TRIALS, cases};
use serde_json::json;

use crate::EvaluateError;
use crate::harness::{Harness, stop_if_interrupted};
use crate::progress::Progress;

/// Coverage that counts as 95 %.
const COVERAGE_RANGE: std::ops::RangeInclusive<f64> = 0.93..=0.97;

pub(super) fn run(harness: &Harness) -> Result<Page, EvaluateError> {
    let wanted: Vec<_> =
        cases().into_iter().filter(|case| harness.options.wants(&case.to_string())).collect();
    let mut progress = Progress::new(harness.part, wanted.len());
    let mut table = Table::new(&["case", "covered", "mean repeats"]);
    let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
    for case in wanted {
        stop_if_interrupted()?;
        let found = case.simulate(case.truth());
        let name = case.to_string();
        harness
            .keep(json!({ "case": name, "covered": found.share, "mean_repeats": found.repeats }));
        progress.step(&format!("{name}: {:.2} %", found.share * 100.0));
        table.row(vec![
            name,
            format!("{:.2} %", found.share * 100.0),
            format!("{:.1}", found.repeats),
        ]);
        (least, most) = (least.min(found.share), most.max(found.share));
    }
    let bounds = (COVERAGE_RANGE.start() * 100.0, COVERAGE_RANGE.end() * 100.0);
    let target = Target::new(
        format!("intervals of 95 % cover between {} and {} %, in every case", bounds.0, bounds.1),
        COVERAGE_RANGE.contains(&least) && COVERAGE_RANGE.contains(&most),
        format!("{:.2} to {:.2} %", least * 100.0, most * 100.0),
    );
    Ok(Page {
        title: "Whether intervals cover".to_owned(),
        about: format!(
            "What `luc sweep` says of a point, on simulated figures whose truth is known: {TRIALS} experiments of each \
             case, seeded. A repeat is the mean of 20 skewed intervals, each of which leans on the last (log-normal with \
             an autocorrelation of 0.7, or gamma draws of shape 1.5 mixed 7 to 3), times a log-normal factor of its own; \
             \"spread\" is that factor's. The truth is the median of 100,001 repeats, or for ratios the factor between \
             two settings. Repeats are made as a sweep makes them: a fixed number, or at least the smallest, then twice as \
             many each time until half the interval over the median is within the goal, 100 at most."
        ),
        tables: vec![("Experiments whose interval holds the truth:".to_owned(), table)],
        targets: vec![target],
    })
}
