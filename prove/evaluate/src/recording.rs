//! Part `recording`: the throughput that a program loses while it is recorded, beside bpftrace doing a part of the
//! same.

use std::path::Path;

use luc_harness::Extent;
use luc_harness::report::number;
use luc_stats::random;
use rand::seq::SliceRandom as _;
use serde_json::{Value, json};

use crate::disks::{Disk, EXT4};
use crate::drift::around;
use crate::error::EvaluateError;
use crate::harness::{Harness, count, directory_bytes, figure, line, missing, parse};
use crate::progress::Progress;
use crate::rival::Rival;
use crate::steal::{self, with_stolen_share};

const THREADS: usize = 64;
const SWITCHES_PER_S: f64 = 100_000.0;
/// Time at the beginning that is not counted: during the first second of any recording system calls are looked at.
const WARMUP_S: f64 = 1.5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RecordedProgram {
    Fsyncs,
    /// On all processors, or on one.
    Switches {
        one: bool,
    },
}

impl RecordedProgram {
    const ALL: [Self; 3] =
        [Self::Fsyncs, Self::Switches { one: false }, Self::Switches { one: true }];

    fn name(self) -> &'static str {
        match self {
            Self::Fsyncs => "64 fsyncing threads",
            Self::Switches { one: false } => "100,000 switches/s",
            Self::Switches { one: true } => "100,000 switches/s on one processor",
        }
    }

    /// Key of its throughput in the program's output.
    fn figure(self) -> &'static str {
        match self {
            Self::Fsyncs => "creations_per_second",
            Self::Switches { .. } => "rounds_per_s",
        }
    }

    fn pairs(self) -> usize {
        match self {
            Self::Switches { one: false } => {
                std::thread::available_parallelism().map_or(1, usize::from)
            }
            _ => 1,
        }
    }

    /// Returns the command whose throughput is measured.
    fn words(self, harness: &Harness, disk: &Path, work: u64, seconds: f64) -> Vec<String> {
        let words = match self {
            Self::Fsyncs => format!(
                "{} bench metarates --threads {THREADS} --file-size 1k --json --seconds {seconds} --dir {}",
                harness.luc_path().display(),
                disk.display()
            ),
            Self::Switches { .. } => format!(
                "{} switches --pairs {} --work {work} --warmup {WARMUP_S} --seconds {seconds}",
                harness.options.myself.display(),
                self.pairs()
            ),
        };
        words.split(' ').map(str::to_owned).collect()
    }
}

/// Recorder that a program runs under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RecorderKind {
    Unrecorded,
    Events,
    Summary,
    Rival,
}

impl RecorderKind {
    const RECORDERS: [Self; 3] = [Self::Events, Self::Summary, Self::Rival];

    fn name(self) -> &'static str {
        match self {
            Self::Unrecorded => "unrecorded",
            Self::Events => "luc record",
            Self::Summary => "luc record --summary",
            Self::Rival => "bpftrace",
        }
    }
}

/// Program and recorder of a run in a round.
#[derive(Clone, Copy)]
struct RecordingTrial {
    cell: RecordedProgram,
    setting: RecorderKind,
    repeat: usize,
}

pub(super) fn run(harness: &Harness) -> Result<(), EvaluateError> {
    let Extent { repeats, seconds } = harness.options.extent(16, 3.0);
    let rival = Rival::find(harness);
    let cells: Vec<RecordedProgram> = RecordedProgram::ALL
        .into_iter()
        .filter(|cell| harness.options.wants(cell.name()))
        .collect();
    let mut work = Vec::new();
    for &cell in &cells {
        work.push(match cell {
            RecordedProgram::Fsyncs => 0,
            RecordedProgram::Switches { .. } => calibrate(harness, cell)?,
        });
    }
    let mut recorders = RecorderKind::RECORDERS.to_vec();
    recorders.retain(|&setting| setting != RecorderKind::Rival || rival.is_ok());
    let disk = Disk::create(harness, &EXT4)?;
    let mut progress = Progress::new(harness.part, cells.len() * (recorders.len() + 2) * repeats);
    for repeat in 0..repeats {
        let mut random = random::stream(harness.options.seed, repeat as u64);
        let mut order: Vec<(RecordedProgram, u64)> =
            cells.iter().copied().zip(work.clone()).collect();
        order.shuffle(&mut random);
        for (cell, work) in order {
            recorders.shuffle(&mut random);
            let words = cell.words(harness, &disk.mount, work, seconds);
            for setting in around(RecorderKind::Unrecorded, &recorders) {
                let rival = rival.as_ref().ok().filter(|_| setting == RecorderKind::Rival);
                let trial = RecordingTrial { cell, setting, repeat };
                let throughput = steal::undisturbed(harness, |may_repeat| {
                    measure_once(harness, &disk, trial, &words, rival, may_repeat)
                })?;
                progress.step(&format!(
                    "{}, {}: {}/s",
                    cell.name(),
                    setting.name(),
                    number(throughput)
                ));
            }
        }
    }
    Ok(())
}

/// Finds the work between two switches, once and unrecorded, so that all settings do the same.
fn calibrate(harness: &Harness, cell: RecordedProgram) -> Result<u64, EvaluateError> {
    let mut command = std::process::Command::new(&harness.options.myself);
    command.args(["switches", "--seconds", "0.5", "--calibrate"]);
    command.args([SWITCHES_PER_S.to_string(), "--pairs".to_owned()]);
    command.arg(cell.pairs().to_string());
    let done: Value =
        parse(&harness.execute(&mut command, &[0])?.stdout, "the work between switches")?;
    count(&done, "work")
}

/// Makes a run. Returns its throughput, and the share of the processors' time that was stolen during it.
fn measure_once(
    harness: &Harness,
    disk: &Disk<'_>,
    trial: RecordingTrial,
    words: &[String],
    rival: Option<&Rival>,
    may_repeat: bool,
) -> Result<(f64, f64), EvaluateError> {
    let RecordingTrial { cell, setting, repeat } = trial;
    let trace = harness.path("trace");
    let mut all: Vec<String> = match setting {
        RecorderKind::Unrecorded | RecorderKind::Rival => Vec::new(),
        RecorderKind::Events | RecorderKind::Summary => {
            let mut under = vec![harness.luc_path().display().to_string(), "record".to_owned()];
            if setting == RecorderKind::Summary {
                under.push("--summary".to_owned());
            }
            under.extend(["--quiet".to_owned(), "--out".to_owned()]);
            under.extend([trace.display().to_string(), "--".to_owned()]);
            under
        }
    };
    all.extend_from_slice(words);
    disk.settle()?;
    let watching = rival.map(|rival| rival.start(harness)).transpose()?;
    let mut command = std::process::Command::new(&all[0]);
    command.args(&all[1..]);
    let (finished, stolen_share) = with_stolen_share(|| harness.execute(&mut command, &[0]))?;
    let watched = watching.map(|watching| watching.stop()).transpose()?;
    let done: Value = parse(&finished.stdout, "the throughput")?;
    let (mut lost, mut trace_bytes_per_s) = (None, None);
    if matches!(setting, RecorderKind::Events | RecorderKind::Summary) {
        let bytes = directory_bytes(&trace)?;
        let report = harness.json(&["explain", &trace.display().to_string(), "--json"])?;
        std::fs::remove_dir_all(&trace).map_err(EvaluateError::file("remove", &trace))?;
        let places = report["lost"].as_object().ok_or_else(|| missing("lost"))?;
        lost = Some(places.values().filter_map(Value::as_u64).sum::<u64>());
        let begin_ns = figure(&report["trace"], "start_ns")?;
        let length_ns = figure(&report["trace"], "end_ns")? - begin_ns;
        trace_bytes_per_s = Some(bytes as f64 / (length_ns / 1e9).max(1e-9));
    }
    let throughput = figure(&done, cell.figure())?;
    let switches_per_s = figure(&done, "switches_per_s").ok();
    harness.keep(json!({
        "cell": cell.name(), "setting": setting.name(), "repeat": repeat, "command": line(&command),
        "throughput": throughput, "switches_per_s": switches_per_s, "lost": lost,
        "trace_bytes_per_s": trace_bytes_per_s, "rival_counted": watched, "stolen_share": stolen_share,
        "disturbed": steal::is_disturbed(may_repeat, stolen_share),
    }));
    Ok((throughput, stolen_share))
}
