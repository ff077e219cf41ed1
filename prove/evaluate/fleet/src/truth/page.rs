//! The page: judgement of the planted troubles.

use luc_harness::report::{Page, Target};

use super::guest::KERNEL;
use super::tables;
use super::view::VIEWS;
use super::{Judged, TwinRun};

/// Describes a run in a few words.
pub(super) fn brief(run: &TwinRun) -> String {
    if let Some(why) = &run.unable {
        return format!("not made: {why}");
    }
    let views = VIEWS.map(|(name, view)| {
        let judged = view(run);
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

pub(super) fn page(runs: &[TwinRun], seeds: u64) -> Page {
    let done: Vec<&TwinRun> = runs.iter().filter(|run| run.unable.is_none()).collect();
    let mut tables = vec![("What is said first, by trouble:".to_owned(), tables::of_causes(runs))];
    for (name, view) in VIEWS {
        tables.push((
            format!("Messages and requests {name}, all seeds together:"),
            tables::of_edges(&done, view),
        ));
    }
    tables.push((
        "Did threads that waited for input, a lock or another thread have something to do? Wrong ones by what is said:".to_owned(),
        tables::of_waits(&done),
    ));
    let wrong = tables::of_wrong(&done);
    if !wrong.is_empty() {
        tables.push(("Every run whose first cause is wrong:".to_owned(), wrong));
    }
    Page {
        title: "A search service with planted troubles, explained across its hosts".to_owned(),
        about: about(seeds),
        tables,
        targets: targets(runs, &done),
    }
}

fn about(seeds: u64) -> String {
    format!(
        "The search twin (`prove/twin`), a front end and two back ends that each have a network namespace, is asked by 4 \
         clients with 100 queries each while `luc record --fleet --all` records the machine. One trouble is planted at a \
         back end that is drawn, or between two clients; it is there for a part of the run in the middle. Then \
         `luc fleet explain --json --rows` is compared with what the twin wrote down about itself. All namespaces are of \
         one kernel and in one trace. It is explained twice: as it is, and as the traces of four hosts, each with the \
         messages of its namespace, the threads of its process and the kernel's, and a clock that is off by up to a day \
         and drifts by up to 40 µs/s. Files are \
         read and written on an emulated disk like a volume of a cloud. What the kernel here cannot plant is planted in an emulated guest with Debian's kernel {KERNEL}. A message is *found* if each of its \
         bytes is on an edge from the thread that sent it to the one that received it, at times between those that the \
         twin saw; *wrong* if a byte is on another edge. A request of the front end is *right* if it is put to the query \
         that it was made for. The first cause is right if the first finding on the front end's requests has the right \
         kind, process and thread: computing or reads of the thread that the trouble is in, the fsync of the indexer, \
         the sleep of the lock's holder for which others wait by a futex, the worker or connection that works for other \
         requests first, messages to the back end on connections that sent segments again, messages late from the back \
         end, a stop by the process that made it, reads while the disk worked for the writer, a quota of processor \
         time that is used up. A thread that only ticks must be in no finding of 2 % or more. A wait of a thread that sends or receives is \
         *for an answer* if the thread has a question to answer, or one that it has asked; else it is *for work*. Workers \
         whose answers another thread sends are left out, as the truth does not have when they have given a result away. Each trouble with {seeds} seeds, \
         by which its place and strength are drawn."
    )
}

fn targets(runs: &[TwinRun], done: &[&TwinRun]) -> Vec<Target> {
    let mut targets: Vec<Target> = VIEWS
        .into_iter()
        .flat_map(|(name, view)| {
            let judged: Vec<&Judged> = done.iter().map(|run| view(run)).collect();
            judge_view(name, &judged, runs.len() - done.len())
        })
        .collect();
    let sums = |run: &&&TwinRun| VIEWS.iter().all(|(_, view)| view(run).sums);
    let sums = done.iter().filter(sums).count();
    targets.push(Target::new(
        "the parts of all paths sum to the requests' time exactly, in each run",
        sums == done.len() && sums > 0,
        format!("{sums} of {}", done.len()),
    ));
    targets
}

fn judge_view(name: &str, judged: &[&Judged], not_made: usize) -> [Target; 5] {
    let sum = |of: &dyn Fn(&Judged) -> u64| judged.iter().map(|one| of(one)).sum::<u64>();
    let share = |part: u64, all: u64| part as f64 / all.max(1) as f64;
    let planted = sum(&|one| one.edges.planted);
    let found = sum(&|one| one.edges.found);
    let wrong = sum(&|one| one.edges.wrong);
    let causes: Vec<_> = judged.iter().filter_map(|one| one.cause.as_ref()).collect();
    let right = causes.iter().filter(|cause| cause.is_right()).count();
    let requests = sum(&|one| one.requests.calls);
    let requests_wrong = sum(&|one| one.requests.all_wrong());
    let of_troubles = |of: &dyn Fn(&Judged) -> u64| {
        let troubles = judged.iter().filter(|one| one.cause.is_some());
        troubles.map(|one| of(one)).sum::<u64>()
    };
    let waits = of_troubles(&|one| one.waits.all());
    let waits_right = of_troubles(&|one| one.waits.right);
    let tickers = [sum(&|one| one.waits.tickers), sum(&|one| one.waits.tickers_named)];
    [
        Target::new(
            format!("{name}: at least 99.9 % of the messages are on edges, none on a wrong one"),
            share(found, planted) >= 0.999 && wrong == 0 && planted > 0,
            format!("{found} of {planted}, {wrong} wrong"),
        ),
        Target::new(
            format!("{name}: at most 0.5 % of the front end's requests are put to a wrong query"),
            share(requests_wrong, requests) <= 0.005 && requests > 0,
            format!("{requests_wrong} of {requests}"),
        ),
        Target::new(
            format!("{name}: the first cause is right in at least 95 % of the runs with a trouble"),
            share(right as u64, causes.len() as u64) >= 0.95 && !causes.is_empty(),
            format!("{right} of {}; {not_made} runs could not be made", causes.len()),
        ),
        Target::new(
            format!(
                "{name}: of at least 98 % of the waits in runs with a trouble it is told right whether the thread had nothing to do"
            ),
            share(waits_right, waits) >= 0.98 && waits > 0,
            format!("{waits_right} of {waits}"),
        ),
        Target::new(
            format!("{name}: at least 98 % of the threads that only tick are named"),
            share(tickers[1], tickers[0]) >= 0.98 && tickers[0] > 0,
            format!("{} of {}", tickers[1], tickers[0]),
        ),
    ]
}
