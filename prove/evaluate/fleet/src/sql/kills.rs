//! An executor is killed at any time of a query: a part may have begun, others may read its rows, or it may be done.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use luc_harness::error::EvaluateError;
use luc_harness::harness::{Harness, missing};
use luc_harness::progress::Progress;
use luc_harness::runs::Runs;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::servers::{EXECUTORS, Servers};
use super::{Query, plant};
use crate::asked::{Asked, ask};

/// Kills, spread evenly over the time that a query takes.
const KILLS: usize = 60;
/// Rows of the traces.
pub(super) const ROWS: u64 = 1_000_000;
/// Fractions that are multiples of this, modulo 1, leave no gap (the golden ratio).
const SPREAD: f64 = 0.618_033_988_749_895;

/// Queries of one exchange of rows, of several, and with a part that takes much longer than the ones before it.
const QUERIES: [Query; 3] = [
    Query {
        name: "pairs of groups, which takes longest in its last part",
        sql: "select a.host, count(*) as n from (select host, on_ns % 12000 as k from wait group by 1, 2) a \
              join (select on_ns % 12000 as k from wait group by 1) b on a.k % 10 = b.k % 10 and a.k * 7 % 11 <> b.k * 5 % 13 \
              group by a.host order by a.host",
    },
    Query {
        name: "pairs of a host's waits",
        sql: "select a.host, count(*) as n, sum((a.on_ns - b.off_ns) % 1000) as ns from wait a join wait b \
              on a.host = b.host and a.thread = b.thread and a.on_ns > b.off_ns where a.on_ns % 40 = 0 \
              group by a.host order by a.host",
    },
    Query {
        name: "edges joined with requests",
        sql: "select e.from_host, e.to_host, count(*) as n, sum(e.bytes) as bytes, sum(e.to_ns - e.from_ns) as ns \
              from fleet.edge e join fleet.request r on e.to_host = r.host and e.to_connection = r.connection \
              and e.to_ns = r.start_ns where not r.is_sent group by 1, 2 order by 1, 2",
    },
];

/// A query whose executor was killed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Kill {
    pub(super) query: String,
    pub(super) undisturbed: Asked,
    pub(super) killed: Asked,
    /// When, as a part of the time that the query takes without.
    pub(super) at: f64,
    /// Whether the query had not ended then.
    pub(super) was_meanwhile: bool,
    /// Whether both answers are that of one process.
    pub(super) same: bool,
}

/// The kills that are wanted.
pub(super) fn wanted(harness: &Harness) -> Vec<usize> {
    let is_wanted = |number: &usize| harness.options.wants(&format!("kill {number}"));
    (0..KILLS).filter(is_wanted).collect()
}

pub(super) fn run(
    harness: &Harness,
    program: &Path,
    earlier: &Runs,
    progress: &mut Progress,
) -> Result<Vec<Kill>, EvaluateError> {
    let directory = harness.path("traces");
    let mut planted: Option<Vec<PathBuf>> = None;
    let mut kills = Vec::new();
    for number in wanted(harness) {
        let result = earlier.get(&json!({ "kill": number }), || {
            let traces = match &mut planted {
                Some(planted) => planted,
                none => none.insert(plant(&directory, ROWS)?.1),
            };
            Ok(json!(once(harness, program, number, traces)?))
        })?;
        let kill: Kill =
            serde_json::from_value(result).map_err(|_| missing("the run of a kill"))?;
        progress.step(&format!("kill {number}: {:.1} s", kill.killed.seconds));
        kills.push(kill);
    }
    if planted.is_some() {
        fs::remove_dir_all(&directory).map_err(EvaluateError::file("remove", &directory))?;
    }
    Ok(kills)
}

fn once(
    harness: &Harness,
    program: &Path,
    number: usize,
    traces: &[PathBuf],
) -> Result<Kill, EvaluateError> {
    let query = QUERIES[number % QUERIES.len()];
    let command = |words: &[&str]| {
        let mut command = Command::new(program);
        command.args(["sql", "--csv"]).args(words);
        command.arg(query.sql).args(traces);
        command
    };
    let (_, answer) = ask(harness, command(&[]), |_| {})?;
    let mut servers = Servers::start(harness, program)?;
    let url = servers.url();
    let (undisturbed, first) = ask(harness, command(&["--cluster", &url]), |_| {})?;
    let at = (number as f64 * SPREAD).fract();
    let moment = Duration::from_secs_f64(undisturbed.seconds * at);
    let mut was_meanwhile = None;
    let (killed, second) = ask(harness, command(&["--cluster", &url]), |elapsed| {
        if was_meanwhile.is_none() && elapsed >= moment {
            was_meanwhile = Some(servers.kill(number / QUERIES.len() % EXECUTORS));
        }
    })?;
    Ok(Kill {
        query: query.name.to_owned(),
        undisturbed,
        killed,
        at,
        was_meanwhile: was_meanwhile == Some(true),
        same: first == answer && second == answer,
    })
}
