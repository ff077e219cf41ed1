//! The page: seconds and memory.

use luc_harness::cells;
use luc_harness::report::{Page, Table, Target, or_dash};
use luc_stats::median;

use super::trees::{Shape, Timed};
use super::{Explained, HOSTS, MEMORY_GIB, NODES, ROWS_PER_REQUEST};
use crate::asked::Asked;

/// Number of processors that the time was meant for.
const PROCESSORS: u64 = 8;
/// Maximum time for the largest traces, seconds.
const MAX_EXPLAIN_S: f64 = 300.0;
/// Maximum time for a tree, and for one sum over a subtree, seconds.
const MAX_TREE_S: f64 = 0.2;
const MAX_SUBTREE_S: f64 = 0.05;

pub(super) fn page(explained: &[Explained], trees: &[(Shape, Vec<Timed>)], repeats: usize) -> Page {
    let tables = [
        (
            "`luc fleet explain --json`, from its start to its end; medians, the greatest memory:"
                .to_owned(),
            tabulate_explained(explained),
        ),
        (format!("Trees of {NODES} nodes in all, medians:"), tabulate_trees(trees)),
    ];
    let targets = explained.last().map(target).into_iter();
    Page {
        title: "How long many hosts take to be explained".to_owned(),
        about: about(repeats),
        tables: tables.into_iter().filter(|(_, table)| !table.is_empty()).collect(),
        targets: targets
            .chain(trees.iter().flat_map(|(shape, runs)| make_targets(*shape, runs)))
            .collect(),
    }
}

fn about(repeats: usize) -> String {
    format!(
        "Everything here is synthetic: the traces are made by a program (`prove/testkit/src/fleet.rs`), for {HOSTS} \
         hosts whose clocks differ, with a request of a client through a front end to two back ends for each \
         {ROWS_PER_REQUEST} rows, and waits that belong to no request. Clocks are related, messages joined, requests \
         put together and the slowest explained, all anew in each run, by one process of one thread that may have \
         {MEMORY_GIB} GiB. The target is meant for {PROCESSORS} processors; a machine that has fewer has to meet it, too. \
         Memory is VmHWM, the peak. Trees are numbered in pre-order and post-order, and summed, as requests' trees are \
         (`crates/fleet/requests/src/tree.rs`). {repeats} runs of each."
    )
}

fn seconds(runs: &[Option<Asked>]) -> Option<f64> {
    let seconds: Option<Vec<f64>> =
        runs.iter().map(|run| run.as_ref().map(|run| run.seconds)).collect();
    median(&seconds?)
}

fn tabulate_explained(explained: &[Explained]) -> Table {
    let heads = ["rows", "requests", "bytes of files", "seconds", "memory", "of it a row"];
    let mut table = Table::new(&heads);
    for one in explained {
        let peak = one.runs.iter().flatten().map(|run| run.peak_bytes).max();
        let failed = || one.failed.clone().unwrap_or_else(|| "-".to_owned());
        let of_row = peak.map(|peak| format!("{:.0} bytes", peak as f64 / one.rows as f64));
        let peak = peak.map(|peak| format!("{:.0} MiB", peak as f64 / f64::from(1 << 20)));
        table.row(cells![
            one.rows,
            one.requests,
            one.bytes,
            seconds(&one.runs).map_or_else(failed, |seconds| format!("{seconds:.1}")),
            or_dash(peak),
            or_dash(of_row)
        ]);
    }
    table
}

fn target(largest: &Explained) -> Target {
    let seconds = seconds(&largest.runs);
    Target::new(
        format!(
            "{HOSTS} hosts with {:.0e} rows are explained in {MAX_EXPLAIN_S:.0} s at most",
            largest.rows as f64
        ),
        seconds.is_some_and(|seconds| seconds <= MAX_EXPLAIN_S),
        seconds.map_or_else(
            || "not within the memory".to_owned(),
            |seconds| format!("{seconds:.1} s"),
        ),
    )
}

fn medians(runs: &[Timed], of: fn(&Timed) -> f64) -> f64 {
    let all: Vec<f64> = runs.iter().map(of).collect();
    median(&all).unwrap_or(f64::NAN)
}

fn tabulate_trees(trees: &[(Shape, Vec<Timed>)]) -> Table {
    let mut table = Table::new(&["shape", "numbered", "sums made", "a subtree's sum"]);
    for (shape, runs) in trees {
        table.row(cells![
            shape.name(),
            format!("{:.0} ms", medians(runs, |run| run.numbered_s) * 1e3),
            format!("{:.0} ms", medians(runs, |run| run.summed_s) * 1e3),
            format!("{:.0} ns", medians(runs, |run| run.subtree_s) * 1e9)
        ]);
    }
    table
}

fn make_targets(shape: Shape, runs: &[Timed]) -> [Target; 2] {
    let numbered_s = medians(runs, |run| run.numbered_s);
    let subtree_s = medians(runs, |run| run.subtree_s);
    [
        Target::new(
            format!("{}: {NODES} nodes are numbered in {MAX_TREE_S} s at most", shape.name()),
            numbered_s <= MAX_TREE_S,
            format!("{numbered_s:.3} s"),
        ),
        Target::new(
            format!("{}: any subtree's sum takes {MAX_SUBTREE_S} s at most", shape.name()),
            subtree_s <= MAX_SUBTREE_S,
            format!("{:.0} ns", subtree_s * 1e9),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_for_want_of_memory_meets_no_target() {
        let run = |seconds| {
            Some(Asked { command: String::new(), seconds, peak_bytes: 1 << 20, answer_bytes: 1 })
        };
        let with = |runs: Vec<Option<Asked>>| Explained {
            size: "x",
            rows: 100_000_000,
            requests: 1,
            bytes: 1,
            runs,
            failed: Some("signal: 6".to_owned()),
        };
        assert_eq!(target(&with(vec![run(299.0), run(1.0), run(300.0)])).met, Some(true));
        assert_eq!(target(&with(vec![run(301.0)])).met, Some(false));
        assert_eq!(target(&with(vec![run(1.0), None])).met, Some(false));
        let page = page(&[with(vec![None])], &[], 1);
        assert!(page.tables[0].1.to_string().contains("signal: 6"));
    }
}
