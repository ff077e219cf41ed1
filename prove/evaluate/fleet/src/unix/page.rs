//! The page: judgement of requests over unix sockets and of their calls.

use luc_harness::report::{Page, Target};

use super::{CLIENTS, REQUESTS, SETTINGS, SocketSetting, UnixRun};
use crate::calls::tables::{Owed, Row, of_evidence, of_shares};

/// Targets where a thread makes the calls of what it has read.
const THREADS_OWED: Owed = Owed { right: 99.0, wrong: 0.5 };
/// Maximum share of calls that are assigned to a wrong request, %.
const MAX_WRONG_PERCENT: f64 = 0.5;
/// Maximum loss of right calls relative to TCP, in % of all.
const MAX_LOSS_PERCENT: f64 = 2.0;

pub(super) fn page(runs: &[UnixRun], seeds: u64) -> Page {
    let settings = SETTINGS.iter().filter_map(|setting| Some((setting, row(setting, runs)?)));
    let (settings, rows): (Vec<&SocketSetting>, Vec<Row>) = settings.unzip();
    let of: Vec<(&SocketSetting, &Row)> = settings.into_iter().zip(&rows).collect();
    let targets = of.iter().filter(|(setting, _)| !setting.is_tcp);
    let targets = targets.flat_map(|(setting, row)| {
        if setting.workers == 0 {
            return THREADS_OWED.targets(setting.name, &row.counts).to_vec();
        }
        let over_tcp =
            of.iter().find(|(other, _)| other.is_tcp && other.workers == setting.workers);
        as_over_tcp(setting, row, over_tcp.map(|(_, row)| *row))
    });
    let targets: Vec<Target> = [all_found(runs)].into_iter().chain(targets).collect();
    Page {
        title: "Requests over unix sockets, told from their messages and waits".to_owned(),
        about: format!(
            "A front end and a back end (`prove/evaluate/fleet/subjects/unix.c`) listen at paths, or, to compare \
             with, at ports of TCP. {CLIENTS} connections send {REQUESTS} requests each, one after the other, and \
             for each the front end calls the back end three times: one after the other by the thread that \
             has read the request, or at once by a pool; a call takes up to 0.5 ms. `luc record --fleet` records \
             the machine, and `luc fleet explain --json --rows` says which requests there were, and for which one \
             each call was made. The front end writes down by which thread and between which times it read each \
             request and sent each call, and for which request. A call is *right* if it is put to that request, \
             *wrong* if to another one, *unknown* if to none, and *missing* if there is no such call in the \
             answer. \
             {seeds} seeds of each setting."
        ),
        tables: vec![
            (
                "What is said of the front end's calls; in parentheses the 95 % score interval over all of them:"
                    .to_owned(),
                of_shares(&["front end", "requests", "found", "other requests"], &rows),
            ),
            (
                "The same calls by the evidence that is given:".to_owned(),
                of_evidence("front end", &rows),
            ),
        ],
        targets,
    }
}

/// Makes the targets of a pool, which must be nearly as good as over TCP.
fn as_over_tcp(setting: &SocketSetting, row: &Row, over_tcp: Option<&Row>) -> Vec<Target> {
    let percent = |part: u64, row: &Row| part as f64 * 100.0 / row.counts.calls.max(1) as f64;
    let right = |row: &Row| percent(row.counts.all_right(), row);
    let wrong = percent(row.counts.all_wrong(), row);
    let mut targets = vec![Target::new(
        format!("{}: at most {MAX_WRONG_PERCENT} % of the calls are wrong", setting.name),
        row.counts.calls > 0 && wrong <= MAX_WRONG_PERCENT,
        format!("{} of {}", row.counts.all_wrong(), row.counts.calls),
    )];
    if let Some(over_tcp) = over_tcp {
        targets.push(Target::new(
            format!(
                "{}: at most {MAX_LOSS_PERCENT} % fewer calls are right than over TCP",
                setting.name
            ),
            right(row) >= right(over_tcp) - MAX_LOSS_PERCENT,
            format!("{:.2} % and {:.2} %", right(row), right(over_tcp)),
        ));
    }
    targets
}

/// Makes the target that each request is one in the answer, and nothing else is.
fn all_found(runs: &[UnixRun]) -> Target {
    let sum = |of: fn(&UnixRun) -> u64| runs.iter().map(of).sum::<u64>();
    let [requests, found, others] =
        [sum(|run| run.requests), sum(|run| run.found), sum(|run| run.others)];
    Target::new(
        "each request is found, and nothing else is a request".to_owned(),
        requests > 0 && found == requests && others == 0,
        format!("{found} of {requests}, and {others} others"),
    )
}

fn row(setting: &SocketSetting, runs: &[UnixRun]) -> Option<Row> {
    let of_setting = runs.iter().filter(|run| run.setting == setting.name);
    let of_setting: Vec<&UnixRun> = of_setting.collect();
    let sum =
        |of: fn(&UnixRun) -> u64| of_setting.iter().map(|run| of(run)).sum::<u64>().to_string();
    let cells = [
        setting.name.to_owned(),
        sum(|run| run.requests),
        sum(|run| run.found),
        sum(|run| run.others),
    ];
    let counts = of_setting.iter().map(|run| (&run.calls, run.lost_rows));
    (!of_setting.is_empty()).then(|| Row::sum(cells, counts))
}
