//! The page: judgement of the calls that Solr handed over.

use luc_harness::report::{Page, Table, Target};

use super::plants::{self, ASKED_TIME, QUERIES_BEFORE};
use super::trouble::Trouble;
use super::{CLIENTS, QUERIES, QueryRun};
use crate::calls::tables::{Owed, Row, of_evidence, of_shares};
use crate::cause::{self, Judgement};
use crate::recorder::WARMUP;

/// Targets of the front end's calls.
const OWED: Owed = Owed { right: 99.7, wrong: 0.2 };
/// Minimum share of first causes that are right.
const MIN_RIGHT_CAUSES: f64 = 0.95;

/// Returns the name of the runs of `clients` clients.
pub(super) fn name(clients: u64) -> String {
    format!("{clients} clients")
}

/// Describes a run in a few words.
pub(super) fn brief(run: &QueryRun) -> String {
    format!("{}: {}", name(run.clients), run.counts.brief())
}

/// Describes a run with a trouble in a few words.
pub(super) fn brief_of_plant(run: &plants::PlantRun) -> String {
    let views = VIEWS.map(|(name, view)| {
        let judged = view(run);
        if judged.is_right() {
            format!("{name} right")
        } else {
            format!("{name} wrong ({}): {}", judged.wrong.join(", "), judged.first)
        }
    });
    format!("{} {}: {}", run.trouble, run.seed, views.join("; "))
}

/// A view of a run with a trouble.
type View = fn(&plants::PlantRun) -> &Judgement;

const VIEWS: [(&str, View); 2] =
    [("as one host", |run| &run.one_host), ("as four hosts", |run| &run.hosts)];

pub(super) fn page(runs: &[QueryRun], planted: &[plants::PlantRun], version: &str) -> Page {
    let of_clients =
        CLIENTS.into_iter().filter_map(|clients| Some((name(clients), row(clients, runs)?)));
    let (names, rows): (Vec<String>, Vec<Row>) = of_clients.unzip();
    let owed = names.iter().zip(&rows);
    Page {
        title: "A search service of Solr, told from its messages and waits".to_owned(),
        about: about(version, !planted.is_empty()),
        tables: vec![
            (
                "What is said first of a trouble:".to_owned(),
                tabulate_causes(planted),
            ),
            (
                "Every run whose first cause is wrong:".to_owned(),
                tabulate_wrong(planted),
            ),
            (
                "What is said of the front end's calls; in parentheses the 95 % score interval over all of them:"
                    .to_owned(),
                of_shares(&["clients", "queries"], &rows),
            ),
            (
                "The same calls by the evidence that is given:".to_owned(),
                of_evidence("clients", &rows),
            ),
        ]
        .into_iter()
        .filter(|(_, table): &(String, Table)| !table.is_empty())
        .collect(),
        targets: owed
            .flat_map(|(name, row)| OWED.targets(name, &row.counts))
            .chain(targets_of_plants(planted))
            .collect(),
    }
}

/// Sums the runs of `clients` clients.
fn row(clients: u64, runs: &[QueryRun]) -> Option<Row> {
    let of_clients = runs.iter().filter(|run| run.clients == clients);
    let of_clients: Vec<&QueryRun> = of_clients.collect();
    let queries: u64 = of_clients.iter().map(|run| run.queries).sum();
    let cells = [clients.to_string(), queries.to_string()];
    let counts = of_clients.iter().map(|run| (&run.counts, run.lost_rows));
    (!of_clients.is_empty()).then(|| Row::sum(cells, counts))
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
        if has_troubles { about_troubles() } else { String::new() }
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
        ASKED_TIME.as_secs(),
        plants::CLIENTS
    )
}

fn tabulate_causes(planted: &[plants::PlantRun]) -> Table {
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
        let runs: Vec<&plants::PlantRun> = runs.collect();
        let Some(last) = runs.last() else { continue };
        let mut row = vec![trouble.name().to_owned(), trouble.about().to_owned()];
        for (_, view) in VIEWS {
            let right = runs.iter().filter(|run| view(run).is_right()).count();
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

fn tabulate_wrong(planted: &[plants::PlantRun]) -> Table {
    let views = planted.iter().flat_map(|run| {
        VIEWS.map(|(name, view)| cause::Viewed {
            trouble: run.trouble,
            seed: run.seed,
            view: name,
            judgement: view(run),
        })
    });
    cause::of_wrong(views)
}

fn targets_of_plants(planted: &[plants::PlantRun]) -> Vec<Target> {
    if planted.is_empty() {
        return Vec::new();
    }
    let all = planted.len();
    let mut targets = Vec::new();
    for (name, view) in VIEWS {
        let right = planted.iter().filter(|run| view(run).is_right());
        let right = right.count();
        targets.push(Target::new(
            format!("{name}: the first cause is right in at least 95 % of the runs with a trouble"),
            right as f64 >= MIN_RIGHT_CAUSES * all as f64,
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
