//! The figures of a run.

use std::sync::atomic::Ordering::Acquire;
use std::time::Duration;

use luc_gate::figures::{FileSystemFigures, RunFigures};
use luc_gate::gate_policy::GatePolicy;
use luc_gate::inspect::filesystem::{self, FileSystemJournal};
use luc_gate::rounds::shared_layout::RoundsSnapshot;
use luc_gate::rounds::{FileSystemRounds, UserRounds};
use luc_notify::command_notifier::NotifiedRun;
use serde::Serialize;

use crate::commit_counts::CommitCounts;
pub use crate::controller_decision::GateDecision;
use crate::participants::{self, ParticipantTable, SeenProcess, UnreachedProgram};
use crate::run_memory::RunMemory;
use crate::supervise_command::{CommandEnd, CommandEnding};

/// Result and figures of a run under the gate.
#[derive(Clone, Debug, Serialize)]
pub struct GatedRunOutcome {
    pub policy: String,
    pub ending: CommandEnding,
    /// Signal that asked this process to end meanwhile.
    #[serde(skip)]
    pub stop_signal: Option<i32>,
    pub elapsed_s: f64,
    /// Number of processes that synchronized through the preload library.
    pub processes: u32,
    /// Reason why the gate was not used at all, if so.
    pub refused: Option<String>,
    /// Notifications of the command's calls; `None` if the library was to reach them.
    pub notified: Option<NotifiedRun>,
    /// Programs below the command that the library did not reach, by the recorder, or perhaps did not.
    pub unreached: Vec<UnreachedProgram>,
    #[serde(skip)]
    pub participants: ParticipantTable,
    /// File systems that were synchronized on, busiest first.
    pub file_systems: Vec<FileSystemOutcome>,
}

/// The result of a run apart from its figures.
#[derive(Debug)]
pub struct FinishedRun {
    pub policy: GatePolicy,
    /// End of the command, and whether this process was asked to end meanwhile.
    pub end: CommandEnd,
    pub elapsed: Duration,
    /// Reason why the gate was not used, if so.
    pub refused: Option<String>,
    pub notified: Option<NotifiedRun>,
    /// Programs that the library perhaps did not reach.
    pub unreached: Vec<UnreachedProgram>,
}

/// The figures of all file systems, busiest first, without the journals' commits.
#[must_use]
pub fn file_systems(
    figures: &RunFigures,
    arena: Option<&UserRounds>,
    policy: &GatePolicy,
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

#[derive(Clone, Debug, Serialize)]
pub struct FileSystemOutcome {
    /// The device's name, `sda1`.
    pub device: String,
    /// Mount point; empty if it is not known.
    pub mount_point: String,
    pub kind: String,
    /// Its journal: `jbd2`, `fast_commit`, `none`, `other`, `unknown`.
    pub journal: &'static str,
    pub fsyncs: u64,
    pub fdatasyncs: u64,
    /// `msync` calls with `MS_SYNC`.
    pub msyncs: u64,
    /// Calls of any kind that returned an error.
    pub failed: u64,
    /// Mean latency as the program saw it, in microseconds. `None`, like the two below, if no call's return was seen:
    /// those of notified calls are not.
    pub mean_us: Option<f64>,
    /// Median latency, in microseconds (bucket edge, up to 1/16 too high).
    pub p50_us: Option<f64>,
    /// 99th percentile of latency, in microseconds (bucket edge, up to 1/16 too high).
    pub p99_us: Option<f64>,
    /// Journal commits during the run, whoever caused them.
    pub commits: Option<u64>,
    /// Calls served per commit.
    pub calls_per_commit: Option<f64>,
    /// Whether calls were only counted because the kernel module batches here.
    pub left_to_kernel: bool,
    /// Whether calls were only counted because the policy is `off`.
    #[serde(skip)]
    pub is_off: bool,
    /// The gate's figures; `None` if it did not take part here.
    pub gate: Option<GateOutcome>,
}

/// The gate's figures on one file system.
#[derive(Clone, Debug, Serialize)]
pub struct GateOutcome {
    /// Calls that went through rounds.
    pub gated: u64,
    pub rounds: u32,
    /// Mean time held in a round, in microseconds, over gated calls.
    pub mean_wait_us: f64,
    /// Longest time held in a round, in microseconds.
    pub longest_wait_us: f64,
    /// Mean time of writing data back before joining, in microseconds, over gated calls.
    pub mean_write_back_us: f64,
    /// Calls that left at their own deadline.
    pub timed_out: u64,
    /// Final state of the controller of policy `auto` for calls that need a commit. `None` for other policies, and if
    /// there were only calls that need a flush.
    pub decision: Option<GateDecision>,
    /// Final state for calls that only need a flush; `None` if none of them had a round of its own.
    pub flush_decision: Option<GateDecision>,
}

impl GatedRunOutcome {
    /// Reads all that a run has left in its shared files.
    pub fn collect(
        shared: Option<&RunMemory>,
        ran: FinishedRun,
        count_only: &[(u32, u32)],
        before: &CommitCounts,
    ) -> Self {
        let after = CommitCounts::read();
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
                FileSystemOutcome { left_to_kernel, ..outcome }
            })
            .collect();
        file_systems.sort_by_key(|fs| std::cmp::Reverse(fs.calls()));
        let processes = shared.map(|shared| {
            let table = &shared.figures.counters.participants;
            table.all().count() as u64 + table.others().0
        });
        Self {
            policy: ran.policy.to_string(),
            ending: ran.end.ending,
            stop_signal: ran.end.stop_signal,
            elapsed_s: ran.elapsed.as_secs_f64(),
            processes: processes.unwrap_or(0) as u32,
            refused: ran.refused,
            notified: ran.notified,
            unreached: ran.unreached,
            participants: shared.map_or_else(ParticipantTable::default, |shared| {
                ParticipantTable::read(shared.figures.counters)
            }),
            file_systems,
        }
    }

    /// Compares the calls that the recorder saw of each process with those of the participants. `is_whole`: it saw most
    /// of the run, so that suspicions of other programs are void.
    pub fn compare_with(&mut self, seen: &[SeenProcess], is_whole: bool) {
        if self.refused.is_some() || self.notified.is_some() {
            return;
        }
        let mut unreached = participants::find_unreached(seen, &self.participants);
        if !is_whole {
            let is_known =
                |one: &UnreachedProgram| unreached.iter().any(|known| known.program == one.program);
            let others: Vec<_> =
                self.unreached.iter().filter(|one| !is_known(one)).cloned().collect();
            unreached.extend(others);
        }
        self.unreached = unreached;
    }

    /// Synchronizing calls on all file systems.
    pub fn calls(&self) -> u64 {
        self.file_systems.iter().map(FileSystemOutcome::calls).sum()
    }

    /// Mean latency over all calls, in microseconds; `None` if there was none, or if it is not known.
    pub fn mean_us(&self) -> Option<f64> {
        let calls = self.calls();
        let of_each = self.file_systems.iter().filter(|fs| fs.calls() > 0);
        let total: Option<f64> = of_each.map(|fs| Some(fs.mean_us? * fs.calls() as f64)).sum();
        total.filter(|_| calls > 0).map(|total| total / calls as f64)
    }
}

impl FileSystemOutcome {
    pub fn calls(&self) -> u64 {
        self.fsyncs + self.fdatasyncs + self.msyncs
    }

    fn new(
        (major, minor): (u32, u32),
        counters: &FileSystemFigures,
        rounds: Option<&FileSystemRounds>,
        policy: &GatePolicy,
        commits_of: impl Fn(&str) -> Option<u64>,
    ) -> Self {
        let counts = Counts::read(counters);
        let [fsyncs, fdatasyncs, msyncs] = counts.calls;
        let calls = fsyncs + fdatasyncs + msyncs;
        let found = filesystem::of_device(major, minor).ok();
        let device =
            found.as_ref().map_or_else(|| format!("{major}:{minor}"), |fs| fs.name.clone());
        let journal = match found.as_ref().map(|fs| &fs.journal) {
            Some(FileSystemJournal::Jbd2) => "jbd2",
            Some(FileSystemJournal::Jbd2FastCommit) => "fast_commit",
            Some(FileSystemJournal::None) => "none",
            Some(FileSystemJournal::NotExt4(_)) => "other",
            Some(FileSystemJournal::Unknown) | None => "unknown",
        };
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
            failed: counts.failed,
            mean_us: counts.mean_us,
            p50_us: counts.p50_us,
            p99_us: counts.p99_us,
            commits,
            calls_per_commit: commits.filter(|&n| n > 0).map(|n| calls as f64 / n as f64),
            left_to_kernel: false,
            is_off: *policy == GatePolicy::Off,
            gate: rounds.map(|rounds| GateOutcome::new(&counts, rounds, policy)),
        }
    }
}

impl GateOutcome {
    fn new(counts: &Counts, rounds: &FileSystemRounds, policy: &GatePolicy) -> Self {
        let commits = rounds.commits.snapshot();
        let flushes = rounds.flushes.snapshot();
        // A file system with both kinds has both; one with neither has that of commits.
        let has_flushes = flushes.completions > 0;
        let has_commits = commits.completions > 0 || !has_flushes;
        let decision = |snapshot: &RoundsSnapshot, is_there: bool| {
            let is_decided = *policy == GatePolicy::Auto && is_there;
            is_decided.then(|| GateDecision::new(&(&snapshot.auto).into(), snapshot.completions))
        };
        Self {
            gated: counts.gated,
            rounds: counts.rounds,
            mean_wait_us: counts.mean_wait_us,
            longest_wait_us: counts.longest_wait_us,
            mean_write_back_us: counts.mean_write_back_us,
            timed_out: counts.timed_out,
            decision: decision(&commits, has_commits),
            flush_decision: decision(&flushes, has_flushes),
        }
    }
}

/// Counters of one file system at one moment: programs may still go on.
#[derive(Clone, Copy, Debug)]
struct Counts {
    calls: [u64; 3],
    failed: u64,
    mean_us: Option<f64>,
    p50_us: Option<f64>,
    p99_us: Option<f64>,
    gated: u64,
    rounds: u32,
    timed_out: u64,
    mean_wait_us: f64,
    longest_wait_us: f64,
    mean_write_back_us: f64,
}

impl Counts {
    /// Reads the counters. A part is read before its whole, and is limited to it.
    fn read(figures: &FileSystemFigures) -> Self {
        let gated = figures.gated.load(Acquire);
        let failed = figures.failed.load(Acquire);
        let rounds = figures.rounds.load(Acquire);
        let timed_out = figures.timed_out.load(Acquire);
        let calls = figures.calls.each_ref().map(|calls| calls.load(Acquire));
        let all: u64 = calls.iter().sum();
        let gated = gated.min(all);
        let quantile_us = |q| Some(figures.latency.quantile_ns(q)? as f64 / 1e3);
        let p50_us = quantile_us(0.5);
        let mean_wait_us = mean_us(figures.waited_ns.load(Acquire), gated);
        let longest_wait_us = figures.longest_wait_ns.load(Acquire) as f64 / 1e3;
        Self {
            calls,
            failed: failed.min(all),
            mean_us: p50_us.map(|_| mean_us(figures.latency_ns.load(Acquire), all)),
            p50_us,
            p99_us: p50_us.zip(quantile_us(0.99)).map(|(p50_us, p99_us)| p99_us.max(p50_us)),
            gated,
            rounds: rounds.min(u32::try_from(gated).unwrap_or(u32::MAX)),
            timed_out: timed_out.min(gated),
            mean_wait_us,
            longest_wait_us: longest_wait_us.max(mean_wait_us),
            mean_write_back_us: mean_us(figures.written_back_ns.load(Acquire), gated),
        }
    }
}

fn mean_us(total_ns: u64, count: u64) -> f64 {
    if count == 0 { 0.0 } else { total_ns as f64 / count as f64 / 1e3 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use luc_gate::figures::RunFigures;
    use luc_gate::shared_values;
    use std::sync::atomic::Ordering::Relaxed;

    /// Programs that a run leaves behind count on while it is reported.
    #[test]
    fn no_part_is_more_than_the_whole() {
        let figures: Box<RunFigures> =
            shared_values::from_bytes(&vec![0; size_of::<RunFigures>()]).unwrap();
        let of_device = figures.file_system(7).unwrap();
        of_device.calls[0].store(3, Relaxed);
        for count in [&of_device.gated, &of_device.timed_out, &of_device.failed] {
            count.store(5, Relaxed);
        }
        of_device.rounds.store(9, Relaxed);
        of_device.waited_ns.store(6_000_000, Relaxed);
        of_device.longest_wait_ns.store(1_000_000, Relaxed);
        let counts = Counts::read(of_device);
        assert_eq!((counts.gated, counts.timed_out, counts.failed), (3, 3, 3));
        assert_eq!(counts.rounds, 3);
        assert!(counts.longest_wait_us >= counts.mean_wait_us, "{counts:?}");
    }
}
