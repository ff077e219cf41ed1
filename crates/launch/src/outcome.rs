//! The figures of a run.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use luc_control::auto::{Auto, Phase, Reason};
use luc_gate::figures::{FileSystemFigures, RunFigures};
use luc_gate::inspect::filesystem::{self, Journal};
use luc_gate::policy::Policy;
use luc_gate::rounds::layout::Snapshot;
use luc_gate::rounds::{Arena, FileSystemRounds};
use luc_notify::session::Notified;
use serde::Serialize;

use crate::commits::Commits;
use crate::shared::Shared;
use crate::supervise::Ending;
use crate::unreached::Unreached;

/// The result of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// The policy, as text.
    pub policy: String,
    /// How the command ended.
    pub ending: Ending,
    /// How long it ran, in seconds.
    pub elapsed_s: f64,
    /// Processes that synchronized through the preload library.
    pub processes: u32,
    /// Why the gate was not used at all, if so.
    pub refused: Option<String>,
    /// How the command's calls were notified; `None` if the library was to reach them.
    pub notified: Option<Notified>,
    /// Programs below the command that the library did not reach.
    pub unreached: Vec<Unreached>,
    /// File systems that were synchronized on, busiest first.
    pub file_systems: Vec<FileSystemOutcome>,
}

/// The result of a run apart from its figures.
#[derive(Debug)]
pub struct Ran {
    /// The policy.
    pub policy: Policy,
    /// How the command ended.
    pub ending: Ending,
    /// How long it ran.
    pub elapsed: Duration,
    /// Why the gate was not used, if so.
    pub refused: Option<String>,
    /// How the command's calls were notified.
    pub notified: Option<Notified>,
    /// Programs that the library did not reach.
    pub unreached: Vec<Unreached>,
}

/// The figures of all file systems, busiest first, without the journals' commits.
#[must_use]
pub fn file_systems(
    figures: &RunFigures,
    arena: Option<&Arena>,
    policy: &Policy,
) -> Vec<FileSystemOutcome> {
    let mut file_systems: Vec<_> = figures
        .used()
        .map(|(device, counters)| {
            let numbers = (libc::major(device), libc::minor(device));
            let rounds = arena.and_then(|arena| arena.find(device));
            FileSystemOutcome::new(numbers, counters, rounds, policy, |_| None)
        })
        .collect();
    file_systems.sort_by_key(|fs| std::cmp::Reverse(fs.calls()));
    file_systems
}

/// The figures of one file system.
#[derive(Clone, Debug, Serialize)]
pub struct FileSystemOutcome {
    /// The device's name, `sda1`.
    pub device: String,
    /// Where it is mounted; empty if that cannot be told.
    pub mount_point: String,
    /// Its kind, `ext4`.
    pub kind: String,
    /// Its journal: `jbd2`, `fast_commit`, `none`, `other`, `unknown`.
    pub journal: &'static str,
    /// `fsync` calls.
    pub fsyncs: u64,
    /// `fdatasync` calls.
    pub fdatasyncs: u64,
    /// `msync` calls with `MS_SYNC`.
    pub msyncs: u64,
    /// Calls of any kind that returned an error.
    pub failed: u64,
    /// Mean latency as the program saw it, in microseconds; `None`, as the two below, if no call's return was seen:
    /// the returns of notified calls are not.
    pub mean_us: Option<f64>,
    /// Median latency, in microseconds (bucket edge, up to 1/16 too high).
    pub p50_us: Option<f64>,
    /// 99th percentile of latency, in microseconds (bucket edge, up to 1/16 too high).
    pub p99_us: Option<f64>,
    /// Journal commits during the run, by whomever.
    pub commits: Option<u64>,
    /// Calls served per commit.
    pub calls_per_commit: Option<f64>,
    /// Whether calls were only counted, since the kernel module batches here.
    pub left_to_kernel: bool,
    /// The gate's figures; `None` if it did not take part here.
    pub gate: Option<GateOutcome>,
}

/// The gate's figures on one file system.
#[derive(Clone, Debug, Serialize)]
pub struct GateOutcome {
    /// Calls that went through rounds.
    pub gated: u64,
    /// Rounds.
    pub rounds: u32,
    /// Mean time held in a round, in microseconds, over gated calls.
    pub mean_wait_us: f64,
    /// Longest time held in a round, in microseconds.
    pub longest_wait_us: f64,
    /// Mean time of writing data back before joining, in microseconds, over gated calls.
    pub mean_write_back_us: f64,
    /// Calls that left at their own deadline.
    pub timed_out: u64,
    /// Where the controller of policy `auto` ended for calls that need a commit; `None` for other policies,
    /// and where there were only calls that need a flush.
    pub decision: Option<Decision>,
    /// The same for calls that only need a flush; `None` if there were none on their own.
    pub flush_decision: Option<Decision>,
}

/// Where the controller of policy `auto` ended, and why.
#[derive(Clone, Debug, Serialize)]
pub struct Decision {
    /// `learning`, `trying`, `engaged` or `aside`.
    pub state: &'static str,
    /// Why, as a sentence.
    pub reason: &'static str,
    /// Callers that a round waits for.
    pub set_point: u32,
    /// Distinct callers seen of late.
    pub participants: u32,
    /// Commit time, in microseconds.
    pub commit_us: f64,
    /// Gated over ungated rate of the last trial or check; `None` if there was none.
    pub gain: Option<f64>,
    /// Pairs of samples behind the gain.
    pub pairs: u32,
    /// Trials made.
    pub trials: u32,
    /// Trials that engaged the gate.
    pub engagements: u32,
    /// Calls served per second in the last gated sample.
    pub gated_per_s: f64,
    /// Calls served per second in the last ungated sample.
    pub ungated_per_s: f64,
}

impl Outcome {
    /// Reads everything that a run has left in its shared files.
    pub fn collect(
        shared: Option<&Shared>,
        ran: Ran,
        count_only: &[(u32, u32)],
        before: &Commits,
    ) -> Self {
        let after = Commits::read();
        if let Some(shared) = shared {
            shared.gather();
        }
        let mut file_systems: Vec<_> = shared
            .iter()
            .flat_map(|shared| {
                let used = shared.figures.counters.used();
                used.map(|(device, counters)| (device, counters, shared.rounds_of(device)))
            })
            .map(|(device, counters, rounds)| {
                let numbers = (libc::major(device), libc::minor(device));
                let left_to_kernel = count_only.contains(&numbers);
                let rounds = rounds.filter(|_| !left_to_kernel);
                let outcome =
                    FileSystemOutcome::new(numbers, counters, rounds, &ran.policy, |device| {
                        after.since(before, device)
                    });
                FileSystemOutcome {
                    left_to_kernel,
                    ..outcome
                }
            })
            .collect();
        file_systems.sort_by_key(|fs| std::cmp::Reverse(fs.calls()));
        let processes = shared.map(|shared| {
            let table = &shared.figures.counters.participants;
            table.all().count() as u64 + table.others().0
        });
        Self {
            policy: ran.policy.to_string(),
            ending: ran.ending,
            elapsed_s: ran.elapsed.as_secs_f64(),
            processes: processes.unwrap_or(0) as u32,
            refused: ran.refused,
            notified: ran.notified,
            unreached: ran.unreached,
            file_systems,
        }
    }

    /// Synchronizing calls on all file systems.
    pub fn calls(&self) -> u64 {
        self.file_systems.iter().map(FileSystemOutcome::calls).sum()
    }

    /// Mean latency over all calls, in microseconds; `None` if there was none, or if it is not known.
    pub fn mean_us(&self) -> Option<f64> {
        let calls = self.calls();
        let of_each = self.file_systems.iter().filter(|fs| fs.calls() > 0);
        let total: Option<f64> = of_each
            .map(|fs| Some(fs.mean_us? * fs.calls() as f64))
            .sum();
        total
            .filter(|_| calls > 0)
            .map(|total| total / calls as f64)
    }
}

impl FileSystemOutcome {
    /// Synchronizing calls of all kinds.
    pub fn calls(&self) -> u64 {
        self.fsyncs + self.fdatasyncs + self.msyncs
    }

    fn new(
        (major, minor): (u32, u32),
        counters: &FileSystemFigures,
        rounds: Option<&FileSystemRounds>,
        policy: &Policy,
        commits_of: impl Fn(&str) -> Option<u64>,
    ) -> Self {
        let [fsyncs, fdatasyncs, msyncs] = counters.calls.each_ref().map(|c| c.load(Relaxed));
        let calls = fsyncs + fdatasyncs + msyncs;
        let found = filesystem::of_device(major, minor).ok();
        let device = found
            .as_ref()
            .map_or_else(|| format!("{major}:{minor}"), |fs| fs.name.clone());
        let journal = match found.as_ref().map(|fs| &fs.journal) {
            Some(Journal::Jbd2) => "jbd2",
            Some(Journal::Jbd2FastCommit) => "fast_commit",
            Some(Journal::None) => "none",
            Some(Journal::NotExt4(_)) => "other",
            Some(Journal::Unknown) | None => "unknown",
        };
        let quantile_us = |q| Some(counters.latency.quantile_ns(q)? as f64 / 1e3);
        let p50_us = quantile_us(0.5);
        let commits = commits_of(&device);
        Self {
            journal,
            mount_point: found
                .as_ref()
                .map(|fs| fs.mount_point.display().to_string())
                .unwrap_or_default(),
            kind: found.map_or_else(|| "unknown".to_owned(), |fs| fs.kind),
            device,
            fsyncs,
            fdatasyncs,
            msyncs,
            failed: counters.failed.load(Relaxed),
            mean_us: p50_us.map(|_| mean_us(counters.latency_ns.load(Relaxed), calls)),
            p50_us,
            p99_us: quantile_us(0.99),
            commits,
            calls_per_commit: commits.filter(|&n| n > 0).map(|n| calls as f64 / n as f64),
            left_to_kernel: false,
            gate: rounds.map(|rounds| GateOutcome::new(counters, rounds, policy)),
        }
    }
}

impl GateOutcome {
    fn new(counters: &FileSystemFigures, rounds: &FileSystemRounds, policy: &Policy) -> Self {
        let commits = rounds.commits.snapshot();
        let flushes = rounds.flushes.snapshot();
        // A file system with both kinds has both; one with neither has that of commits.
        let has_flushes = flushes.completions > 0;
        let has_commits = commits.completions > 0 || !has_flushes;
        let decision = |snapshot: &Snapshot, is_there: bool| {
            (*policy == Policy::Auto && is_there).then(|| Decision::new(&snapshot.auto))
        };
        let gated = counters.gated.load(Relaxed);
        Self {
            gated,
            rounds: counters.rounds.load(Relaxed),
            mean_wait_us: mean_us(counters.waited_ns.load(Relaxed), gated),
            longest_wait_us: counters.longest_wait_ns.load(Relaxed) as f64 / 1e3,
            mean_write_back_us: mean_us(counters.written_back_ns.load(Relaxed), gated),
            timed_out: counters.timed_out.load(Relaxed),
            decision: decision(&commits, has_commits),
            flush_decision: decision(&flushes, has_flushes),
        }
    }
}

impl Decision {
    fn new(auto: &Auto) -> Self {
        let (gain, pairs) = auto.gain();
        let (trials, engagements) = auto.trials();
        let (gated_per_s, ungated_per_s) = auto.rates_per_s();
        Self {
            state: match auto.phase() {
                Phase::Learn => "learning",
                Phase::TryGated | Phase::TryUngated => "trying",
                Phase::Engaged | Phase::Check => "engaged",
                Phase::Aside => "aside",
            },
            reason: match auto.reason() {
                Reason::Undecided => "the run was too short to decide",
                Reason::Alone => "only one caller at a time: nobody to share a commit with",
                Reason::NothingToGain => "commits already serve about as many as they can",
                Reason::Few => "few of the calls are of this kind: holding them gains nothing",
                Reason::TooFarApart => "callers come too far apart for a commit to wait for them",
                Reason::TakenAlong => {
                    "a trial held these with calls that need a commit, and showed no gain"
                }
                Reason::ComeAndGo => "callers come and go: a trial waits until it costs little",
                Reason::NoGainMeasured => "a trial showed no gain",
                Reason::GainMeasured => "a trial showed a gain",
            },
            set_point: auto.plan().set_point,
            participants: auto.participants(),
            commit_us: auto.commit_ns() as f64 / 1e3,
            gain: (pairs > 0).then_some(gain),
            pairs,
            trials,
            engagements,
            gated_per_s,
            ungated_per_s,
        }
    }
}

fn mean_us(total_ns: u64, count: u64) -> f64 {
    if count == 0 {
        0.0
    } else {
        total_ns as f64 / count as f64 / 1e3
    }
}
