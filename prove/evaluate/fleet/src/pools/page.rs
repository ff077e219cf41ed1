//! The page: judgement of the calls that the servers handed over.

use luc_harness::report::Page;

use super::spans::{self, Spans};
use super::subjects::{SUBJECTS, Subject};
use super::{PoolRun, REQUESTS};
use crate::calls::tables::{Owed, Row, of_evidence, of_shares};
use crate::recorder::WARMUP;

/// Targets of Java pools.
const OWED: Owed = Owed { right: 99.0, wrong: 0.5 };

/// Describes a run in a few words.
pub(super) fn brief(run: &PoolRun) -> String {
    format!("{}: {}", run.subject, run.counts.brief())
}

pub(super) fn page(runs: &[PoolRun], versions: &[String], rounds: usize) -> Page {
    let of_subjects = SUBJECTS.iter().filter_map(|one| Some((one, row(one, runs)?)));
    let (subjects, rows): (Vec<&Subject>, Vec<Row>) = of_subjects.unzip();
    let owing = subjects.iter().zip(&rows).filter(|(subject, _)| subject.is_target);
    let mut tables = vec![
        (
            "What is said of each server's calls; in parentheses the 95 % score interval over all of them:"
                .to_owned(),
            of_shares(&["server", "clients", "requests"], &rows),
        ),
        (
            "The same calls by the evidence that is given:".to_owned(),
            of_evidence("server", &rows),
        ),
    ];
    let with_spans: Vec<(&str, Vec<Spans>)> = subjects
        .iter()
        .map(|subject| {
            let of_subject = runs.iter().filter(|run| run.subject == subject.name);
            (subject.name, of_subject.filter_map(|run| run.spans).collect())
        })
        .collect();
    if let Some(table) = spans::table(&with_spans) {
        let title = "Spans that OpenTelemetry's instrumentation wrote in these servers, put to requests by `--spans`:";
        tables.push((title.to_owned(), table));
    }
    Page {
        title: "Requests handed over inside servers, told from their messages and waits".to_owned(),
        about: about(versions, rounds),
        tables,
        targets: owing.flat_map(|(subject, row)| OWED.targets(subject.name, &row.counts)).collect(),
    }
}

fn row(subject: &Subject, runs: &[PoolRun]) -> Option<Row> {
    let of_subject = runs.iter().filter(|run| run.subject == subject.name);
    let of_subject: Vec<&PoolRun> = of_subject.collect();
    let requests: usize = of_subject.iter().map(|run| run.requests).sum();
    let cells = [subject.name.to_owned(), subject.clients.to_string(), requests.to_string()];
    let counts = of_subject.iter().map(|run| (&run.counts, run.lost_rows));
    (!of_subject.is_empty()).then(|| Row::sum(cells, counts))
}

fn about(versions: &[String], rounds: usize) -> String {
    format!(
        "Servers that nobody changed for LUC (`prove/evaluate/fleet/subjects`; {}) are asked by clients that each have a \
         connection and send {REQUESTS} requests, one after the other. For each request a server calls a back end, three \
         times at once (nginx once), and waits for all answers; a call takes 0.2 to 3 ms. `luc record --fleet` \
         records the machine, from {} s before the first request, and `luc fleet explain --json --rows` says which \
         request each call was made for. Requests carry a number in their bytes, which the servers pass on. Clients and \
         back end write down which byte of which connection had which number; the recorder does not look at bytes, \
         but for servers with a traceparent in their names: those are sent one and pass it on, and are recorded with \
         `--tokens`. A call is *right* if it is put to the request of its number, *wrong* if to another one, *unknown* if to none, and \
         *missing* if there is no such call in the answer. A pool hands calls to its workers over a queue in memory, and \
         with 2 or 4 workers the queue is never empty. Of those with 4 connections at most, a call waits until a \
         connection is free. With OpenTelemetry, its own packages instrument the unchanged server and write a span of each request and \
         of each call; a request's span is *right* if it is put to the request of its number, a call's if to a call for that \
         request. {rounds} rounds of each server, with other seeds.",
        versions.join("; "),
        WARMUP.as_secs()
    )
}
