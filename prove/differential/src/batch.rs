//! Runs a batch in several lanes at the same time, and compares what programs were told.

use anyhow::{Result, anyhow};

use crate::compare::{self, Difference, DifferenceKind};
use crate::lane::{Batch, BatchOutcome, Lane, Way};
use crate::program::Program;
use crate::promises;

/// Runs a batch in all lanes at the same time.
pub(crate) fn run_batch(
    lanes: &[&Lane],
    batch: &Batch,
    programs: &[&Program],
) -> Result<Vec<BatchOutcome>> {
    std::thread::scope(|scope| {
        let running: Vec<_> =
            lanes.iter().map(|lane| scope.spawn(|| lane.run(batch, programs))).collect();
        let ended = running.into_iter().zip(lanes).map(|(running, lane)| {
            let ran = running.join().map_err(|_| anyhow!("a lane panicked"))?;
            let said = lane.errors();
            ran.map_err(|error| error.context(format!("{:?}: {}", lane.way, said.trim())))
        });
        ended.collect()
    })
}

/// Returns the differences of each program in one lane, by the program's number.
pub(crate) fn differences(
    batch: &Batch,
    programs: &[&Program],
    plain: &BatchOutcome,
    with: &BatchOutcome,
    way: Way,
) -> Vec<(usize, Vec<Difference>)> {
    let each = programs.iter().enumerate().map(|(number, program)| {
        let outcome = &with.outcomes[number];
        let lost = promises::broken_promises(program, outcome, &with.disks[number], with.end_ns);
        let lost = lost.into_iter();
        let mut all: Vec<Difference> =
            lost.map(|one| Difference::new(DifferenceKind::Lost, one)).collect();
        // After a cut in its midst everybody is told errors, at another moment.
        if way != Way::Plain && batch.cut_after.is_none() {
            let plain = &plain.outcomes[number];
            all.extend(compare::differences(program, plain, outcome));
        }
        if way == Way::Plain && outcome.is_hung {
            let about = "without LUC, too: the program is at fault".to_owned();
            all.push(Difference::new(DifferenceKind::Hung, about));
        }
        (number, all)
    });
    each.filter(|(_, all)| !all.is_empty()).collect()
}
