//! Measures against other guests on a rented machine's host, and repeats that were disturbed nevertheless.

use std::fmt::{self, Write};

use super::Report;
use crate::journal::Record;

/// Writes a line for each.
pub(super) fn write(f: &mut impl Write, report: &Report) -> fmt::Result {
    if report.plan.poll_idle {
        writeln!(f, "idle processors polled and did not halt (0 in /dev/cpu_dma_latency)")?;
    }
    let Some(most) = report.plan.stop.stolen else {
        return Ok(());
    };
    let repeats = &report.repeats;
    let discarded: usize = repeats.iter().map(|one| one.discarded.len()).sum();
    let is_disturbed = |one: &&Record| one.environment.stolen_share > most;
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
    use luc_power::energy::About;

    use super::*;
    use crate::journal::{Discarded, Results};
    use crate::made_up::{plan, record};
    use crate::plan::Plan;
    use crate::points::points;
    use crate::report::report;

    #[test]
    fn attempts_and_repeats_that_were_disturbed_are_counted() {
        let mut plan = plan();
        let mut records = vec![record("w,1,a,off", 0, 5.0), record("w,1,b,off", 0, 6.0)];
        let said = |plan: &Plan, records: &[Record]| {
            let results = Results { records: records.to_vec(), failures: Vec::new() };
            let report = report(plan, &points(plan), results, About::default(), false);
            let mut text = String::new();
            write(&mut text, &report).expect("a string takes all");
            text
        };
        assert_eq!(said(&plan, &records), "");
        plan.stop.stolen = Some(0.02);
        plan.poll_idle = true;
        let said_of_idle = said(&plan, &records);
        assert!(said_of_idle.contains("polled") && said_of_idle.lines().count() == 1);
        let attempt = Discarded { value: 4.0, stolen_share: 0.1 };
        records[0].discarded = vec![attempt; 3];
        records[0].environment.stolen_share = 0.03;
        let text = said(&plan, &records);
        for words in ["2.0 %", "from 3 attempts", "of 1 repeats"] {
            assert!(text.contains(words), "{text}");
        }
    }
}
