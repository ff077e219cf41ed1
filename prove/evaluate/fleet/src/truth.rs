//! Part `fleet-truth`: records the search twin with a planted trouble. It judges `luc fleet explain` by the twin's
//! own record of the truth.

mod cause;
mod edges;
mod guest;
mod idle;
mod plants;
mod requests;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use luc_harness::disks::{Disk, DiskSpec, EXT4};
use luc_harness::error::EvaluateError;
use luc_harness::harness::{Harness, line, missing, remove_folder};
use luc_harness::progress::Progress;
use luc_twin_truth::{Folder, Role, Truth, streams, trees};
use serde::Serialize;
use serde_json::json;

use plants::{PLANTS, Plant};

use crate::answer::Answer;
use crate::calls::Calls;
use crate::cause::Judgement;
use crate::hosts::{self, Clock, HostPart};

/// Number of seeds of each trouble.
const SEEDS: usize = 20;
/// Disk for planted reads and fsyncs: an emulated one like a volume of a cloud. This machine's own may be faster than a
/// search.
const DISK: DiskSpec = DiskSpec { model: &["--model", "cloud"], ..EXT4 };
/// Name of the twin's program, beside this one.
const TWIN: &str = "luc-twin";
/// Text of the twin's error where a kernel cannot do something.
const CANNOT_BE_DONE: &str = "cannot be done here";

#[derive(Debug, Clone, Serialize)]
struct TwinRun {
    plant: &'static str,
    seed: u64,
    /// Whether it was made in a guest, because the kernel here cannot plant the trouble.
    in_guest: bool,
    /// Reason why it could not be made there either. The other fields are empty then.
    unable: Option<String>,
    queries: usize,
    lost_rows: u64,
    /// Judgement of the recorded trace, which is of one host.
    one_host: Judged,
    /// Judgement of the trace as those of four hosts with clocks of their own.
    hosts: Judged,
}

/// Judgement of an explanation.
#[derive(Debug, Clone, Default, Serialize)]
struct Judged {
    edges: edges::EdgeCounts,
    requests: Calls,
    waits: idle::Waits,
    /// Whether the parts of each path, and the findings, sum to the requests' time.
    sums: bool,
    cause: Option<Judgement>,
}

impl TwinRun {
    /// Describes the run in a few words.
    fn brief(&self) -> String {
        if let Some(why) = &self.unable {
            return format!("not made: {why}");
        }
        let views = [("as one host", &self.one_host), ("as four hosts", &self.hosts)];
        let views = views.map(|(name, judged)| {
            let cause = judged.cause.as_ref().map_or("-".to_owned(), |cause| {
                if cause.is_right() {
                    "right".to_owned()
                } else {
                    format!("wrong ({}): {}", cause.wrong.join(", "), cause.first)
                }
            });
            format!(
                "{name} {} of {} edges, {} of {} requests, first cause {cause}",
                judged.edges.found,
                judged.edges.planted,
                judged.requests.all_right(),
                judged.requests.calls
            )
        });
        views.join("; ")
    }
}

/// Makes part `fleet-truth`.
///
/// # Errors
/// A twin that is not built, a recording or an explanation that fails, and interruption.
pub fn run(harness: &Harness) -> Result<(), EvaluateError> {
    let twin = twin(harness)?;
    let seeds = harness.options.repeats.unwrap_or(SEEDS).max(1) as u64;
    let wanted = PLANTS.iter().filter(|plant| harness.options.wants(plant.name));
    let wanted: Vec<&Plant> = wanted.collect();
    if wanted.is_empty() {
        return Err(harness.options.no_cell());
    }
    let mut progress = Progress::new(harness.part, wanted.len() * seeds as usize);
    for seed in (0..seeds).map(|seed| harness.options.seed + seed) {
        for plant in &wanted {
            let run = run_plant(harness, &twin, plant, seed)?;
            progress.step(&format!("{} {seed}: {}", plant.name, run.brief()));
        }
    }
    Ok(())
}

fn twin(harness: &Harness) -> Result<PathBuf, EvaluateError> {
    let program = harness.options.myself.with_file_name(TWIN);
    if program.is_file() {
        return Ok(program);
    }
    let how = "luc-twin beside luc-evaluate: build it by `scripts/cargo.sh build --release --locked -p luc-twin`";
    Err(EvaluateError::file("find", how)(ErrorKind::NotFound.into()))
}

/// Records the twin, and judges the explanation.
fn run_plant(
    harness: &Harness,
    twin: &Path,
    plant: &Plant,
    seed: u64,
) -> Result<TwinRun, EvaluateError> {
    let (trace, truth) = (harness.path("trace"), harness.path("truth"));
    let disk = plant.needs_disk().then(|| Disk::create(harness, &DISK));
    let disk = disk.transpose()?;
    let folder = disk.as_ref().map_or_else(|| Path::new(""), |disk| disk.mount.as_path());
    let words = plant.words(seed, folder);
    let mut command =
        harness.luc(&["record", "--fleet", "--all", "--no-calls", "--quiet", "--out"]);
    command.arg(&trace).arg("--").arg(twin).arg("run").arg(&truth);
    command.args(&words);
    let finished = harness.execute(&mut command, &[0, 2])?;
    let mut run = TwinRun {
        plant: plant.name,
        seed,
        in_guest: false,
        unable: None,
        queries: 0,
        lost_rows: 0,
        one_host: Judged::default(),
        hosts: Judged::default(),
    };
    if finished.status != 0 {
        if !finished.said.contains(CANNOT_BE_DONE) {
            return Err(twin_error(&command, finished.status, finished.said));
        }
        remove_folder(&trace)?;
        remove_folder(&truth)?;
        run.in_guest = true;
        run.unable = guest::record(harness, twin, &words, [&trace, &truth])?;
    }
    if run.unable.is_none() {
        judge(harness, plant, &mut run)?;
    }
    for folder in [&trace, &truth] {
        remove_folder(folder)?;
    }
    let mut kept = json!(run);
    kept["command"] = json!(line(&command));
    harness.keep(kept);
    Ok(run)
}

fn judge(harness: &Harness, plant: &Plant, run: &mut TwinRun) -> Result<(), EvaluateError> {
    let (trace, truth) = (harness.path("trace"), harness.path("truth"));
    let wrong = |error: String| missing(&format!("the twin's truth ({error})"));
    let folder = Folder::read(&truth).map_err(|error| wrong(error.to_string()))?;
    // The truth must be whole.
    streams(&folder).map_err(|error| wrong(error.to_string()))?;
    run.queries = trees(&folder).map_err(|error| wrong(error.to_string()))?.len();
    let answer = Answer::of(harness, &[trace.as_path()])?;
    run.lost_rows = answer.lost_rows();
    run.one_host = judged(plant, &folder, &answer, None);

    let of_process = |process: &Truth| HostPart {
        name: process.header.host.clone(),
        namespace: process.header.namespace,
        processes: vec![process.header.process],
    };
    let parts: Vec<HostPart> = folder.processes.iter().map(of_process).collect();
    let clocks = hosts::clocks(&trace, parts.len())?;
    let answer = hosts::explained(harness, &trace, &parts, &clocks)?;
    run.hosts = judged(plant, &folder, &answer, Some(&clocks));
    Ok(())
}

/// Judges an answer. `clocks` are those of the hosts, if each process has one.
fn judged(plant: &Plant, folder: &Folder, answer: &Answer, clocks: Option<&[Clock]>) -> Judged {
    Judged {
        edges: edges::count(folder, &answer.rows, clocks),
        requests: requests::count(folder, &answer.rows),
        waits: idle::count(folder, answer, clocks),
        sums: answer.sums(),
        cause: plant.kind.map(|kind| cause::judge(kind, folder, answer, clocks.is_some())),
    }
}

/// Returns the front end of a run.
fn front_end(folder: &Folder) -> Option<&Truth> {
    folder.of(Role::FrontEnd).next()
}

fn twin_error(command: &Command, status: i32, said: String) -> EvaluateError {
    EvaluateError::Command { command: line(command), how: format!("exit status: {status}"), said }
}
