//! Explains a run's speed: records the run and divides the time of its fsyncs.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use luc_events::TraceEvent;
use luc_events::tables::TraceDescription;
use luc_explain::{Analysis, CallTimePart, TraceReport};
use luc_launch::{GatedRunOutcome, OnStart};
use luc_probe::{
    ForwardingSink, Recorder, RecorderOptions, RecordingFilter, spawn_without_signals,
};
use luc_units::number_formats::FormattedTime;
use serde::Serialize;

use crate::sync_witness::{HOST_PROCESSES, RecordedSyncs, SyncWitness};
use crate::{RecordedSyncWays, RunError, RunOutcome};

/// Age, relative to the latest event, at which an event is analysed. Sums are read from the kernel once a second, and
/// belong to commits that were reported before.
const SETTLE_TIME_NS: u64 = 1_300_000_000;
/// Minimum number of events that are sorted at a time.
const MIN_BATCH_EVENTS: usize = 1 << 16;
/// Maximum share of a run's time that may be unseen if the recording is to tell all that synchronize.
const MAX_UNSEEN: f64 = 0.5;
/// Share of time below which, on both sides, a part is not printed.
const MIN_SHARE: f64 = 0.02;

/// Time that a command runs before its recorder begins to load. So the recorder does not delay the end of a shorter
/// command.
const RECORDER_DELAY: Duration = Duration::from_millis(20);

/// The parts of a call's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
enum TimePart {
    Predecessor,
    OwnCommit,
    Data,
    FastCommit,
    Flush,
    Gate,
    Processor,
    Other,
}

impl TimePart {
    fn of(part: CallTimePart) -> Self {
        match part {
            CallTimePart::Predecessor => Self::Predecessor,
            CallTimePart::DataWriteback => Self::Data,
            CallTimePart::FastCommit => Self::FastCommit,
            CallTimePart::Flush => Self::Flush,
            CallTimePart::Runnable | CallTimePart::Running => Self::Processor,
            part if part.is_own_commit() => Self::OwnCommit,
            _ => Self::Other,
        }
    }

    fn label(self) -> &'static str {
        match self {
            Self::Predecessor => "predecessor waits",
            Self::OwnCommit => "own commit",
            Self::Data => "writing its data",
            Self::FastCommit => "fast commits",
            Self::Flush => "flush of the disk",
            Self::Gate => "in the gate",
            Self::Processor => "on or for a processor",
            Self::Other => "other",
        }
    }
}

/// A part's share of a call.
#[derive(Clone, Copy, Debug, Serialize)]
struct PartTime {
    us_per_call: f64,
    share: f64,
}

/// Parts of the calls' time, on the file system that was synchronized on most.
#[derive(Clone, Debug, Serialize)]
pub struct TimeSplit {
    mount_point: String,
    calls: u64,
    calls_per_commit: f64,
    /// Time after the command's start from which on it was recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    since_s: Option<f64>,
    #[serde(rename = "takers")]
    parts: BTreeMap<TimePart, PartTime>,
}

impl TimeSplit {
    /// Divides the time of a recorded run's calls; `None` if there were none.
    fn of(report: &TraceReport, outcome: &GatedRunOutcome) -> Option<Self> {
        let calls = |found: &&luc_explain::FileSystemReport| found.syncs.latency.count;
        // Pipes, and files in memory, are on no file system that is known here.
        let known = |found: &&luc_explain::FileSystemReport| !found.mount_point.is_empty();
        let found = report.file_systems.iter().filter(known).max_by_key(calls)?;
        let count = found.syncs.latency.count;
        if count == 0 {
            return None;
        }
        let per_call = |ns: u64| ns as f64 / 1e3 / count as f64;
        let mut us: BTreeMap<TimePart, f64> = BTreeMap::new();
        for (part, ns) in found.syncs.parts.iter() {
            *us.entry(TimePart::of(part)).or_default() += per_call(ns);
        }
        let gated =
            outcome.file_systems.iter().find(|other| other.mount_point == found.mount_point);
        if let Some((other, gate)) = gated.and_then(|other| Some((other, other.gate.as_ref()?))) {
            let share = gate.gated as f64 / other.calls().max(1) as f64;
            let held_us = share * (gate.mean_wait_us + gate.mean_write_back_us);
            if held_us > 0.0 {
                us.insert(TimePart::Gate, held_us);
            }
        }
        let sum: f64 = us.values().sum();
        let parts = us.into_iter().map(|(part, us_per_call)| {
            let share = us_per_call / sum.max(f64::MIN_POSITIVE);
            (part, PartTime { us_per_call, share })
        });
        Some(Self {
            mount_point: found.mount_point.clone(),
            calls: count,
            since_s: None,
            calls_per_commit: found.commits.syncs_per_commit,
            parts: parts.collect(),
        })
    }

    fn time_of(&self, part: TimePart) -> PartTime {
        let nothing = PartTime { us_per_call: 0.0, share: 0.0 };
        self.parts.get(&part).copied().unwrap_or(nothing)
    }
}

impl fmt::Display for TimeSplit {
    /// The split as one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts: Vec<_> = self.parts.iter().collect();
        parts.sort_by(|(_, a), (_, b)| b.share.total_cmp(&a.share));
        let words: Vec<String> = parts
            .iter()
            .filter(|(_, taken)| taken.share >= MIN_SHARE)
            .map(|(part, taken)| format!("{} {:.0} %", part.label(), taken.share * 100.0))
            .collect();
        let since =
            self.since_s.map_or_else(String::new, |since_s| format!(" from {since_s:.2} s on"));
        writeln!(
            f,
            "     why: of a call's time on {}{since}: {}",
            self.mount_point,
            words.join(", ")
        )
    }
}

/// A run without the gate and one with it.
#[derive(Clone, Debug, Serialize)]
pub struct TimeSplitChange {
    /// Split of the run without the gate.
    pub without: TimeSplit,
    /// Split of the run with the gate.
    pub with: TimeSplit,
}

impl fmt::Display for TimeSplitChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { without, with } = self;
        writeln!(
            f,
            "luc: why, by one recorded run of each, which do not count above; of a call's time on {}:",
            with.mount_point
        )?;
        let mut parts: Vec<TimePart> =
            without.parts.keys().chain(with.parts.keys()).copied().collect();
        parts.sort_unstable();
        parts.dedup();
        for part in parts {
            let (before, after) = (without.time_of(part), with.time_of(part));
            if before.share.max(after.share) < MIN_SHARE {
                continue;
            }
            writeln!(
                f,
                "     {:<21} {:>10} -> {:<10} {:.0} % -> {:.0} %",
                part.label(),
                FormattedTime::from_us(before.us_per_call).to_string(),
                FormattedTime::from_us(after.us_per_call).to_string(),
                before.share * 100.0,
                after.share * 100.0
            )?;
        }
        writeln!(
            f,
            "     {:<21} {:>10.1} -> {:.1}",
            "calls per commit", without.calls_per_commit, with.calls_per_commit
        )
    }
}

/// A run and, if it was recorded, its explanation.
#[derive(Debug)]
pub struct RecordedRun {
    pub outcome: RunOutcome,
    /// Split of its calls' time, `None` if there were no calls. The error says in one line why it is not known.
    pub why: Result<Option<TimeSplit>, String>,
}

/// Runs the command by `launch`, and records it if that is possible.
///
/// # Errors
/// Those of `launch`. A recording that is not possible is no error.
pub fn explain(
    launch: impl FnOnce() -> Result<RunOutcome, RunError>,
) -> Result<RecordedRun, RunError> {
    let recording =
        Recording::start(RecordingFilter { children: true, ..RecordingFilter::default() });
    let outcome = launch()?;
    let recorded = recording.and_then(Recording::stop);
    Ok(RecordedRun::new(outcome, recorded.map(|found| (found, None))))
}

/// Runs the command by `launch`, and records it meanwhile, if that is possible. The command waits for the recorder
/// neither at its start nor at its end. So its first calls are not seen. `launch` calls its argument with the
/// command's process as soon as there is one.
///
/// # Errors
/// Those of `launch`.
pub fn explain_meanwhile(
    launch: impl FnOnce(OnStart<'_>) -> Result<RunOutcome, RunError>,
) -> Result<RecordedRun, RunError> {
    let mut beginning = None;
    let outcome = launch(Box::new(|process| {
        beginning = Some(Beginning::new(process));
    }))?;
    let recorded = beginning.unwrap_or(Err(RunError::NoRecorder)).and_then(Beginning::end);
    Ok(RecordedRun::new(outcome, recorded.map(|(found, since)| (found, Some(since)))))
}

/// The results of a recording, and the time after the command's start at which it began; `None` if it began before.
type Found = ((TraceReport, RecordedSyncs), Option<Duration>);

impl RecordedRun {
    fn new(mut outcome: RunOutcome, recorded: Result<Found, RunError>) -> Self {
        let why = match recorded {
            Ok(((report, testimony), since)) => {
                let since_s = since.map(|since| since.as_secs_f64());
                let unseen_s = since_s.unwrap_or(0.0);
                let is_whole = unseen_s < MAX_UNSEEN * outcome.gate.elapsed_s;
                outcome.gate.compare_with(&testimony.seen, is_whole);
                outcome.passing_by =
                    Some(RecordedSyncWays { since_s: unseen_s, ways: testimony.ways });
                let split = TimeSplit::of(&report, &outcome.gate);
                Ok(split.map(|split| TimeSplit { since_s, ..split }))
            }
            Err(error) => {
                outcome.unrecorded = Some(error.to_string());
                Err(error.to_string())
            }
        };
        Self { outcome, why }
    }
}

/// A recorder that begins while the command runs.
struct Beginning {
    /// Dropped as the command ends, which keeps a recorder from beginning.
    running: Sender<()>,
    began: JoinHandle<Result<(Recording, Duration), RunError>>,
}

impl Beginning {
    fn new(process: u32) -> Result<Self, RunError> {
        let started = Instant::now();
        let (running, ended) = channel();
        let begin = move || {
            if ended.recv_timeout(RECORDER_DELAY) != Err(RecvTimeoutError::Timeout) {
                return Err(RunError::TooShort);
            }
            let recording = Recording::start(RecordingFilter {
                processes: vec![process],
                ..RecordingFilter::default()
            })?;
            Ok((recording, started.elapsed()))
        };
        let began = spawn_without_signals("luc-why-begin", begin).map_err(RunError::Thread)?;
        Ok(Self { running, began })
    }

    /// The results, and the time after the start at which the recorder was ready. A recorder that is not ready now is
    /// left to end with this process.
    fn end(self) -> Result<((TraceReport, RecordedSyncs), Duration), RunError> {
        drop(self.running);
        if !self.began.is_finished() {
            return Err(RunError::TooShort);
        }
        let (recording, since) = self.began.join().map_err(|_| RunError::Analysis)??;
        Ok((recording.stop()?, since))
    }
}

/// A recording in progress, and its analysis.
struct Recording {
    recorder: Recorder,
    analyst: JoinHandle<(TraceReport, RecordedSyncs)>,
}

impl Recording {
    fn start(filter: RecordingFilter) -> Result<Self, RunError> {
        let namespace = fs::metadata("/proc/self/ns/pid").map_or(0, |found| found.ino());
        if namespace != HOST_PROCESSES {
            return Err(RunError::Namespace);
        }
        let options = RecorderOptions { filter, ..RecorderOptions::default() };
        let (sink, batches) = ForwardingSink::new();
        let mut description = None;
        let recorder = Recorder::start(options, |trace| {
            description = Some(trace);
            Ok(sink)
        })?;
        let trace = description.ok_or(RunError::NoRecorder)?;
        // Signals are for the run, which passes them on to the command.
        let analyst = spawn_without_signals("luc-why", move || analyse(trace, &batches))
            .map_err(RunError::Thread)?;
        Ok(Self { recorder, analyst })
    }

    fn stop(self) -> Result<(TraceReport, RecordedSyncs), RunError> {
        self.recorder.stop()?;
        let found = self.analyst.join();
        found.map_err(|_| RunError::Analysis)
    }
}

/// Analyses events in the order of time, though they come in that of tables, until there are no more.
fn analyse(
    trace: TraceDescription,
    batches: &Receiver<Vec<TraceEvent>>,
) -> (TraceReport, RecordedSyncs) {
    let mut analysis = Analysis::new(trace);
    let mut witness = SyncWitness::default();
    let mut add = |witness: &mut SyncWitness, event: TraceEvent| {
        witness.add(&event);
        analysis.add(event);
    };
    let (mut waiting, mut latest_ns) = (Vec::new(), 0);
    for batch in batches {
        witness.look_at(&batch);
        latest_ns = batch.iter().map(TraceEvent::time_ns).fold(latest_ns, u64::max);
        waiting.extend(batch);
        if waiting.len() >= MIN_BATCH_EVENTS {
            waiting.sort_by_key(TraceEvent::time_ns);
            let until_ns = latest_ns.saturating_sub(SETTLE_TIME_NS);
            let due = waiting.partition_point(|event| event.time_ns() <= until_ns);
            waiting.drain(..due).for_each(|event| add(&mut witness, event));
        }
    }
    waiting.sort_by_key(TraceEvent::time_ns);
    waiting.into_iter().for_each(|event| add(&mut witness, event));
    (analysis.finish(), witness.testify())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(shares: &[(TimePart, f64)]) -> TimeSplit {
        let taken = |share: f64| PartTime { us_per_call: share * 1e4, share };
        TimeSplit {
            mount_point: "/srv".to_owned(),
            calls: 9,
            calls_per_commit: 2.0,
            since_s: None,
            parts: shares.iter().map(|&(part, share)| (part, taken(share))).collect(),
        }
    }

    #[test]
    fn a_change_names_what_takes_time_on_either_side() {
        let change = TimeSplitChange {
            without: why(&[(TimePart::Predecessor, 0.46), (TimePart::OwnCommit, 0.54)]),
            with: why(&[
                (TimePart::OwnCommit, 0.9),
                (TimePart::Gate, 0.09),
                (TimePart::Other, 0.01),
            ]),
        };
        let text = change.to_string();
        assert!(text.contains("46 % -> 0 %") && text.contains("0 % -> 9 %"), "{text}");
        assert!(!text.contains("other"), "{text}");
    }

    #[test]
    fn one_side_is_one_line_largest_first() {
        let text = why(&[(TimePart::Predecessor, 0.2), (TimePart::OwnCommit, 0.8)]).to_string();
        assert!(text.ends_with("/srv: own commit 80 %, predecessor waits 20 %\n"), "{text}");
        assert_eq!(text.lines().count(), 1);
    }
}
