//! Part `notifier-sigkill`: the supervisor of notified calls, its keepers and the programs are killed. No call fails
//! that would not without luc, and none hangs.

use std::path::Path;
use std::thread;
use std::time::Duration;

use luc_harness::cells;
use luc_harness::report::{Page, Table, Target, or_dash};
use luc_stats::random;
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use rustix::process::Signal;
use serde_json::json;

use super::crowd::{Counted, Crowd, ENDLESS_MS, HANG_MS};
use crate::disks::{Disk, EXT4};
use crate::error::EvaluateError;
use crate::harness::Harness;
use crate::kills::processes::{await_end, send};
use crate::progress::Progress;

const KILLS: u64 = 1000;
/// Number of callers in a crowd.
const CALLERS: u64 = 8;
/// Range of the time until a serving process is killed, µs. It counts from the execution of the program or from the
/// last kill.
const SERVING_KILL_US: std::ops::Range<u64> = 40_000..130_000;
/// Range of the time of a kill of a starting process, µs after it exists.
const STARTING_KILL_US: std::ops::Range<u64> = 0..4_000;
/// Time that programs go on after their server was killed.
const AFTERMATH: Duration = Duration::from_millis(400);
/// Number of kills in a step of the progress.
const KILLS_PER_STEP: u64 = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Victim {
    Supervisor,
    SupervisorAtStart,
    Keeper,
    KeeperAtStart,
    Program,
}

impl Victim {
    const ALL: [Self; 5] = [
        Self::Supervisor,
        Self::SupervisorAtStart,
        Self::Keeper,
        Self::KeeperAtStart,
        Self::Program,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Supervisor => "the supervisor",
            Self::SupervisorAtStart => "the supervisor, as it starts",
            Self::Keeper => "the keeper, and each that follows",
            Self::KeeperAtStart => "the keeper, as it starts",
            Self::Program => "programs beside one that stays",
        }
    }
}

/// Counts over the kills of a victim.
#[derive(Debug, Default)]
struct Tally {
    kills: u64,
    counted: Counted,
    /// `None` if a killed supervisor wrote no report.
    held: Option<u64>,
    left: usize,
}

struct CrowdPlace<'a> {
    harness: &'a Harness,
    disk: &'a Disk<'a>,
    program: &'a Path,
}

impl CrowdPlace<'_> {
    fn start(&self) -> Result<Crowd<'_>, EvaluateError> {
        let (callers, time_ms, limit_ms) =
            (CALLERS.to_string(), ENDLESS_MS.to_string(), HANG_MS.to_string());
        let program = self.program.to_string_lossy();
        let words = [&*program, "crowd", &callers, &time_ms, &limit_ms];
        Crowd::start(self.harness, self.disk, &words)
    }

    /// Makes one kill in a crowd of its own.
    fn kill_one(
        &self,
        victim: Victim,
        random: &mut ChaCha8Rng,
        tally: &mut Tally,
    ) -> Result<(), EvaluateError> {
        let mut crowd = self.start()?;
        if victim == Victim::KeeperAtStart {
            let keeper = crowd.next_keeper(None)?;
            pause(random, STARTING_KILL_US);
            send(keeper, Signal::KILL);
            crowd.until_executed()?;
            crowd.next_keeper(Some(keeper))?;
        } else {
            crowd.until_executed()?;
            crowd.next_keeper(None)?;
            let when_us =
                if victim == Victim::Supervisor { SERVING_KILL_US } else { STARTING_KILL_US };
            pause(random, when_us);
            send(crowd.supervisor(), Signal::KILL);
        }
        crowd.until_called()?;
        thread::sleep(AFTERMATH);
        self.end(&mut crowd, tally, 1)
    }

    /// Kills one crowd's keepers, one after the other.
    fn kill_keepers(
        &self,
        kills: u64,
        random: &mut ChaCha8Rng,
        tally: &mut Tally,
    ) -> Result<(), EvaluateError> {
        let mut crowd = self.start()?;
        crowd.until_executed()?;
        let mut keeper = None;
        for _ in 0..kills {
            let next = crowd.next_keeper(keeper)?;
            pause(random, SERVING_KILL_US);
            send(next, Signal::KILL);
            keeper = Some(next);
        }
        await_end(keeper.into_iter());
        crowd.until_called()?;
        self.end(&mut crowd, tally, kills)?;
        tally.held = Some(tally.held.unwrap_or(0) + crowd.held()?);
        Ok(())
    }

    /// Kills crowds one after the other, beside one that stays.
    fn kill_programs(&self, kills: u64, tally: &mut Tally) -> Result<(), EvaluateError> {
        let script = format!(
            "p={}; $p crowd {CALLERS} {ENDLESS_MS} {HANG_MS} & \
             until [ -s crowd-$!-0 ]; do sleep 0.01; done; i=0; while [ $i -lt $1 ]; do \
             $p crowd {CALLERS} {ENDLESS_MS} {HANG_MS} >/dev/null & \
             sleep 0.0$((4 + i % 6)); kill -KILL $!; i=$((i + 1)); done; : >over; wait",
            self.program.display()
        );
        let words = ["sh", "-c", &script, "sh", &kills.to_string()];
        let mut crowd = Crowd::start(self.harness, self.disk, &words)?;
        let counted = crowd.counted()?;
        self.keep(&crowd, tally, counted, kills);
        tally.held = Some(tally.held.unwrap_or(0) + crowd.held()?);
        Ok(())
    }

    fn end(
        &self,
        crowd: &mut Crowd<'_>,
        tally: &mut Tally,
        kills: u64,
    ) -> Result<(), EvaluateError> {
        let counted = crowd.end()?;
        self.keep(crowd, tally, counted, kills);
        Ok(())
    }

    fn keep(&self, crowd: &Crowd<'_>, tally: &mut Tally, counted: Counted, kills: u64) {
        let left = crowd.left();
        tally.kills += kills;
        tally.counted.add(counted);
        tally.left += left;
        self.harness.keep(json!({
            "command": crowd.command, "kills": kills, "calls": counted.calls, "slow": counted.slow,
            "failed": counted.failed, "longest_ms": counted.longest_ms, "left": left,
        }));
    }
}

fn pause(random: &mut ChaCha8Rng, range_us: std::ops::Range<u64>) {
    thread::sleep(Duration::from_micros(random.random_range(range_us)));
}

pub(crate) fn run(harness: &Harness) -> Result<Page, EvaluateError> {
    let kills = harness.options.cuts.unwrap_or(KILLS);
    let source = include_str!("../../../../crates/luc/tests/programs/notified.c");
    let program = harness.compile("notified", source, &["-static"])?;
    let disk = Disk::create(harness, &EXT4)?;
    let place = CrowdPlace { harness, disk: &disk, program: &program };
    let mut victims = Victim::ALL.to_vec();
    victims.retain(|victim| harness.options.wants(victim.name()));
    let each = kills.div_ceil(victims.len().max(1) as u64);
    let steps = victims.len() * each.div_ceil(KILLS_PER_STEP) as usize;
    let mut progress = Progress::new(harness.part, steps);
    let mut table = Table::new(&[
        "killed",
        "kills",
        "calls",
        "failed",
        "hung",
        "longest, ms",
        "held",
        "left behind",
    ]);
    let mut all = Tally::default();
    for (stream, victim) in victims.into_iter().enumerate() {
        let mut random = random::stream(harness.options.seed, stream as u64);
        let mut tally = Tally::default();
        while tally.kills < each {
            let kills = KILLS_PER_STEP.min(each - tally.kills);
            match victim {
                Victim::Keeper => place.kill_keepers(kills, &mut random, &mut tally)?,
                Victim::Program => place.kill_programs(kills, &mut tally)?,
                Victim::Supervisor | Victim::SupervisorAtStart | Victim::KeeperAtStart => {
                    for _ in 0..kills {
                        place.kill_one(victim, &mut random, &mut tally)?;
                    }
                }
            }
            progress.step(&format!("{}: {} kills", victim.name(), tally.kills));
        }
        let counted = tally.counted;
        table.row(cells![
            victim.name(),
            tally.kills,
            counted.calls,
            counted.failed,
            counted.slow,
            counted.longest_ms,
            or_dash(tally.held),
            tally.left
        ]);
        all.kills += tally.kills;
        all.counted.add(counted);
        all.held = all.held.or(Some(0)).map(|held| held + tally.held.unwrap_or(0));
        all.left += tally.left;
    }
    Ok(page(&all, table))
}

fn page(all: &Tally, table: Table) -> Page {
    let Counted { calls, slow, failed, longest_ms } = all.counted;
    let held = all.held.unwrap_or(0);
    Page {
        title: "Killed supervisors, keepers and programs".to_owned(),
        about: format!(
            "A static program whose {CALLERS} threads write and synchronize a file each, without a pause, runs under \
             `luc run --reach notify --policy delay:5ms`, which holds calls from the start, on ext4 on a disk whose \
             flush takes 6 ms. What serves its calls gets a SIGKILL at a random moment. The program goes on, {} ms at least if its \
             own supervisor or first keeper was killed. Then it says how many of its calls failed, and how many took \
             longer than {HANG_MS} ms. A supervisor \
             (`luc run`) or a keeper that serves is killed 40 to 130 ms after the start or after the last kill, one \
             that starts 0 to 4 ms after it is there. Programs are killed beside one that stays, which is the one \
             that counts. A supervisor that is killed writes no report, so what it held is not known. All \
             processes of each run are to be gone at its end.",
            AFTERMATH.as_millis()
        ),
        tables: vec![("What the programs counted:".to_owned(), table)],
        targets: vec![
            Target::new(
                format!("at least {KILLS} kills"),
                all.kills >= KILLS,
                format!("{} kills", all.kills),
            ),
            Target::new("no call fails", failed == 0 && calls > 0, format!("{failed} of {calls}")),
            Target::new(
                format!("no call takes longer than {HANG_MS} ms"),
                slow == 0 && calls > 0,
                format!("{slow} of {calls}; the longest took {longest_ms} ms"),
            ),
            Target::new(
                "calls were held, so that there was something to disturb",
                held > 0,
                format!("{held} held where it is known"),
            ),
            Target::new("no process is left", all.left == 0, format!("{} left", all.left)),
        ],
    }
}
