//! Part `kills`: whichever of a sweep, a run and their helpers are killed, the next command of `luc` restores
//! everything.

mod leftovers;
pub(super) mod processes;
mod site;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use luc_stats::seeded_random;
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::error::EvaluateError;
use crate::harness::{Harness, stop_if_interrupted};
use crate::progress::Progress;
use processes::{KilledRole, ROLES};
use site::{KillSite, NEXT_COMMANDS};

const KILLS: u64 = 1000;
/// Range of the time from the start to a kill, ms: while the sweep clears up, makes disks, runs or writes.
const KILL_DELAY_MS: std::ops::Range<u64> = 0..2000;
/// Range of the time between SIGTERM and SIGKILL where both are sent, ms.
const TERM_TO_KILL_MS: std::ops::Range<u64> = 0..60;
/// Range of the time that survivors go on before they are told to end, ms.
const SURVIVOR_MS: std::ops::Range<u64> = 0..150;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    Term,
    Kill,
    Both,
}

impl How {
    const ALL: [Self; 3] = [Self::Term, Self::Kill, Self::Both];

    fn name(self) -> &'static str {
        match self {
            Self::Term => "TERM",
            Self::Kill => "KILL",
            Self::Both => "TERM, then KILL",
        }
    }
}

/// A kill, with what it left.
#[derive(Debug)]
struct KillOutcome {
    how: How,
    left: usize,
    run: Value,
}

fn kill(
    site: &mut KillSite,
    number: u64,
    random: &mut ChaCha8Rng,
) -> Result<KillOutcome, EvaluateError> {
    let began = Instant::now();
    site.start()?;
    let after = Duration::from_millis(random.random_range(KILL_DELAY_MS));
    thread::sleep(after);
    let how = How::ALL[random.random_range(0..How::ALL.len())];
    let meant = draw_roles(random);
    let processes = site.processes();
    let mut victims: Vec<(KilledRole, i32)> =
        processes.into_iter().filter(|(role, _)| meant.contains(role)).collect();
    for last in (1..victims.len()).rev() {
        victims.swap(last, random.random_range(0..=last));
    }
    let send = |signal| victims.iter().for_each(|&(_, pid)| processes::send(pid, signal));
    if how != How::Kill {
        send(Signal::TERM);
    }
    if how == How::Both {
        thread::sleep(Duration::from_millis(random.random_range(TERM_TO_KILL_MS)));
    }
    if how != How::Term {
        send(Signal::KILL);
        processes::await_end(victims.iter().map(|&(_, pid)| pid));
    }
    let rest = Duration::from_millis(random.random_range(SURVIVOR_MS));
    thread::sleep(rest);
    let hung = site.end();
    let next = NEXT_COMMANDS[random.random_range(0..NEXT_COMMANDS.len())];
    let said = site.next(next)?;
    let left = site.left_at_last();
    let cut = site.cut();
    let mut killed: Vec<KilledRole> = victims.iter().map(|&(role, _)| role).collect();
    killed.sort_unstable();
    killed.dedup();
    let run = json!({
        "kill": number + 1, "how": how.name(), "killed": killed.iter().map(|role| role.name()).collect::<Vec<_>>(),
        "after_ms": after.as_millis() as u64, "rest_ms": rest.as_millis() as u64, "next": next.join(" "), "said": said,
        "left": left, "cut": cut, "hung": hung, "took_ms": began.elapsed().as_millis() as u64,
    });
    site.reset(!left.is_empty())?;
    Ok(KillOutcome { how, left: left.len(), run })
}

/// Draws a random subset that is not empty.
fn draw_roles(random: &mut ChaCha8Rng) -> Vec<KilledRole> {
    let chosen = random.random_range(1..1_u32 << ROLES.len());
    let is_chosen = |at: usize| chosen & (1 << at) != 0;
    (0..ROLES.len()).filter(|&at| is_chosen(at)).map(|at| ROLES[at]).collect()
}

pub(super) fn run(harness: &Harness) -> Result<(), EvaluateError> {
    let kills = harness.options.cuts.unwrap_or(KILLS);
    let sites = (0..harness.options.jobs.max(1))
        .map(|number| KillSite::create(harness, number))
        .collect::<Result<Vec<_>, _>>()?;
    let has = sites.first().map(KillSite::about).unwrap_or_default();
    let seed = harness.options.seed;
    let progress = Mutex::new(Progress::new(harness.part, kills as usize));
    let (next, outcomes) = (AtomicU64::new(0), Mutex::new(BTreeMap::new()));
    let work = |mut site: KillSite| -> Result<(), EvaluateError> {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= kills {
                return Ok(());
            }
            stop_if_interrupted()?;
            let outcome = kill(&mut site, number, &mut seeded_random::stream(seed, number))?;
            let text = format!("{}: {} left", outcome.how.name(), outcome.left);
            let lock = || PoisonError::into_inner;
            progress.lock().unwrap_or_else(lock()).step(&text);
            let lock = || PoisonError::into_inner;
            outcomes.lock().unwrap_or_else(lock()).insert(number, outcome);
        }
    };
    let work = &work;
    let ended: Vec<Result<(), EvaluateError>> = thread::scope(|scope| {
        let threads: Vec<_> =
            sites.into_iter().map(|site| scope.spawn(move || work(site))).collect();
        let join = |thread: thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or(Err(EvaluateError::Interrupted))
        };
        threads.into_iter().map(join).collect()
    });
    let outcomes = outcomes.into_inner().unwrap_or_else(PoisonError::into_inner);
    outcomes.values().for_each(|outcome| harness.keep(outcome.run.clone()));
    ended.into_iter().collect::<Result<(), _>>()?;
    harness.keep(json!({ "sweep": has, "shared_memory": leftovers::shared_memory(harness)? }));
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn all_subsets_are_drawn() {
        let mut random = seeded_random::stream(1, 0);
        let drawn: BTreeSet<Vec<KilledRole>> = (0..4000).map(|_| draw_roles(&mut random)).collect();
        assert_eq!(drawn.len(), (1 << ROLES.len()) - 1);
        assert!(drawn.iter().all(|roles| !roles.is_empty()));
    }
}
