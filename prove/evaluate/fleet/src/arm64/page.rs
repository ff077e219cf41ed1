//! The page of part `arm64`.

use luc_harness::cells;
use luc_harness::report::{Page, Table, Target, number};

use super::counted::{Counted, SEEDS, WORK_MS};
use super::inside::{ArmRun, Cuts};
use crate::counters::page::{covers, is_accurate, percent, quantile_of};
use crate::known::names::NameCounts;

/// Finding of `luc explain` on callers that wait for each other's commits.
const FINDING: &str = "synchronization_bound";

pub(super) fn page(runs: &[ArmRun]) -> Page {
    Page {
        title: "64-bit Arm".to_owned(),
        about: format!(
            "luc and its library are built for 64-bit Arm by `scripts/build-arm64.sh` and run in an emulated machine of two \
             processors (QEMU), on Debian's kernels for it. The emulation is slow, and its times say nothing of a real \
             machine. `prove/evaluate/fleet/subjects/known.c` and `crates/luc/tests/programs/talk.c` say themselves which \
             threads run what, who has which mutex, and how many bytes they send. 16 threads of `luc bench \
             metarates` on an emulated disk whose flush takes 30 ms are recorded and explained. Power cuts are \
             10 with the library and 10 with notifications. The emulated processor has six counters and one of cycles, which \
             the kernel's own driver programs and rotates. In virtual time, in which an instruction takes two cycles of 1 ns, \
             `prove/evaluate/fleet/subjects/phases.c` works for {} s in phases of 50 to 400 ms, {SEEDS} times with other \
             phases. It has four pinned counters of its own for the truth, so that `luc record --counters` has three for three \
             groups of two events.",
            WORK_MS / 1000
        ),
        tables: vec![
            ("What the traces know:".to_owned(), tabulate_names(runs)),
            ("Power cuts:".to_owned(), tabulate_cuts(runs)),
            ("Totals of counters that take turns:".to_owned(), tabulate_counters(runs)),
        ],
        targets: runs.iter().flat_map(targets).collect(),
    }
}

/// Returns the counts of each kind of knowledge.
fn kinds(run: &ArmRun) -> [(&'static str, &NameCounts); 3] {
    [
        ("functions of threads older than the trace", &run.known.old),
        ("functions of threads that begin in it", &run.known.new),
        ("holders of mutexes taken before the trace", &run.known.holders),
    ]
}

fn targets(run: &ArmRun) -> Vec<Target> {
    let kernel = &run.kernel;
    let mut targets: Vec<Target> = kinds(run)
        .into_iter()
        .map(|(what, counts)| {
            Target::new(
                format!("{kernel}: {what}: all are right"),
                counts.all > 0 && counts.right == counts.all,
                format!("{} of {}", counts.right, counts.all),
            )
        })
        .collect();
    let bytes: Vec<String> =
        run.wire.bytes.iter().map(|[found, all]| format!("{found} of {all}")).collect();
    targets.push(Target::new(
        format!("{kernel}: each byte of a connection, sent and received at both ends, and both ends put together"),
        run.wire.is_right(),
        bytes.join(", "),
    ));
    targets.push(Target::new(
        format!(
            "{kernel}: luc explain says first that callers wait for commits that do not serve them"
        ),
        run.finding == FINDING,
        run.finding.clone(),
    ));
    for (what, cuts) in ["library", "notifications"].into_iter().zip(&run.cuts) {
        let Cuts { acknowledged, lost, torn, .. } = cuts;
        targets.push(Target::new(
            format!("{kernel}: power cuts, {what}: nothing acknowledged is lost or torn"),
            *acknowledged > 0.0 && lost + torn == 0.0,
            format!("{lost} lost, {torn} torn of {acknowledged}"),
        ));
    }
    let name = format!("{kernel}: counters that take turns");
    let errors: Vec<f64> = run.counted.iter().map(Counted::error).collect();
    targets.push(is_accurate(&name, quantile_of(errors.iter(), 0.95)));
    let covered: Vec<bool> = run.counted.iter().filter_map(Counted::is_covered).collect();
    let right = covered.iter().filter(|is| **is).count();
    targets.push(covers(&name, right, covered.len()));
    targets.push(Target::new(
        format!("{kernel}: the kernel complains of nothing but the power cuts"),
        run.complaints.is_empty(),
        format!("{} complaints", run.complaints.len()),
    ));
    targets
}

fn tabulate_names(runs: &[ArmRun]) -> Table {
    let mut table = Table::new(&["kernel", "what", "all", "right", "wrong", "not known"]);
    for run in runs {
        for (what, counts) in kinds(run) {
            let NameCounts { all, right, wrong } = *counts;
            let figures = [all, right, wrong, all - right - wrong];
            let mut row = vec![run.kernel.clone(), what.to_owned()];
            row.extend(figures.map(|count| count.to_string()));
            table.row(row);
        }
    }
    table
}

fn tabulate_cuts(runs: &[ArmRun]) -> Table {
    let mut table = Table::new(&["kernel", "by", "cuts", "acknowledged", "lost", "torn"]);
    for run in runs {
        for (by, cuts) in ["library", "notifications"].iter().zip(&run.cuts) {
            let mut row = vec![run.kernel.clone(), (*by).to_owned()];
            row.extend([cuts.rounds, cuts.acknowledged, cuts.lost, cuts.torn].map(number));
            table.row(row);
        }
    }
    table
}

/// Makes the table by event, over all seeds.
fn tabulate_counters(runs: &[ArmRun]) -> Table {
    let mut table = Table::new(&[
        "kernel",
        "event",
        "counted for",
        "error p50",
        "p95",
        "half-width p50",
        "truth within the interval",
        "without an interval",
    ]);
    for run in runs {
        let mut events: Vec<&str> = run.counted.iter().map(|one| one.event.as_str()).collect();
        events.sort_unstable();
        events.dedup();
        for event in events {
            let own: Vec<&Counted> = run.counted.iter().filter(|one| one.event == event).collect();
            let of = |what: fn(&Counted) -> Option<f64>, share| {
                let figures: Vec<f64> = own.iter().filter_map(|one| what(one)).collect();
                percent(quantile_of(figures.iter(), share))
            };
            let covered: Vec<bool> = own.iter().filter_map(|one| one.is_covered()).collect();
            let right = covered.iter().filter(|is| **is).count();
            table.row(cells![
                run.kernel,
                event,
                of(|one| Some(one.running_share), 0.5),
                of(|one| Some(one.error()), 0.5),
                of(|one| Some(one.error()), 0.95),
                of(|one| Some(one.half_width? / one.truth), 0.5),
                format!("{right} of {}", covered.len()),
                own.len() - covered.len()
            ]);
        }
    }
    table
}
