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

use luc_harness::cells;
use luc_harness::report::{Page, Table, Target};
use luc_stats::random;
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

#[derive(Debug)]
struct KillOutcome {
    how: How,
    /// Roles of the killed processes. A role that was drawn may have no process.
    killed: Vec<KilledRole>,
    /// Output of the next command, which says what it restored or could not.
    said: String,
    left: Vec<String>,
    /// Whether a process did not end by SIGTERM.
    hung: bool,
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
    Ok(KillOutcome { how, killed, said, left, hung, run })
}

/// Draws a random subset that is not empty.
fn draw_roles(random: &mut ChaCha8Rng) -> Vec<KilledRole> {
    let chosen = random.random_range(1..1_u32 << ROLES.len());
    let is_chosen = |at: usize| chosen & (1 << at) != 0;
    (0..ROLES.len()).filter(|&at| is_chosen(at)).map(|at| ROLES[at]).collect()
}

pub(super) fn run(harness: &Harness) -> Result<Page, EvaluateError> {
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
            let outcome = kill(&mut site, number, &mut random::stream(seed, number))?;
            let text = format!("{}: {} left", outcome.how.name(), outcome.left.len());
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
    let outcomes: Vec<KillOutcome> = outcomes.into_values().collect();
    let shared = leftovers::shared_memory(harness)?;
    Ok(page(&outcomes, &has, shared.as_deref()))
}

fn page(outcomes: &[KillOutcome], has: &str, shared: Option<&str>) -> Page {
    let count = |is: &dyn Fn(&&KillOutcome) -> bool| outcomes.iter().filter(is).count().to_string();
    let mut by_signal =
        Table::new(&["signal", "kills", "restored by the next command", "with something left"]);
    for how in How::ALL {
        by_signal.row(cells![
            how.name(),
            count(&|outcome| outcome.how == how),
            count(&|outcome| outcome.how == how && outcome.said.contains("restored")),
            count(&|outcome| outcome.how == how && !outcome.left.is_empty())
        ]);
    }
    let mut by_role = Table::new(&["process", "killed", "with something left"]);
    for role in ROLES {
        by_role.row(cells![
            role.name(),
            count(&|outcome| outcome.killed.contains(&role)),
            count(&|outcome| outcome.killed.contains(&role) && !outcome.left.is_empty())
        ]);
    }
    let mut found = Table::of_words(&["kill", "what was left"]);
    for outcome in outcomes.iter().filter(|outcome| !outcome.left.is_empty()) {
        found.row(cells![outcome.run["kill"], outcome.left.join("; ")]);
    }
    let cut: u64 = outcomes.iter().filter_map(|outcome| outcome.run["cut"].as_u64()).sum();
    let took: Vec<f64> =
        outcomes.iter().filter_map(|outcome| outcome.run["took_ms"].as_f64()).collect();
    let mut tables = vec![
        ("By signal:".to_owned(), by_signal),
        ("By process, any signal, alone or with others:".to_owned(), by_role),
    ];
    if !found.is_empty() {
        tables.push(("What was left:".to_owned(), found));
    }
    let left = outcomes.iter().filter(|outcome| !outcome.left.is_empty()).count();
    let hung = outcomes.iter().filter(|outcome| outcome.hung).count();
    let empty = outcomes.iter().filter(|outcome| outcome.killed.is_empty()).count();
    Page {
        title: "Killed, and put back".to_owned(),
        about: format!(
            "A sweep ({has}) and beside it a `luc run` that lends settings of the kernel module (of a directory tree that \
             stands for it, as the processors' are) run for {} to {} ms. Then a random subset of the sweep, its cleanup \
             process, its programs, the daemon of its disk, the run, its command and its watcher gets SIGTERM, SIGKILL, or \
             both. What is left of the two is told to end by SIGTERM, as a user would. Then comes one more command of \
             `luc`, drawn from `{}`; and then nothing may be left: the processors' settings; the device's content and \
             scheduler; disks, loop devices, mounts, cgroups, folders, files that say what to restore, processes; the \
             module's settings. ({empty} of the {} kills met none of the processes that were drawn. In the trees, \
             {cut} settings were found empty and are not counted: a write that is killed between emptying a file and filling \
             it does that, and settings of the kernel are not files.) A kill took {:.1} s in the median.",
            KILL_DELAY_MS.start,
            KILL_DELAY_MS.end,
            NEXT_COMMANDS.map(|words| words.join(" ")).join("`, `"),
            outcomes.len(),
            luc_stats::median(&took).unwrap_or(0.0) / 1e3,
        ),
        tables,
        targets: vec![
            Target::new(
                format!(
                    "nothing is left changed after {} kills and the next command",
                    outcomes.len()
                ),
                left == 0,
                left.to_string(),
            ),
            Target::new(
                "whatever was not killed ends by SIGTERM within 30 s",
                hung == 0,
                hung.to_string(),
            ),
            Target::new(
                "no shared memory is left after one more run",
                shared.is_none(),
                shared.unwrap_or("none"),
            ),
        ],
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn all_subsets_are_drawn() {
        let mut random = random::stream(1, 0);
        let drawn: BTreeSet<Vec<KilledRole>> = (0..4000).map(|_| draw_roles(&mut random)).collect();
        assert_eq!(drawn.len(), (1 << ROLES.len()) - 1);
        assert!(drawn.iter().all(|roles| !roles.is_empty()));
    }
}
