//! Measures against other guests on a rented machine's host, and repeats that were disturbed nevertheless.

use std::fmt::{self, Write};

use super::SweepReport;
use crate::results_journal::RepeatRecord;

/// Writes a line for each.
pub(super) fn write(f: &mut impl Write, report: &SweepReport) -> fmt::Result {
    if report.plan.poll_idle {
        writeln!(f, "idle processors polled and did not halt (0 in /dev/cpu_dma_latency)")?;
    }
    let Some(most) = report.plan.stop.stolen else {
        return Ok(());
    };
    let repeats = &report.repeats;
    let discarded: usize = repeats.iter().map(|one| one.discarded.len()).sum();
    let is_disturbed = |one: &&RepeatRecord| one.environment.stolen_share > most;
    let disturbed = repeats.iter().filter(is_disturbed).count();
    if discarded == 0 && disturbed == 0 {
        return Ok(());
    }
    writeln!(
        f,
        "the hypervisor took more than {:.1} % of the processors' time (stop.stolen) from {discarded} attempts, which were \
         discarded and made again, and from the last attempts of {disturbed} repeats, which count",
        most * 100.0
    )
}

#[cfg(test)]
mod tests {
    use luc_power::energy::EnergyProvenance;

    use super::*;
    use crate::plan::SweepPlan;
    use crate::report::report;
    use crate::results_journal::{DiscardedRepeat, RecordedResults};
    use crate::sweep_points::points;
    use crate::test_plan::{plan, record};

    #[test]
    fn attempts_and_repeats_that_were_disturbed_are_counted() {
        let mut plan = plan();
        let mut records = vec![record("w,1,a,off", 0, 5.0), record("w,1,b,off", 0, 6.0)];
        let said = |plan: &SweepPlan, records: &[RepeatRecord]| {
            let results = RecordedResults { records: records.to_vec(), failures: Vec::new() };
            let report = report(plan, &points(plan), results, EnergyProvenance::default(), false);
            let mut text = String::new();
            write(&mut text, &report).expect("a string takes all");
            text
        };
        assert_eq!(said(&plan, &records), "");
        plan.stop.stolen = Some(0.02);
        plan.poll_idle = true;
        let said_of_idle = said(&plan, &records);
        assert!(said_of_idle.contains("polled") && said_of_idle.lines().count() == 1);
        let attempt = DiscardedRepeat { value: 4.0, stolen_share: 0.1 };
        records[0].discarded = vec![attempt; 3];
        records[0].environment.stolen_share = 0.03;
        let text = said(&plan, &records);
        for words in ["2.0 %", "from 3 attempts", "of 1 repeats"] {
            assert!(text.contains(words), "{text}");
        }
    }
}
