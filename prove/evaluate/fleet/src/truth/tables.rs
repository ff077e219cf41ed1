//! Tables of the page.

use luc_harness::cells;
use luc_harness::report::Table;

use super::idle::Waits;
use super::plants::{PLANTS, options_of};
use super::view::{VIEWS, View};
use super::{Judged, TwinRun};
use crate::calls::{Calls, words};
use crate::cause::{self, Judgement};

/// Makes the table of the first finding on each trouble.
pub(super) fn of_causes(runs: &[TwinRun]) -> Table {
    let mut table = Table::of_words(&[
        "trouble",
        "options of the twin",
        "right, as one host",
        "its share",
        "right, as four hosts",
        "its share",
        "said by the last run, as four hosts",
    ]);
    for plant in PLANTS.iter().filter(|plant| plant.kind.is_some()) {
        let of_plant = || runs.iter().filter(|run| run.plant == plant.name);
        let Some(last) = of_plant().next_back() else {
            continue;
        };
        let mut row = vec![plant.name.to_owned(), format!("`{}`", options_of(plant.name))];
        for (_, view) in VIEWS {
            let causes = of_plant().filter_map(|run| view(run).cause.as_ref());
            let causes: Vec<&Judgement> = causes.collect();
            let right = causes.iter().filter(|cause| cause.is_right()).count();
            row.push(format!("{right} of {}", causes.len()));
            row.push(shares(&causes));
        }
        row.push(match (&last.unable, &last.hosts.cause) {
            (Some(why), _) => format!("not made: {why}"),
            (None, Some(cause)) if last.in_guest => format!("(in a guest) {}", cause.first),
            (None, Some(cause)) => cause.first.clone(),
            (None, None) => "-".to_owned(),
        });
        table.row(row);
    }
    table
}

/// Formats the minimum and the maximum share.
fn shares(causes: &[&Judgement]) -> String {
    let shares = causes.iter().map(|cause| cause.share);
    let (low, high) = shares
        .fold((f64::INFINITY, 0.0_f64), |(low, high), share| (low.min(share), high.max(share)));
    if causes.is_empty() {
        "-".to_owned()
    } else {
        format!("{:.0} to {:.0} %", low * 100.0, high * 100.0)
    }
}

/// Makes the table of messages and requests, by trouble.
pub(super) fn of_edges(done: &[&TwinRun], view: View) -> Table {
    let mut table = Table::new(&[
        "run",
        "messages",
        "found",
        "missing",
        "wrong",
        "front end's requests",
        "right, by evidence",
        "wrong, by evidence",
        "not known",
        "no such request",
        "rows lost",
    ]);
    for plant in &PLANTS {
        let runs = done.iter().filter(|run| run.plant == plant.name);
        let runs: Vec<&TwinRun> = runs.copied().collect();
        if runs.is_empty() {
            continue;
        }
        let judged: Vec<&Judged> = runs.iter().map(|run| view(run)).collect();
        let sum = |of: &dyn Fn(&Judged) -> u64| {
            let all: u64 = judged.iter().map(|one| of(one)).sum();
            all.to_string()
        };
        let mut requests = Calls::default();
        for one in &judged {
            requests.add(&one.requests);
        }
        let lost: u64 = runs.iter().map(|run| run.lost_rows).sum();
        table.row(cells![
            plant.name,
            sum(&|one| one.edges.planted),
            sum(&|one| one.edges.found),
            sum(&|one| one.edges.missing),
            sum(&|one| one.edges.wrong),
            requests.calls,
            words(&requests.right),
            words(&requests.wrong),
            requests.unknown,
            requests.missing,
            lost
        ]);
    }
    table
}

/// Makes the table of waits for input, locks or other threads, by trouble.
pub(super) fn of_waits(done: &[&TwinRun]) -> Table {
    let mut table = Table::new(&[
        "run",
        "waits, as one host",
        "told right",
        "for work, it is said",
        "for an answer, it is said",
        "not known",
        "ticking threads named",
        "waits, as four hosts",
        "told right",
        "for work, it is said",
        "for an answer, it is said",
        "not known",
        "ticking threads named",
    ]);
    for plant in &PLANTS {
        let runs = || done.iter().filter(|run| run.plant == plant.name);
        if runs().next().is_none() {
            continue;
        }
        let mut row = vec![plant.name.to_owned()];
        for (_, view) in VIEWS {
            let mut waits = Waits::default();
            runs().for_each(|run| waits.add(&view(run).waits));
            row.push(waits.all().to_string());
            row.push(waits.right.to_string());
            row.push(waits.had_work.to_string());
            row.push(waits.had_none.to_string());
            row.push(waits.unknown.to_string());
            row.push(match waits.tickers {
                0 => "-".to_owned(),
                tickers => format!("{} of {tickers}", waits.tickers_named),
            });
        }
        table.row(row);
    }
    table
}

/// Makes the table of runs whose first cause is wrong.
pub(super) fn of_wrong(done: &[&TwinRun]) -> Table {
    let views = done.iter().flat_map(|run| {
        VIEWS.iter().filter_map(|&(view, judged)| {
            Some(cause::Viewed {
                trouble: run.plant,
                seed: run.seed,
                view,
                judgement: judged(run).cause.as_ref()?,
            })
        })
    });
    cause::of_wrong(views)
}
