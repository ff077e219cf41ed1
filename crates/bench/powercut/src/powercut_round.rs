//! One round: write, acknowledge, cut, restore, check.

use std::time::Duration;

use luc_disk::CutReport;
use luc_stats::seeded_random;
use luc_units::OnPath as _;
use rand::RngExt;

use super::PowercutRequest;
use super::acks::{Acks, AcksEnd};
use super::durability_check::{self, Acknowledgements};
use super::error::PowercutError;
use super::fsck::FsckProgram;
use super::report::{BadRound, RoundResult};
use super::round_setup::RoundSetup;

/// The chances of a round.
#[derive(Debug, PartialEq, Eq)]
struct Fate {
    /// Time from the first acknowledgement to the cut.
    cut_after: Duration,
    /// Seed that draws the unflushed sectors that persist; `None`: none persists.
    cut_seed: Option<u64>,
}

impl Fate {
    /// Draws the fate of the round with this seed. The cut comes after 0.1 to 1 s. In a quarter of the rounds no
    /// unflushed sector persists, in the others a random subset does.
    fn of(seed: u64) -> Self {
        let mut random = seeded_random::stream(seed, u64::MAX);
        Self {
            cut_after: Duration::from_micros(random.random_range(100_000..1_000_000)),
            cut_seed: (random.random_range(0..4) > 0).then(|| random.random()),
        }
    }
}

pub(super) fn round(
    plan: &PowercutRequest,
    checker: Option<&FsckProgram>,
    seed: u64,
) -> Result<RoundResult, PowercutError> {
    let fate = Fate::of(seed);
    let mut site = RoundSetup::create(plan)?;
    let mut acknowledged = Acknowledgements::default();
    let cut = until_the_cut(plan, seed, &fate, &mut site, &mut acknowledged)?;
    site.kill_clients();
    site.unmount()?;
    site.disk.restore()?;

    let mut round = BadRound {
        seed,
        acknowledged: acknowledged.count,
        lost: 0,
        torn: 0,
        not_mountable: false,
        fsck_unclean: false,
        examples: Vec::new(),
    };
    match site.mount() {
        Ok(()) => {
            let findings = durability_check::check(&site.dir, seed, &acknowledged);
            round.lost = findings.lost;
            round.torn = findings.torn;
            round.examples = findings.examples;
            site.unmount()?;
        }
        Err(luc_disk::Error::Interrupted) => return Err(PowercutError::Interrupted),
        Err(error) => {
            round.not_mountable = true;
            round.examples.push(error.to_string());
        }
    }
    if let Some(problem) = checker.map(|checker| checker.check(&site.device)).transpose()?.flatten()
    {
        round.fsck_unclean = true;
        round.examples.push(problem);
    }
    site.remove()?;
    Ok(RoundResult { round, cut })
}

/// Lets the clients work, and cuts the power. Acknowledgements are read before the cut only.
fn until_the_cut(
    plan: &PowercutRequest,
    seed: u64,
    fate: &Fate,
    site: &mut RoundSetup,
    acknowledged: &mut Acknowledgements,
) -> Result<CutReport, PowercutError> {
    let pipe = site.start(plan, seed)?;
    let program = match &plan.command {
        Some(words) => words.first().map(|word| word.to_string_lossy().into_owned()),
        None => None,
    };
    let program = program.unwrap_or_else(|| "the clients".to_owned());
    let dir = site.dir.clone();
    let paths_in = plan.command.is_some().then_some(dir.as_path());
    let mut acks = Acks::new(pipe, paths_in, &program)
        .map_err(PowercutError::io("preparing the clients' output", &dir))?;
    match acks.collect(fate.cut_after, acknowledged)? {
        AcksEnd::Due => site.disk.cut(fate.cut_seed),
        AcksEnd::Closed => Err(PowercutError::Ended {
            program,
            how: site.how_ended(),
            advice: if plan.command.is_some() {
                "it must go on until it is killed"
            } else {
                "see the reason given, or use a larger --size"
            },
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fate_follows_from_the_seed() {
        let fates: Vec<Fate> = (0..200).map(Fate::of).collect();
        assert!(fates.iter().zip(0..).all(|(fate, seed)| *fate == Fate::of(seed)));
        let span = Duration::from_millis(100)..Duration::from_secs(1);
        assert!(fates.iter().all(|fate| span.contains(&fate.cut_after)));
        let harsh = fates.iter().filter(|fate| fate.cut_seed.is_none()).count();
        assert!((20..80).contains(&harsh), "{harsh}");
    }
}
