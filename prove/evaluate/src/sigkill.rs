//! Part `sigkill`: workers that share the gate's rounds are killed at random. Nobody waits for the dead.

mod crowd;
pub(super) mod notified;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::Duration;

use luc_stats::seeded_random;
use rand::RngExt as _;
use rustix::fs::{FlockOperation, flock};
use serde_json::{Value, json};

use crate::disks::{Disk, EXT4};
use crate::error::EvaluateError;
use crate::harness::{Harness, line, parse, read_json, stop_if_interrupted};
use crate::progress::Progress;
use crate::reports::of_disk;

const WORKERS: usize = 8;
const KILLS: u64 = 100;
/// Maximum wait in the gate by design, ms.
const DEADLINE_MS: f64 = 20.0;
/// Time of four commits of 13 ms (two flushes of 6 ms and their writes): one under way, one's own, and as many again
/// for a caller that a kill throws back.
const COMMITS_MS: f64 = 52.0;
/// Delay that the scheduler may add on a busy machine, ms.
const SLACK_MS: f64 = 30.0;
/// Time before the first kill, to learn and to engage.
const SETTLE_TIME: Duration = Duration::from_secs(3);

/// Options of `luc-evaluate sigkill-workers`.
#[derive(Debug, Clone, clap::Args)]
pub struct SigkillWorkersArguments {
    /// `caller`, the program of the workers.
    pub caller: PathBuf,
    pub directory: PathBuf,
    pub kills: u64,
    /// Calls that take longer are slow.
    pub limit_ms: f64,
    /// Seed of the choice of victims.
    pub seed: u64,
}

/// A worker, and the file that it counts in.
struct Worker {
    child: Child,
    name: String,
}

impl Worker {
    fn start(arguments: &SigkillWorkersArguments, number: usize) -> Result<Self, EvaluateError> {
        let name = format!("worker-{number}");
        let child = Command::new(&arguments.caller)
            .args(["worker", &name, &arguments.limit_ms.to_string()])
            .current_dir(&arguments.directory)
            .spawn()
            .map_err(EvaluateError::file("run", &arguments.caller))?;
        Ok(Self { child, name })
    }

    /// Kills the worker, and returns its calls and slow calls.
    fn end(&mut self, directory: &Path) -> Result<(u64, u64), EvaluateError> {
        let died = self.child.try_wait().ok().flatten();
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(status) = died {
            return Err(EvaluateError::Command {
                command: format!("caller worker {}", self.name),
                how: status.to_string(),
                said: "it should have gone on until it was killed".to_owned(),
            });
        }
        let path = directory.join(format!("{}.figures", self.name));
        let text = fs::read_to_string(&path).unwrap_or_default();
        Ok(counts(&text))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Parses `calls slow`. A worker that was killed before its first call has counted nothing.
fn counts(text: &str) -> (u64, u64) {
    let mut numbers = text.split_whitespace().map_while(|word| word.parse().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// Runs the workers, kills one after the other, and returns their counts. It is a process of its own, so that all
/// workers run under one `luc run`.
///
/// # Errors
/// [`EvaluateError`]: a worker could not be started, or ended by itself.
pub fn workers(arguments: &SigkillWorkersArguments) -> Result<Value, EvaluateError> {
    let mut random = seeded_random::stream(arguments.seed, 0);
    let mut workers = (0..WORKERS)
        .map(|number| Worker::start(arguments, number))
        .collect::<Result<Vec<_>, _>>()?;
    thread::sleep(SETTLE_TIME);
    let mut ended = Vec::new();
    for kill in 0..arguments.kills as usize {
        stop_if_interrupted()?;
        let victim = random.random_range(0..WORKERS);
        let next = Worker::start(arguments, WORKERS + kill)?;
        let mut dead = std::mem::replace(&mut workers[victim], next);
        ended.push(dead.end(&arguments.directory)?);
        thread::sleep(Duration::from_millis(random.random_range(100..=200)));
    }
    for worker in &mut workers {
        ended.push(worker.end(&arguments.directory)?);
    }
    let sum = |of: fn(&(u64, u64)) -> u64| ended.iter().map(of).sum::<u64>();
    Ok(json!({
        "kills": arguments.kills, "calls": sum(|&(calls, _)| calls), "slow": sum(|&(_, slow)| slow), "workers": ended,
    }))
}

pub(super) fn run(harness: &Harness) -> Result<(), EvaluateError> {
    // 1. Kill workers that run under luc.
    let kills = harness.options.cuts.unwrap_or(KILLS);
    let source = include_str!("../../../crates/luc/tests/programs/caller.c");
    let caller = harness.compile("sigkill-caller", source, &["-D_GNU_SOURCE"])?;
    let limit_ms = DEADLINE_MS + COMMITS_MS + SLACK_MS;
    let disk = Disk::create(harness, &EXT4)?;
    let gate_file = harness.path("gate.json");
    let mut command = harness.luc(&["run", "--quiet", "--policy", "auto", "--json"]);
    command.arg(&gate_file).arg("--").arg(&harness.options.myself);
    command.arg("sigkill-workers").arg(&caller).arg(&disk.mount);
    command.args([kills.to_string(), limit_ms.to_string(), harness.options.seed.to_string()]);
    let mut progress = Progress::new(harness.part, 1);
    let output = harness.execute(&mut command, &[0])?.stdout;
    progress.step(&format!("{kills} kills"));
    // 2. Keep what the workers and the gate counted.
    let counted: Value = parse(&output, "the counts")?;
    let report = read_json(&gate_file)?;
    let of_disk = of_disk(&report, disk.device()).clone();
    let left = find_leftovers(&caller);
    harness.keep(json!({ "command": line(&command), "counted": counted, "gate": of_disk,
                     "left": left }));
    Ok(())
}

/// Returns what the workers and the gate left behind. Shared files that another run of this user is using do not count.
fn find_leftovers(caller: &Path) -> Option<String> {
    let running = fs::read_dir("/proc").ok().into_iter().flatten().flatten();
    let strays = running
        .filter(|entry| fs::read_link(entry.path().join("exe")).is_ok_and(|exe| exe == caller))
        .count();
    if strays > 0 {
        return Some(format!("{strays} workers"));
    }
    let user = rustix::process::geteuid().as_raw();
    let directory = format!("/dev/shm/luc-gate-{user}");
    let lock = fs::File::open(Path::new(&directory).join("lock"));
    let in_use = lock.is_ok_and(|lock| {
        flock(&lock, FlockOperation::NonBlockingLockShared).is_ok()
            && flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err()
    });
    (Path::new(&directory).exists() && !in_use).then_some(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_a_worker() {
        assert_eq!(counts("                  12                    3\n"), (12, 3));
        assert_eq!(counts(""), (0, 0));
    }
}
