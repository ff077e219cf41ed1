//! The page: what was found of what the servers handed over.

use super::subjects::{SUBJECTS, Subject};
use super::{REQUESTS, Run, WARMUP};
use crate::calls::{Calls, share_of, words};
use luc_claims::report::{Page, Table, Target};

/// What a Java pool owes: the least share of right calls, and the greatest of wrong ones.
const RIGHT: f64 = 0.99;
const WRONG: f64 = 0.005;

/// A run in a few words.
pub(super) fn brief(run: &Run) -> String {
    let counts = &run.counts;
    format!(
        "{}: of {} calls {} right, {} wrong, {} unknown, {} missing",
        run.subject,
        counts.calls,
        counts.all_right(),
        counts.all_wrong(),
        counts.unknown,
        counts.missing
    )
}

/// A subject's runs.
struct Row<'r> {
    subject: &'r Subject,
    requests: usize,
    counts: Calls,
    lost_rows: u64,
}

pub(super) fn page(runs: &[Run], versions: &[String], rounds: usize) -> Page {
    let rows: Vec<Row> = SUBJECTS.iter().filter_map(|one| row(one, runs)).collect();
    Page {
        title: "Requests handed over inside servers, told from their messages and waits".to_owned(),
        about: about(versions, rounds),
        tables: vec![
            (
                "What is said of each server's calls; in parentheses the 95 % score interval over all of them:"
                    .to_owned(),
                of_shares(&rows),
            ),
            ("The same calls by the evidence that is given:".to_owned(), of_evidence(&rows)),
        ],
        targets: rows.iter().filter(|row| row.subject.is_target).flat_map(targets).collect(),
    }
}

fn row<'r>(subject: &'r Subject, runs: &[Run]) -> Option<Row<'r>> {
    let of_subject: Vec<&Run> = runs
        .iter()
        .filter(|run| run.subject == subject.name)
        .collect();
    if of_subject.is_empty() {
        return None;
    }
    let mut counts = Calls::default();
    for run in &of_subject {
        counts.add(&run.counts);
    }
    Some(Row {
        subject,
        counts,
        requests: of_subject.iter().map(|run| run.requests).sum(),
        lost_rows: of_subject.iter().map(|run| run.lost_rows).sum(),
    })
}

fn about(versions: &[String], rounds: usize) -> String {
    format!(
        "Servers that nobody changed for LUC (`prove/evaluate/fleet/subjects`; {}) are asked by clients that each have a \
         connection and send {REQUESTS} requests, one after the other. For each request a server calls a back end, three \
         times at once (nginx once), and waits for all answers; a call takes 0.2 to 3 ms. `luc record --fleet` \
         records the machine, from {} s before the first request, and `luc fleet explain --json --rows` says which \
         request each call was made for. Requests carry a number in their bytes, which the servers pass on. Clients and \
         back end write down which byte of which connection had which number; the recorder does not look at bytes. A call \
         is *right* if it is put to the request of its number, *wrong* if to another one, *unknown* if to none, and \
         *missing* if there is no such call in the answer. A pool hands calls to its workers over a queue in memory, and \
         with 2 or 4 workers the queue is never empty. Of those with 4 connections at most, a call waits until a \
         connection is free. {rounds} rounds of each server, with other seeds.",
        versions.join("; "),
        WARMUP.as_secs()
    )
}

fn of_shares(rows: &[Row]) -> Table {
    let mut table = Table::new(&[
        "server",
        "clients",
        "requests",
        "calls",
        "right",
        "wrong",
        "unknown",
        "missing",
        "rows lost",
    ]);
    for row in rows {
        let counts = &row.counts;
        let share = |part| share_of(part, counts.calls);
        table.row(vec![
            row.subject.name.to_owned(),
            row.subject.clients.to_string(),
            row.requests.to_string(),
            counts.calls.to_string(),
            share(counts.all_right()),
            share(counts.all_wrong()),
            share(counts.unknown),
            share(counts.missing),
            row.lost_rows.to_string(),
        ]);
    }
    table
}

fn of_evidence(rows: &[Row]) -> Table {
    let mut table = Table::of_words(&["server", "right", "wrong"]);
    for row in rows {
        table.row(vec![
            row.subject.name.to_owned(),
            words(&row.counts.right),
            words(&row.counts.wrong),
        ]);
    }
    table
}

fn targets(row: &Row) -> [Target; 2] {
    let Row {
        subject, counts, ..
    } = row;
    let share = |part: u64| part as f64 / counts.calls.max(1) as f64;
    let (right, wrong) = (counts.all_right(), counts.all_wrong());
    let has_calls = counts.calls > 0;
    [
        Target::new(
            format!(
                "{}: at least {:.0} % of the calls are right",
                subject.name,
                RIGHT * 100.0
            ),
            has_calls && share(right) >= RIGHT,
            format!("{right} of {}", counts.calls),
        ),
        Target::new(
            format!(
                "{}: at most {:.1} % of the calls are wrong",
                subject.name,
                WRONG * 100.0
            ),
            has_calls && share(wrong) <= WRONG,
            format!("{wrong} of {}", counts.calls),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_pool_owes_right_calls_and_hardly_any_wrong_ones() {
        let met = |right, wrong| {
            let of = |count| BTreeMap::from([("effect".to_owned(), count)]);
            let counts = Calls {
                calls: 1000,
                right: of(right),
                wrong: of(wrong),
                ..Calls::default()
            };
            let row = Row {
                subject: &SUBJECTS[0],
                requests: 0,
                counts,
                lost_rows: 0,
            };
            targets(&row).map(|target| target.met)
        };
        assert_eq!(met(990, 5), [Some(true), Some(true)]);
        assert_eq!(met(989, 6), [Some(false), Some(false)]);
        let row = Row {
            subject: &SUBJECTS[0],
            requests: 0,
            counts: Calls::default(),
            lost_rows: 0,
        };
        assert_eq!(
            targets(&row).map(|target| target.met),
            [Some(false), Some(false)]
        );
    }
}
