//! Part `notifier`: static programs and Go programs whose calls are notified, beside a dynamic build of the same
//! program with the library. Also the cost of notifications where nothing can be gained.

use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use luc_harness::Extent;
use luc_stats::random;
use rand::seq::SliceRandom as _;
use serde_json::{Value, json};

use crate::disks::{Disk, DiskSpec, EXT4};
use crate::error::EvaluateError;
use crate::harness::{Harness, line, missing, of_disk, read_json};
use crate::progress::Progress;
use crate::steal::{self, with_stolen_share};

/// Number of callers that create files.
const CALLERS: &str = "16";

/// Rate at which a lone caller should append and fsync records on its disk without luc.
const LONE_PER_S: f64 = 1000.0;
/// Seconds for which each disk is tried.
const TRIED_SECONDS: &str = "1";

/// Disks on one of which an fsync of an appended record takes about 1 ms. It consists of two flushes, the requests of
/// data, log and commit block, and the emulation's overhead. The overhead depends on the machine.
const ABOUT_1MS: [DiskSpec; 5] = [
    flushing(&["--model", "fixed", "--flush", "150us", "--write", "20us", "--read", "20us"]),
    flushing(&["--model", "fixed", "--flush", "200us", "--write", "20us", "--read", "20us"]),
    flushing(&["--model", "fixed", "--flush", "250us", "--write", "20us", "--read", "20us"]),
    flushing(&["--model", "fixed", "--flush", "300us", "--write", "20us", "--read", "20us"]),
    flushing(&["--model", "fixed", "--flush", "350us", "--write", "20us", "--read", "20us"]),
];

const fn flushing(model: &'static [&'static str]) -> DiskSpec {
    DiskSpec { model, ..EXT4 }
}

/// The calling program, and what brings its calls together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum CallerSetting {
    StaticStock,
    DynamicLibrary,
    /// Recorded, as `luc run` does by default for root.
    DynamicRecorded,
    StaticNotified,
    StaticRecorded,
    /// Under a luc that may not have real-time priority, as for users without rights.
    StaticOrdinary,
    GoStock,
    /// A program whose fsync is the C library's, by cgo, so that the library can hold it.
    CgoLibrary,
    GoNotified,
    GoOrdinary,
    LoneStock,
    LoneNotified,
}

use CallerSetting::{
    CgoLibrary, DynamicLibrary, DynamicRecorded, GoNotified, GoOrdinary, GoStock, LoneNotified,
    LoneStock, StaticNotified, StaticOrdinary, StaticRecorded, StaticStock,
};

impl CallerSetting {
    const CREATING: [Self; 10] = [
        StaticStock,
        DynamicLibrary,
        DynamicRecorded,
        StaticNotified,
        StaticRecorded,
        StaticOrdinary,
        GoStock,
        CgoLibrary,
        GoNotified,
        GoOrdinary,
    ];
    const LONE: [Self; 2] = [LoneStock, LoneNotified];

    fn name(self) -> &'static str {
        match self {
            StaticStock => "static C, stock",
            DynamicLibrary => "dynamic C, library",
            DynamicRecorded => "dynamic C, library, recorded",
            StaticNotified => "static C, notified",
            StaticRecorded => "static C, notified, recorded",
            StaticOrdinary => "static C, notified, without real-time priority",
            GoStock => "Go, stock",
            CgoLibrary => "Go with cgo, library",
            GoNotified => "Go, notified",
            GoOrdinary => "Go, notified, without real-time priority",
            LoneStock => "a lone static caller, stock",
            LoneNotified => "a lone static caller, notified",
        }
    }

    fn reach(self) -> Option<&'static str> {
        match self {
            StaticStock | GoStock | LoneStock => None,
            DynamicLibrary | DynamicRecorded | CgoLibrary => Some("library"),
            StaticNotified | StaticRecorded | StaticOrdinary | GoNotified | GoOrdinary
            | LoneNotified => Some("notify"),
        }
    }

    fn is_recorded(self) -> bool {
        matches!(self, DynamicRecorded | StaticRecorded)
    }

    /// Returns the words that start luc.
    fn launcher(self) -> &'static [&'static str] {
        match self {
            StaticOrdinary | GoOrdinary => {
                &["prlimit", "--rtprio=0", "setpriv", "--bounding-set", "-sys_nice", "--"]
            }
            _ => &[],
        }
    }
}

struct Programs {
    dynamic: PathBuf,
    of_static: PathBuf,
    /// `None` if Go is not installed.
    go: Option<PathBuf>,
    cgo: Option<PathBuf>,
}

impl Programs {
    fn build(harness: &Harness) -> Result<Self, EvaluateError> {
        let source = include_str!("notifier/creator.c");
        Ok(Self {
            dynamic: harness.compile("creator", source, &[])?,
            of_static: harness.compile("creator-static", source, &["-static"])?,
            go: build_go(harness, "creator-go", PLAIN_SYNC)?,
            cgo: build_go(harness, "creator-cgo", CGO_SYNC)?,
        })
    }

    fn of(&self, setting: CallerSetting) -> Option<&PathBuf> {
        match setting {
            DynamicLibrary | DynamicRecorded => Some(&self.dynamic),
            GoStock | GoNotified | GoOrdinary => self.go.as_ref(),
            CgoLibrary => self.cgo.as_ref(),
            _ => Some(&self.of_static),
        }
    }
}

/// Source of a Go program's file synchronization, and the value of `CGO_ENABLED`.
type GoSync = (&'static str, &'static str);
const PLAIN_SYNC: GoSync = (include_str!("notifier/sync.go"), "0");
const CGO_SYNC: GoSync = (include_str!("notifier/sync_cgo.go"), "1");

/// Builds the Go program; `None` if Go is not installed.
fn build_go(
    harness: &Harness,
    name: &str,
    (sync, cgo): GoSync,
) -> Result<Option<PathBuf>, EvaluateError> {
    if Command::new("go").arg("version").output().is_err() {
        return Ok(None);
    }
    let program = harness.path(name);
    let mut command = Command::new("go");
    command.args(["build", "-o"]).arg(&program);
    for (file, text) in [("creator.go", include_str!("notifier/creator.go")), ("sync.go", sync)] {
        let source = harness.path(file);
        fs::write(&source, text).map_err(EvaluateError::file("write", &source))?;
        command.arg(&source);
    }
    command.env("CGO_ENABLED", cgo).env("GOCACHE", harness.path("go-cache"));
    harness.execute(&mut command, &[0])?;
    Ok(Some(program))
}

/// Setting of a run in a round, and the time for which it calls.
struct CallerTrial {
    setting: CallerSetting,
    repeat: usize,
    seconds: f64,
}

pub(super) fn run(harness: &Harness) -> Result<(), EvaluateError> {
    let Extent { repeats, seconds } = harness.options.extent(10, 5.0);
    let programs = Programs::build(harness)?;
    let has_program = |setting: &CallerSetting| programs.of(*setting).is_some();
    let creating: Vec<CallerSetting> =
        CallerSetting::CREATING.into_iter().filter(has_program).collect();
    let mut progress =
        Progress::new(harness.part, (creating.len() + CallerSetting::LONE.len()) * repeats);
    let lone_disk = disk_of_1ms(harness, &programs)?;
    for repeat in 0..repeats {
        for (settings, spec) in [(&creating[..], &EXT4), (&CallerSetting::LONE[..], &lone_disk)] {
            let mut settings = settings.to_vec();
            settings.shuffle(&mut random::stream(harness.options.seed, repeat as u64));
            let disk = Disk::create(harness, spec)?;
            for setting in settings {
                let per_s = steal::undisturbed(harness, |may_repeat| {
                    measure_once(
                        harness,
                        &disk,
                        &programs,
                        CallerTrial { setting, repeat, seconds },
                        may_repeat,
                    )
                })?;
                progress.step(&format!("{}: {per_s:.0}/s", setting.name()));
            }
        }
    }
    Ok(())
}

/// Returns the disk of [`ABOUT_1MS`] on which an fsync without luc is closest to 1 ms.
fn disk_of_1ms(harness: &Harness, programs: &Programs) -> Result<DiskSpec, EvaluateError> {
    let mut closest = (f64::INFINITY, EXT4);
    for spec in ABOUT_1MS {
        let disk = Disk::create(harness, &spec)?;
        let mut command = Command::new(&programs.of_static);
        command.args(["append", "1", TRIED_SECONDS]).current_dir(&disk.mount);
        let per_s = rate(harness, &mut command)?;
        harness.keep(json!({ "tried": spec.model, "per_s": per_s }));
        let distance = (per_s / LONE_PER_S).ln().abs();
        if distance < closest.0 {
            closest = (distance, spec);
        }
    }
    Ok(closest.1)
}

/// Runs a program that prints its calls per second.
fn rate(harness: &Harness, command: &mut Command) -> Result<f64, EvaluateError> {
    let output = harness.execute(command, &[0])?.stdout;
    output.trim().parse().map_err(|_| missing("the rate"))
}

/// Makes a run, and returns its rate and the share of the processors' time that was stolen during it.
fn measure_once(
    harness: &Harness,
    disk: &Disk<'_>,
    programs: &Programs,
    CallerTrial { setting, repeat, seconds }: CallerTrial,
    may_repeat: bool,
) -> Result<(f64, f64), EvaluateError> {
    let program = programs.of(setting).ok_or_else(|| missing("the program"))?;
    let report = harness.path("run.json");
    let mut command = match setting.reach() {
        None => Command::new(program),
        Some(reach) => {
            let mut words: Vec<&OsStr> = setting.launcher().iter().map(OsStr::new).collect();
            words.push(harness.luc_path().as_ref());
            words.extend(["run", "--reach", reach].map(OsStr::new));
            words.extend((!setting.is_recorded()).then_some(OsStr::new("--no-why")));
            words.extend([OsStr::new("--json"), report.as_ref(), OsStr::new("--")]);
            let mut command = Command::new(words[0]);
            command.args(&words[1..]).arg(program);
            command
        }
    };
    let is_lone = CallerSetting::LONE.contains(&setting);
    let (what, callers) = if is_lone { ("append", "1") } else { ("create", CALLERS) };
    command.args([what, callers, &seconds.to_string()]).current_dir(&disk.mount);
    disk.settle()?;
    let (per_s, stolen_share) = with_stolen_share(|| rate(harness, &mut command))?;
    let mut of_run = Value::Null;
    if setting.reach().is_some() {
        of_run = of_disk(&read_json(&report)?, disk.device()).clone();
    }
    harness.keep(json!({
        "setting": setting.name(), "repeat": repeat, "command": line(&command), "per_s": per_s, "luc": of_run,
        "stolen_share": stolen_share, "disturbed": steal::is_disturbed(may_repeat, stolen_share),
    }));
    Ok((per_s, stolen_share))
}
