//! The page: what was found of what Solr handed over.

use luc_claims::report::{Page, Table, Target};

use super::cause::Judgement;
use super::plants::{self, ASKED, QUERIES_BEFORE};
use super::settings::WARMUP;
use super::trouble::Trouble;
use super::{CLIENTS, QUERIES, Run};
use crate::calls::{Calls, share_of, words};

/// The least share of right calls, and the greatest of wrong ones.
const RIGHT: f64 = 0.997;
const WRONG: f64 = 0.002;
/// The least share of first causes that are right.
const CAUSES: f64 = 0.95;

/// How the runs of so many clients are named.
pub(super) fn name(clients: u64) -> String {
    format!("{clients} clients")
}

/// A run in a few words.
pub(super) fn brief(run: &Run) -> String {
    let counts = &run.counts;
    format!(
        "{}: of {} calls {} right ({}), {} wrong ({}), {} unknown, {} missing",
        name(run.clients),
        counts.calls,
        counts.all_right(),
        words(&counts.right),
        counts.all_wrong(),
        words(&counts.wrong),
        counts.unknown,
        counts.missing
    )
}

/// A run with a trouble in a few words.
pub(super) fn brief_of_plant(run: &plants::Run) -> String {
    let views = VIEWS.map(|(name, view)| {
        let judged = view(run);
        if judged.wrong.is_empty() {
            format!("{name} right")
        } else {
            format!(
                "{name} wrong ({}): {}",
                judged.wrong.join(", "),
                judged.first
            )
        }
    });
    format!("{} {}: {}", run.trouble, run.seed, views.join("; "))
}

/// How a run with a trouble is looked at.
type View = fn(&plants::Run) -> &Judgement;

const VIEWS: [(&str, View); 2] = [
    ("as one host", |run| &run.one_host),
    ("as four hosts", |run| &run.hosts),
];

/// The runs of so many clients.
struct Row {
    clients: u64,
    queries: u64,
    counts: Calls,
    lost_rows: u64,
}

pub(super) fn page(runs: &[Run], planted: &[plants::Run], version: &str) -> Page {
    let rows: Vec<Row> = CLIENTS
        .into_iter()
        .filter_map(|one| row(one, runs))
        .collect();
    Page {
        title: "A search service of Solr, told from its messages and waits".to_owned(),
        about: about(version, !planted.is_empty()),
        tables: vec![
            (
                "What is said first of a trouble:".to_owned(),
                of_causes(planted),
            ),
            (
                "Every run whose first cause is wrong:".to_owned(),
                of_wrong(planted),
            ),
            (
                "What is said of the front end's calls; in parentheses the 95 % score interval over all of them:"
                    .to_owned(),
                of_shares(&rows),
            ),
            (
                "The same calls by the evidence that is given:".to_owned(),
                of_evidence(&rows),
            ),
        ]
        .into_iter()
        .filter(|(_, table): &(String, Table)| !table.is_empty())
        .collect(),
        targets: rows
            .iter()
            .flat_map(targets)
            .chain(targets_of_plants(planted))
            .collect(),
    }
}

fn row(clients: u64, runs: &[Run]) -> Option<Row> {
    let of_clients: Vec<&Run> = runs.iter().filter(|run| run.clients == clients).collect();
    if of_clients.is_empty() {
        return None;
    }
    let mut counts = Calls::default();
    for run in &of_clients {
        counts.add(&run.counts);
    }
    Some(Row {
        clients,
        counts,
        queries: of_clients.iter().map(|run| run.queries).sum(),
        lost_rows: of_clients.iter().map(|run| run.lost_rows).sum(),
    })
}

fn about(version: &str, has_troubles: bool) -> String {
    format!(
        "{version}, as it is delivered (`prove/evaluate/fleet/subjects/solr`): a front end and two shards, each in a \
         network namespace of its own on a bridge, where the clients are. A client has a connection and sends one query \
         after the other, {QUERIES} in a run of all clients together. The front end asks both shards for what they find, \
         then those that have the best for highlighted snippets: three or four calls for each query. Between \
         nodes HTTP/1.1 is spoken (`solr.http1`), not Solr's default HTTP/2, of which requests on one connection at once \
         are seen as one. `luc record --fleet` records the machine, from {} s before the first query; Solr has been \
         asked nothing before. `luc fleet explain --json --rows` says which query each call was made for. A query \
         carries a number as a parameter of its own, which Solr passes on to the shards. A packet socket on the bridge \
         says which byte of which connection has which number; the recorder does not look at bytes. A call is *right* if \
         it is put to the query of its number, *wrong* if to another one, *unknown* if to none, and *missing* if there is \
         no such call in the answer. Each round has other documents and queries. Shares are no \
         times: other programs may have run beside.{}",
        WARMUP.as_secs(),
        if has_troubles {
            about_troubles()
        } else {
            String::new()
        }
    )
}

fn about_troubles() -> String {
    format!(
        " A trouble is planted at a shard that the seed draws, for 1.5 to 2.5 s of {} s in which {} clients ask, after \
         {QUERIES_BEFORE} queries of each that are not recorded. The trace is explained twice: as it is, and as the \
         traces of four hosts, each with the messages of its namespace, the threads of its processes and the kernel's, \
         and a clock that is off by up to a day and drifts by up to 40 µs/s. The first cause is right if the first \
         finding on the front end's requests has the kind, the process, its host and one of the threads that the \
         trouble is in: threads of the program that computes, else threads of the shard that have requests (`qtp`). \
         What other programs do with the processors is a cause, too: measure troubles where nothing else runs.",
        ASKED.as_secs(),
        plants::CLIENTS
    )
}

fn of_shares(rows: &[Row]) -> Table {
    let mut table = Table::new(&[
        "clients",
        "queries",
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
            row.clients.to_string(),
            row.queries.to_string(),
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
    let mut table = Table::of_words(&["clients", "right", "wrong"]);
    for row in rows {
        table.row(vec![
            row.clients.to_string(),
            words(&row.counts.right),
            words(&row.counts.wrong),
        ]);
    }
    table
}

fn of_causes(planted: &[plants::Run]) -> Table {
    let mut table = Table::of_words(&[
        "trouble",
        "what it is",
        "right, as one host",
        "its share",
        "right, as four hosts",
        "its share",
        "said by the last run, as four hosts",
    ]);
    for trouble in Trouble::ALL {
        let runs = planted.iter().filter(|run| run.trouble == trouble.name());
        let runs: Vec<&plants::Run> = runs.collect();
        let Some(last) = runs.last() else { continue };
        let mut row = vec![trouble.name().to_owned(), trouble.about().to_owned()];
        for (_, view) in VIEWS {
            let right = runs.iter().filter(|run| view(run).wrong.is_empty()).count();
            let shares = runs.iter().map(|run| view(run).share);
            let (low, high) = shares.fold((f64::INFINITY, 0.0_f64), |(low, high), share| {
                (low.min(share), high.max(share))
            });
            row.push(format!("{right} of {}", runs.len()));
            row.push(format!("{:.0} to {:.0} %", low * 100.0, high * 100.0));
        }
        row.push(last.hosts.first.clone());
        table.row(row);
    }
    table
}

fn of_wrong(planted: &[plants::Run]) -> Table {
    let mut table = Table::of_words(&["trouble", "seed", "", "wrong", "what was said", "share"]);
    for run in planted {
        for (name, view) in VIEWS {
            let judged = view(run);
            if !judged.wrong.is_empty() {
                table.row(vec![
                    run.trouble.to_owned(),
                    run.seed.to_string(),
                    name.to_owned(),
                    judged.wrong.join(", "),
                    judged.first.clone(),
                    format!("{:.0} %", judged.share * 100.0),
                ]);
            }
        }
    }
    table
}

fn targets_of_plants(planted: &[plants::Run]) -> Vec<Target> {
    if planted.is_empty() {
        return Vec::new();
    }
    let all = planted.len();
    let mut targets = Vec::new();
    for (name, view) in VIEWS {
        let right = planted.iter().filter(|run| view(run).wrong.is_empty());
        let right = right.count();
        targets.push(Target::new(
            format!("{name}: the first cause is right in at least 95 % of the runs with a trouble"),
            right as f64 >= CAUSES * all as f64,
            format!("{right} of {all}"),
        ));
    }
    let sums = planted.iter().filter(|run| run.sums).count();
    targets.push(Target::new(
        "the parts of all paths sum to the requests' time exactly, in each run with a trouble",
        sums == all,
        format!("{sums} of {all}"),
    ));
    targets
}

fn targets(row: &Row) -> [Target; 2] {
    let counts = &row.counts;
    let share = |part: u64| part as f64 / counts.calls.max(1) as f64;
    let (right, wrong) = (counts.all_right(), counts.all_wrong());
    let has_calls = counts.calls > 0;
    [
        Target::new(
            format!(
                "{}: at least {:.1} % of the calls are right",
                name(row.clients),
                RIGHT * 100.0
            ),
            has_calls && share(right) >= RIGHT,
            format!("{right} of {}", counts.calls),
        ),
        Target::new(
            format!(
                "{}: at most {:.1} % of the calls are wrong",
                name(row.clients),
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
    fn nearly_all_calls_must_be_right_and_hardly_any_wrong() {
        let met = |right, wrong, calls| {
            let of = |count| BTreeMap::from([("same thread".to_owned(), count)]);
            let counts = Calls {
                calls,
                right: of(right),
                wrong: of(wrong),
                ..Calls::default()
            };
            let row = Row {
                clients: 4,
                queries: 0,
                counts,
                lost_rows: 0,
            };
            targets(&row).map(|target| target.met)
        };
        assert_eq!(met(997, 2, 1000), [Some(true), Some(true)]);
        assert_eq!(met(996, 3, 1000), [Some(false), Some(false)]);
        assert_eq!(met(0, 0, 0), [Some(false), Some(false)]);
    }
}
