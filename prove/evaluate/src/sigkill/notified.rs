//! Part `notifier-sigkill`: the supervisor of notified calls, its keepers and the programs are killed. No call fails
//! that would not without luc, and none hangs.

use std::path::Path;
use std::thread;
use std::time::Duration;

use luc_stats::seeded_random;
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

    /// Makes one kill in a crowd of its own. A killed supervisor reports no held calls.
    fn kill_one(&self, victim: Victim, random: &mut ChaCha8Rng) -> Result<(), EvaluateError> {
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
        let counted = crowd.end()?;
        self.keep(&crowd, victim, counted, 1, None);
        Ok(())
    }

    /// Kills one crowd's keepers, one after the other.
    fn kill_keepers(&self, kills: u64, random: &mut ChaCha8Rng) -> Result<(), EvaluateError> {
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
        let counted = crowd.end()?;
        self.keep(&crowd, Victim::Keeper, counted, kills, Some(crowd.held()?));
        Ok(())
    }

    /// Kills crowds one after the other, beside one that stays.
    fn kill_programs(&self, kills: u64) -> Result<(), EvaluateError> {
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
        self.keep(&crowd, Victim::Program, counted, kills, Some(crowd.held()?));
        Ok(())
    }

    fn keep(
        &self,
        crowd: &Crowd<'_>,
        victim: Victim,
        counted: Counted,
        kills: u64,
        held: Option<u64>,
    ) {
        self.harness.keep(json!({
            "victim": victim.name(), "command": crowd.command, "kills": kills, "calls": counted.calls,
            "slow": counted.slow, "failed": counted.failed, "longest_ms": counted.longest_ms, "held": held,
            "left": crowd.left(),
        }));
    }
}

fn pause(random: &mut ChaCha8Rng, range_us: std::ops::Range<u64>) {
    thread::sleep(Duration::from_micros(random.random_range(range_us)));
}

pub(crate) fn run(harness: &Harness) -> Result<(), EvaluateError> {
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
    for (stream, victim) in victims.into_iter().enumerate() {
        let mut random = seeded_random::stream(harness.options.seed, stream as u64);
        let mut made = 0;
        while made < each {
            let kills = KILLS_PER_STEP.min(each - made);
            match victim {
                Victim::Keeper => place.kill_keepers(kills, &mut random)?,
                Victim::Program => place.kill_programs(kills)?,
                Victim::Supervisor | Victim::SupervisorAtStart | Victim::KeeperAtStart => {
                    for _ in 0..kills {
                        place.kill_one(victim, &mut random)?;
                    }
                }
            }
            made += kills;
            progress.step(&format!("{}: {made} kills", victim.name()));
        }
    }
    Ok(())
}
