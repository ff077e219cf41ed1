//! Part `fleet-solr`: records a search service of Solr on several hosts. `luc fleet explain` is judged by names that
//! queries carry, and by planted troubles.

pub mod clients;
pub(crate) mod node;
mod plants;
pub(crate) mod service;
mod settings;
mod streams;
pub mod tap;
pub mod trouble;

use std::fs;

use luc_harness::error::EvaluateError;
use luc_harness::harness::{Harness, missing};
use luc_harness::progress::Progress;
use serde::Serialize;
use serde_json::json;

use node::Solr;
use service::{Load, Service, Wanted};
use settings::{MAX_RUN_TIME, THINK};
use trouble::Trouble;

use crate::answer::Answer;
use crate::assigned_calls;
use crate::calls::Calls;
use crate::recorder::Recorder;

/// Number of rounds of each number of clients.
const ROUNDS: usize = 3;
/// Number of seeds of each trouble.
const SEEDS: usize = 5;
/// Numbers of clients that ask at once.
const CLIENTS: [u64; 2] = [4, 16];
/// Number of queries of a run, of all clients together.
const QUERIES: u64 = 2_000;

#[derive(Debug, Clone, Serialize)]
struct QueryRun {
    /// Names and versions of the programs.
    version: String,
    clients: u64,
    seed: u64,
    commands: Vec<String>,
    queries: u64,
    counts: Calls,
    lost_rows: u64,
}

/// Makes part `fleet-solr`.
///
/// # Errors
/// Solr cannot be made or does not answer, a recording or an explanation that fails, and interruption.
pub fn run(harness: &Harness) -> Result<(), EvaluateError> {
    let rounds = harness.options.repeats.unwrap_or(ROUNDS).max(1);
    let seeds = harness.options.repeats.unwrap_or(SEEDS).max(1);
    let wanted: Vec<u64> =
        CLIENTS.into_iter().filter(|clients| harness.options.wants(&name(*clients))).collect();
    let troubles: Vec<Trouble> =
        Trouble::ALL.into_iter().filter(|trouble| harness.options.wants(trouble.name())).collect();
    if wanted.is_empty() && troubles.is_empty() {
        return Err(harness.options.no_cell());
    }
    let solr = Solr::make(harness)?;
    let steps = wanted.len() * rounds + troubles.len() * seeds;
    let mut progress = Progress::new(harness.part, steps);
    for round in 0..rounds.max(seeds) {
        let seed = harness.options.seed + round as u64;
        for &clients in wanted.iter().filter(|_| round < rounds) {
            let run = run_round(harness, &solr, clients, seed)?;
            progress.step(&format!("{}: {}", name(clients), run.counts.brief()));
        }
        for &trouble in troubles.iter().filter(|_| round < seeds) {
            let run = plants::once(harness, &solr, trouble, seed)?;
            progress.step(&run.brief());
        }
    }
    Ok(())
}

/// Returns the name of the runs of `clients` clients.
fn name(clients: u64) -> String {
    format!("{clients} clients")
}

/// Records the service under a load, and judges the explanation of its calls.
fn run_round(
    harness: &Harness,
    solr: &Solr,
    clients: u64,
    seed: u64,
) -> Result<QueryRun, EvaluateError> {
    let trace = harness.path("trace");
    let service = Service::start(harness, solr, Wanted { seed, ..Wanted::default() })?;
    let tap = service.tap(harness)?;
    let recorder = Recorder::of_fleet(harness, &trace)?;
    let load = Load {
        clients,
        queries: Some(QUERIES / clients),
        longest: MAX_RUN_TIME,
        think: THINK,
        seed,
    };
    let asked = service.ask(harness, load)?;
    let mut commands = vec![recorder.stop()?];
    let (queries, calls) = service.apart(tap.end()?);
    commands.extend(service.commands());
    drop(service);
    if queries.len() as u64 != asked.queries || calls.len() < queries.len() * 2 {
        return Err(missing("queries, or their calls, of what the tap has seen"));
    }
    let answer = Answer::of(harness, &[&trace])?;
    fs::remove_dir_all(&trace).map_err(EvaluateError::file("remove", &trace))?;
    let run = QueryRun {
        version: solr.version.clone(),
        clients,
        seed,
        commands,
        queries: asked.queries,
        counts: assigned_calls::count(&queries, &calls, &answer.rows),
        lost_rows: answer.lost_rows(),
    };
    harness.keep(json!(run));
    Ok(run)
}
