//! Part `coverage`: do 95 % intervals cover 95 %?

use luc_stats::simulated_coverage::cases;
use serde_json::json;

use crate::EvaluateError;
use crate::harness::{Harness, stop_if_interrupted};
use crate::progress::Progress;

pub(super) fn run(harness: &Harness) -> Result<(), EvaluateError> {
    let wanted: Vec<_> =
        cases().into_iter().filter(|case| harness.options.wants(&case.to_string())).collect();
    let mut progress = Progress::new(harness.part, wanted.len());
    for case in wanted {
        stop_if_interrupted()?;
        let found = case.simulate(case.truth());
        let name = case.to_string();
        harness
            .keep(json!({ "case": name, "covered": found.share, "mean_repeats": found.repeats }));
        progress.step(&format!("{name}: {:.2} %", found.share * 100.0));
    }
    Ok(())
}
