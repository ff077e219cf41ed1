//! Troubles that are planted at a shard, or on its host, for a while.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use luc_harness::error::EvaluateError;
use luc_harness::harness::{missing, stop_if_interrupted};
use luc_host::interrupt_flag;
use luc_stats::seeded_random;
use rand::RngExt as _;
use rustix::fs::{Advice, fadvise};
use rustix::process::{Pid, Signal, kill_process};

use super::node::Node;
use crate::network;
use crate::running::Running;

/// Stream of the random numbers for a trouble's place and strength.
const STREAM: u64 = 0x5072;
/// Range of the begin of a trouble, ms after the first query.
const BEGIN_RANGE_MS: [u64; 2] = [3_000, 4_000];
/// Range of the duration of a trouble, ms.
const DURATION_RANGE_MS: [u64; 2] = [1_500, 2_500];
/// Name of the threads that compute, and of this program's subcommand for them.
const HOG: &str = "hog";
/// Beginning of the names of Jetty's threads for requests.
const POOL: &str = "qtp";
const POLL_INTERVAL: Duration = Duration::from_millis(2);
/// Time for which a shard is stopped, and for which it then runs, ms.
const STOPPED_MS: u64 = 100;
const RUNS_MS: u64 = 200;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trouble {
    /// A program computes on the only processor that the shard may use.
    Hog,
    /// The shard's files are not in memory, and its disk is slow.
    Disk,
    /// Packets on their way to the shard get lost.
    Loss,
    /// The shard's process is stopped.
    Stop,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Planted {
    pub(super) trouble: Trouble,
    pub(super) shard: usize,
    begin: Duration,
    lasts: Duration,
    /// Number of threads that compute, or percent of packets that get lost.
    strength: u64,
}

/// Means to make a trouble.
#[derive(Debug, Clone, Copy)]
pub(super) struct Means<'m> {
    pub(super) myself: &'m Path,
    /// File for the output of started programs.
    pub(super) log: &'m Path,
    /// The only processor of the shard.
    pub(super) processor: usize,
    /// Directory of the shard's files.
    pub(super) home: &'m Path,
}

/// The party that the first finding must name.
#[derive(Debug)]
pub(super) struct Culprit {
    pub(super) process: u32,
    /// One of these threads must be named.
    pub(super) threads: BTreeSet<u32>,
    /// Whether the process was started for the trouble.
    pub(super) is_new: bool,
}

impl Trouble {
    pub(super) const ALL: [Self; 4] = [Self::Hog, Self::Disk, Self::Loss, Self::Stop];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Hog => "processor",
            Self::Disk => "disk",
            Self::Loss => "loss",
            Self::Stop => "stop",
        }
    }

    /// Kind of the finding that names it.
    pub(super) fn finding(self) -> &'static str {
        match self {
            Self::Hog => "computes",
            Self::Disk => "device",
            Self::Loss => "network",
            Self::Stop => "stopped",
        }
    }

    /// Draws the place and strength.
    pub(super) fn draw(self, seed: u64, shards: usize) -> Planted {
        let mut random = seeded_random::stream(seed, STREAM + self as u64);
        let strength = match self {
            Self::Hog => 8..=16,
            Self::Loss => 5..=12,
            Self::Disk | Self::Stop => 0..=0,
        };
        let mut ms = |[from, to]: [u64; 2]| Duration::from_millis(random.random_range(from..=to));
        let (begin, lasts) = (ms(BEGIN_RANGE_MS), ms(DURATION_RANGE_MS));
        Planted {
            trouble: self,
            shard: random.random_range(0..shards),
            begin,
            lasts,
            strength: random.random_range(strength),
        }
    }
}

impl Planted {
    /// Waits for its time, plays the trouble, and returns the culprit.
    pub(super) fn play(&self, node: &Node, means: Means<'_>) -> Result<Culprit, EvaluateError> {
        let begin = Instant::now() + self.begin;
        let end = begin + self.lasts;
        sleep_until(begin)?;
        match self.trouble {
            Trouble::Hog => {
                let mut command = node.host.command();
                command.args(["taskset", "--cpu-list", &means.processor.to_string()]);
                command.arg(means.myself).arg(HOG);
                command.arg(self.strength.to_string());
                let hog = Running::start(command, means.log)?;
                sleep_until(end)?;
                let culprit = Culprit::of(hog.process(), HOG, true)?;
                hog.end()?;
                return Ok(culprit);
            }
            Trouble::Disk => {
                let files = files(&means.home.join("search/data/index"))?;
                while Instant::now() < end {
                    for file in &files {
                        fadvise(file, 0, None, Advice::DontNeed).map_err(|errno| {
                            EvaluateError::file("drop", means.home)(errno.into())
                        })?;
                    }
                    sleep_until((Instant::now() + POLL_INTERVAL).min(end))?;
                }
            }
            Trouble::Loss => {
                network::lose(&node.host, self.strength)?;
                sleep_until(end)?;
                network::lose_nothing(&node.host)?;
            }
            Trouble::Stop => {
                while Instant::now() < end {
                    let stopped = Stopped::new(node.server.process())?;
                    thread::sleep(Duration::from_millis(STOPPED_MS));
                    drop(stopped);
                    sleep_until(Instant::now() + Duration::from_millis(RUNS_MS))?;
                }
            }
        }
        Culprit::of(node.server.process(), POOL, false)
    }
}

impl Culprit {
    /// Returns the threads of a process whose names begin with `name`.
    fn of(process: u32, name: &str, is_new: bool) -> Result<Self, EvaluateError> {
        let folder = PathBuf::from(format!("/proc/{process}/task"));
        let entries = fs::read_dir(&folder).map_err(EvaluateError::file("look into", &folder))?;
        let is_of = |path: &Path| {
            let comm = fs::read_to_string(path.join("comm"));
            comm.is_ok_and(|comm| comm.starts_with(name))
        };
        let threads = entries.flatten().filter(|entry| is_of(&entry.path()));
        let threads = threads.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let threads: BTreeSet<u32> = threads.collect();
        if threads.is_empty() {
            let what = format!("threads {name}* in {}", folder.display());
            return Err(EvaluateError::file("find", what)(ErrorKind::NotFound.into()));
        }
        Ok(Self { process, threads, is_new })
    }
}

/// A stopped process, which continues when dropped.
#[derive(Debug)]
struct Stopped(Pid);

impl Stopped {
    fn new(process: u32) -> Result<Self, EvaluateError> {
        let process = i32::try_from(process).ok().and_then(Pid::from_raw);
        let process = process.ok_or_else(|| missing("a process to stop"))?;
        kill_process(process, Signal::STOP)
            .map_err(|errno| EvaluateError::file("stop", "the shard")(errno.into()))?;
        Ok(Self(process))
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        // A process that has ended needs nothing.
        let _ = kill_process(self.0, Signal::CONT);
    }
}

/// Opens the files of a directory.
fn files(folder: &Path) -> Result<Vec<File>, EvaluateError> {
    let entries = fs::read_dir(folder).map_err(EvaluateError::file("look into", folder))?;
    let paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    let open = |path: PathBuf| File::open(&path).map_err(EvaluateError::file("open", path));
    paths.into_iter().map(open).collect()
}

fn sleep_until(until: Instant) -> Result<(), EvaluateError> {
    while let Some(left) = until.checked_duration_since(Instant::now()) {
        stop_if_interrupted()?;
        thread::sleep(left.min(Duration::from_millis(20)));
    }
    Ok(())
}

/// Computes with `threads` threads until this process ends.
///
/// # Errors
/// A thread that cannot be started.
pub fn hog(threads: u64) -> Result<(), EvaluateError> {
    for _ in 0..threads {
        let spin = || {
            while !interrupt_flag::interrupted() {
                std::hint::spin_loop();
            }
        };
        let thread = thread::Builder::new().name(HOG.to_owned());
        thread.spawn(spin).map_err(EvaluateError::file("start", "a thread"))?;
    }
    while !interrupt_flag::interrupted() {
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn seeds_draw_all_shards_and_strengths() {
        for trouble in Trouble::ALL {
            let drawn: Vec<Planted> = (0..40).map(|seed| trouble.draw(seed, 2)).collect();
            let shards: BTreeSet<usize> = drawn.iter().map(|one| one.shard).collect();
            assert_eq!(shards, [0, 1].into(), "{trouble:?}");
            let strengths: BTreeSet<u64> = drawn.iter().map(|one| one.strength).collect();
            assert_eq!(
                strengths.len() > 1,
                matches!(trouble, Trouble::Hog | Trouble::Loss),
                "{trouble:?}"
            );
        }
    }
}
