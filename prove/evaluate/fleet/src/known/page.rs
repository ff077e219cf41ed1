//! The page of part `fleet-known`.

use luc_harness::cells;
use luc_harness::report::{Page, Table, Target};

use super::accounts::{CLIENTS, COMPARED_TIME, Closed, Difference};
use super::names::{Known, LOCKS, NameCounts, THREADS};

/// Maximum difference of a thread's times, and of the machine's.
const MAX_DIFFERENCE: f64 = 0.01;

pub(super) fn page(known: &[Known], closed: &[Closed], repeats: usize) -> Page {
    let tables = [
        ("What the trace knows:".to_owned(), tabulate_names(known)),
        (
            "Threads by the trace less by the scheduler, in % of the time compared; the threads that are furthest off in \
             all runs:"
                .to_owned(),
            tabulate_accounts(closed),
        ),
        (
            "All threads of programs together, in % of the processors' time; where rows were lost, times cannot close:"
                .to_owned(),
            tabulate_runs(closed),
        ),
    ];
    Page {
        title: "Functions of threads, holders of locks, and times that close".to_owned(),
        about: about(repeats),
        tables: tables.into_iter().filter(|(_, table)| !table.is_empty()).collect(),
        targets: targets(known, closed),
    }
}

fn about(repeats: usize) -> String {
    format!(
        "A program with glibc (`prove/evaluate/fleet/subjects/known.c`) has {LOCKS} mutexes, each with a holder and a \
         waiter, and {THREADS} threads of five functions when `luc record --fleet` begins, and makes {THREADS} more \
         while it records. The program says itself which thread runs what and who has which mutex. A function is right \
         if the table `thread_start` names it, a holder if the waiter's row of `asleep` at the trace's begin does. Redis \
         and PostgreSQL are recorded under load (`redis-benchmark` and `pgbench -S`, {CLIENTS} clients each). Of all \
         their threads that ran or waited for a processor for at least 0.1 % of {} s, the time that they ran and the \
         time that they were runnable, by rows of `wait`, `brief_wait` and `asleep`, are compared with the scheduler's \
         own counts (`/proc/PID/task/TID/schedstat`). The trace has a thread runnable from when somebody begins to wake \
         it, the scheduler from when it is queued, a little later: there is no target for that. What all \
         threads of programs on the machine ran is compared in the same way, but for the recorder's, which it leaves \
         out as it does the kernel's. {repeats} runs of each.",
        COMPARED_TIME.as_secs()
    )
}

/// Returns the counts of each kind, in all runs.
fn kinds(known: &[Known]) -> [(&'static str, NameCounts); 3] {
    let sum = |of: fn(&Known) -> &NameCounts| {
        let mut counts = NameCounts::default();
        known.iter().for_each(|run| counts.add(of(run)));
        counts
    };
    [
        ("functions of threads older than the trace", sum(|run| &run.old)),
        ("functions of threads that begin in it", sum(|run| &run.new)),
        ("holders of mutexes taken before the trace", sum(|run| &run.holders)),
    ]
}

fn tabulate_names(known: &[Known]) -> Table {
    let mut table = Table::new(&["what", "all", "right", "wrong", "not known"]);
    for (what, counts) in kinds(known) {
        let NameCounts { all, right, wrong } = counts;
        if all > 0 {
            let figures = [all, right, wrong, all - right - wrong];
            let figures = figures.map(|count| count.to_string());
            table.row([&[what.to_owned()], &figures[..]].concat());
        }
    }
    table
}

fn tabulate_accounts(closed: &[Closed]) -> Table {
    let mut all: Vec<&Difference> = closed.iter().flat_map(|run| &run.threads).collect();
    all.sort_by(|a, b| b.ran.abs().total_cmp(&a.ran.abs()));
    let mut table = Table::new(&["thread", "ran", "ran, off by", "runnable, off by"]);
    for one in all.iter().take(10) {
        let percent = |share: f64| format!("{:.3} %", share * 100.0);
        table.row(cells![
            one.name,
            percent(one.ran_share),
            percent(one.ran),
            percent(one.runnable)
        ]);
    }
    table
}

fn tabulate_runs(closed: &[Closed]) -> Table {
    let mut table = Table::new(&["run", "off by", "rows lost"]);
    for (number, run) in (1..).zip(closed) {
        table.row(cells![
            format!("{number}"),
            format!("{:.3} %", run.machine * 100.0),
            run.lost_rows
        ]);
    }
    table
}

fn targets(known: &[Known], closed: &[Closed]) -> Vec<Target> {
    let of_names = kinds(known).into_iter().filter(|(_, counts)| counts.all > 0);
    let mut targets: Vec<Target> = of_names
        .map(|(what, counts)| {
            Target::new(
                format!("{what}: all are right"),
                counts.right == counts.all,
                format!("{} of {}", counts.right, counts.all),
            )
        })
        .collect();
    if !closed.is_empty() {
        let threads = || closed.iter().flat_map(|run| &run.threads);
        let close = threads().filter(|one| one.ran.abs() <= MAX_DIFFERENCE).count();
        targets.push(Target::new(
            format!("what each thread ran closes within {:.0} %", MAX_DIFFERENCE * 100.0),
            close > 0 && close == threads().count(),
            format!("{close} of {}", threads().count()),
        ));
        let worst = closed.iter().map(|run| run.machine.abs()).fold(0.0, f64::max);
        targets.push(Target::new(
            format!("what all threads ran closes within {:.0} %", MAX_DIFFERENCE * 100.0),
            worst <= MAX_DIFFERENCE,
            format!("{:.2} % at most", worst * 100.0),
        ));
    }
    targets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_is_not_known_misses_the_target() {
        let counts = |right| NameCounts { all: 2, right, wrong: 0 };
        let known = |right| Known {
            commands: Vec::new(),
            old: counts(2),
            new: counts(right),
            holders: counts(2),
        };
        let met = |right| -> Vec<Option<bool>> {
            let targets = targets(&[known(right)], &[]);
            targets.iter().map(|target| target.met).collect()
        };
        assert_eq!(met(2), [Some(true); 3]);
        assert_eq!(met(1), [Some(true), Some(false), Some(true)]);
    }
}
