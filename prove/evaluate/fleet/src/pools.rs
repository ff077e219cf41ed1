//! Part `fleet-pools`: records real servers that hand requests over inside a process. `luc fleet explain` is judged by
//! the names that the requests carry, which the recorder does not see.

pub mod back_end;
mod clients;
mod spans;
mod subjects;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs;
use std::path::Path;

use luc_harness::error::EvaluateError;
use luc_harness::harness::{Harness, missing};
use luc_harness::progress::Progress;
use serde::Serialize;
use serde_json::json;

use spans::Spans;
use subjects::{Program, SUBJECTS, Subject};

use crate::answer::Answer;
use crate::calls::Calls;
use crate::judge;
use crate::named::Named;
use crate::program::{answers, bound, free_port};
use crate::recorder::Recorder;
use crate::running::Running;

/// Number of rounds of each subject.
const ROUNDS: usize = 3;
/// Number of requests of each client.
const REQUESTS: u64 = 100;

#[derive(Debug, Clone, Serialize)]
struct PoolRun {
    subject: &'static str,
    /// Version, as the subject's program says it.
    version: String,
    seed: u64,
    commands: Vec<String>,
    requests: usize,
    counts: Calls,
    /// Spans that the server wrote, and the requests that they are assigned to.
    #[serde(skip_serializing_if = "Option::is_none")]
    spans: Option<Spans>,
    lost_rows: u64,
}

/// Makes part `fleet-pools`.
///
/// # Errors
/// A subject that cannot be made or does not answer, a recording or an explanation that fails, and interruption.
pub fn run(harness: &Harness) -> Result<(), EvaluateError> {
    let rounds = harness.options.repeats.unwrap_or(ROUNDS).max(1);
    let wanted = SUBJECTS.iter().filter(|subject| harness.options.wants(subject.name));
    let wanted: Vec<&Subject> = wanted.collect();
    if wanted.is_empty() {
        return Err(harness.options.no_cell());
    }
    // nginx's workers are not root.
    harness.let_others_pass()?;
    let mut versions: BTreeMap<Program, String> = BTreeMap::new();
    for subject in &wanted {
        if let Entry::Vacant(entry) = versions.entry(subject.program()) {
            entry.insert(subjects::make(harness, subject.program())?);
        }
    }
    let mut progress = Progress::new(harness.part, wanted.len() * rounds);
    for round in 0..rounds {
        for subject in &wanted {
            let version = &versions[&subject.program()];
            let seed = harness.options.seed + round as u64;
            let run = run_subject(harness, subject, version, seed)?;
            progress.step(&format!("{}: {}", run.subject, run.counts.brief()));
        }
    }
    Ok(())
}

/// Records a subject, and judges the explanation.
fn run_subject(
    harness: &Harness,
    subject: &Subject,
    version: &str,
    seed: u64,
) -> Result<PoolRun, EvaluateError> {
    let (trace, calls) = (harness.path("trace"), harness.path("calls.json"));
    let back_end_port = free_port()?;
    let back_end = start_back_end(harness, back_end_port, seed, &calls)?;
    answers(back_end_port)?;
    let port = free_port()?;
    let server = subject.start(harness, port, back_end_port)?;
    answers(port)?;
    let tokens: &[&str] = if subject.has_tokens { &["--tokens"] } else { &[] };
    let recorder = Recorder::of_fleet_with(harness, &trace, tokens)?;
    let load = clients::Load {
        clients: subject.clients,
        requests: REQUESTS,
        has_tokens: subject.has_tokens,
        seed,
    };
    let asked = clients::ask(port, load)?;
    let mut commands = vec![recorder.stop()?, server.command.clone()];
    server.end()?;
    commands.push(back_end.command.clone());
    back_end.end()?;
    let spans = subject.has_spans.then(|| subjects::spans_of(harness));
    let answer = Answer::with_spans(harness, &[&trace], spans.as_deref())?;
    let calls = read_calls(&calls)?;
    let spans = spans.map(|path| Spans::judge(&path, &asked, &calls, &answer.rows)).transpose()?;
    fs::remove_dir_all(&trace).map_err(EvaluateError::file("remove", &trace))?;
    let run = PoolRun {
        subject: subject.name,
        version: version.to_owned(),
        seed,
        commands,
        requests: asked.len(),
        counts: judge::count(&asked, &calls, &answer.rows),
        spans,
        lost_rows: answer.lost_rows(),
    };
    harness.keep(json!(run));
    Ok(run)
}

fn start_back_end(
    harness: &Harness,
    port: u16,
    seed: u64,
    calls: &Path,
) -> Result<Running, EvaluateError> {
    let mut command = bound("TERM", false);
    command.arg(&harness.options.myself).arg("back-end");
    command.arg(port.to_string()).arg(seed.to_string());
    command.arg(calls);
    Running::start(command, &harness.path("back-end.log"))
}

fn read_calls(path: &Path) -> Result<Vec<Named>, EvaluateError> {
    let text = fs::read_to_string(path).map_err(EvaluateError::file("read", path))?;
    fs::remove_file(path).map_err(EvaluateError::file("remove", path))?;
    serde_json::from_str(&text).map_err(|error| missing(&format!("the back end's calls ({error})")))
}
