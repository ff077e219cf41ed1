//! The page: seconds and memory, and targets computed from all runs.

use luc_harness::report::{Page, Table, Target};
use luc_stats::median;

use super::kills::{self, Kill};
use super::servers::{EXECUTORS, MEMORY_MIB};
use super::{BACK_ENDS, Cell, ONCE_FROM_ROWS, Run};
use crate::asked::Asked;

pub(super) fn page(cells: &[Cell], kills: &[Kill], repeats: usize) -> Page {
    Page {
        title: "SQL over the traces of many hosts".to_owned(),
        about: about(repeats),
        tables: vec![
            ("The traces:".to_owned(), of_sizes(cells)),
            (
                "Median seconds from the start of `luc fleet sql` to its end, and the greatest memory of all its \
                 processes together:"
                    .to_owned(),
                of_queries(cells),
            ),
            (
                "Executors that were killed at any time; median seconds of those queries that had not ended then:"
                    .to_owned(),
                of_kills(kills),
            ),
        ],
        targets: targets(cells, kills),
    }
}

fn about(repeats: usize) -> String {
    format!(
        "Everything here is synthetic: the traces are made by a program (`prove/testkit/src/fleet.rs`), for {hosts} \
         hosts whose clocks differ, with requests of a client through a front end to {BACK_ENDS} back ends, and waits \
         that belong to no request. Each query is answered by one process (`--memory {MEMORY_MIB}MiB`), by a scheduler \
         with {EXECUTORS} executors of one task each on the same machine ({each} MiB each), and once more by these \
         while one executor is killed (SIGKILL) after half of the time that the cluster took. Servers are started anew \
         for each. All share the processors of one machine, so that a cluster can gain nothing here: the figures say \
         what it costs. Answers are compared byte for byte. Memory is VmHWM, the peak of each process, added up. \
         {repeats} runs of each, and one of tables in the schema `fleet` (edges, requests, paths) of {ONCE_FROM_ROWS} rows: \
         they are made in memory of all rows, which takes minutes. Moreover, an executor of a cluster is killed at moments \
         that are spread evenly over the time that the same query has just taken on it, with traces of {kill_rows} rows.",
        hosts = BACK_ENDS + 2,
        each = MEMORY_MIB / EXECUTORS as u64,
        kill_rows = kills::ROWS,
    )
}

fn of_sizes(cells: &[Cell]) -> Table {
    let mut table = Table::new(&["size", "rows", "requests", "bytes of files", "bytes/row"]);
    let mut last = "";
    for cell in cells {
        if cell.scale == last {
            continue;
        }
        last = cell.scale;
        let size = cell.size;
        table.row(vec![
            cell.scale.to_owned(),
            size.rows.to_string(),
            size.requests.to_string(),
            size.bytes.to_string(),
            format!("{:.1}", size.bytes as f64 / size.rows as f64),
        ]);
    }
    table
}

fn of_queries(cells: &[Cell]) -> Table {
    let mut table =
        Table::new(&["size", "query", "one process", "cluster", "one executor killed", "answers"]);
    for cell in cells {
        let figures = |of: fn(&Run) -> &Asked| {
            let seconds: Vec<f64> = cell.runs.iter().map(|run| of(run).seconds).collect();
            let seconds = median(&seconds).unwrap_or(f64::NAN);
            let peak = cell.runs.iter().map(|run| of(run).peak_bytes).max();
            let mib = peak.unwrap_or(0) as f64 / f64::from(1 << 20);
            format!("{seconds:.2} s, {mib:.0} MiB")
        };
        let same = cell.runs.iter().filter(|run| run.same && run.same_killed);
        table.row(vec![
            cell.scale.to_owned(),
            cell.query.to_owned(),
            figures(|run| &run.one),
            figures(|run| &run.cluster),
            figures(|run| &run.killed),
            format!("{} of {} the same", same.count(), cell.runs.len()),
        ]);
    }
    table
}

fn of_kills(kills: &[Kill]) -> Table {
    let mut table =
        Table::new(&["query", "kills", "meanwhile", "undisturbed", "killed", "answers"]);
    let mut names: Vec<&str> = kills.iter().map(|kill| kill.query.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        let all: Vec<&Kill> = kills.iter().filter(|kill| kill.query == name).collect();
        let meanwhile = || all.iter().filter(|kill| kill.was_meanwhile);
        let seconds = |of: fn(&Kill) -> &Asked| {
            let seconds: Vec<f64> = meanwhile().map(|kill| of(kill).seconds).collect();
            format!("{:.2} s", median(&seconds).unwrap_or(f64::NAN))
        };
        let same = all.iter().filter(|kill| kill.same).count();
        table.row(vec![
            name.to_owned(),
            all.len().to_string(),
            meanwhile().count().to_string(),
            seconds(|kill| &kill.undisturbed),
            seconds(|kill| &kill.killed),
            format!("{same} of {} the same", all.len()),
        ]);
    }
    table
}

fn targets(cells: &[Cell], kills: &[Kill]) -> Vec<Target> {
    let runs = || cells.iter().flat_map(|cell| &cell.runs);
    let all = runs().count();
    let same = runs().filter(|run| run.same).count();
    let meanwhile = runs().filter(|run| run.was_killed_meanwhile).count();
    let same_killed = runs().filter(|run| run.was_killed_meanwhile && run.same_killed).count();
    vec![
        Target::new(
            format!("{EXECUTORS} executors answer as one process does, byte for byte"),
            all > 0 && same == all,
            format!("{same} of {all}"),
        ),
        Target::new(
            "an executor that is killed in the middle changes no answer".to_owned(),
            meanwhile > 0 && same_killed == meanwhile,
            format!("{same_killed} of {meanwhile} that had not ended by then"),
        ),
        Target::new(
            "an executor that is killed at any time changes no answer, and no query waits for ever"
                .to_owned(),
            kills.iter().any(|kill| kill.was_meanwhile) && kills.iter().all(|kill| kill.same),
            format!(
                "{} of {}, of which {} had not ended by then",
                kills.iter().filter(|kill| kill.same).count(),
                kills.len(),
                kills.iter().filter(|kill| kill.was_meanwhile).count(),
            ),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::Size;

    fn asked(seconds: f64) -> Asked {
        Asked { command: String::new(), seconds, peak_bytes: 1 << 20, answer_bytes: 7 }
    }

    fn cell(same: bool, same_killed: bool, was_killed_meanwhile: bool) -> Cell {
        Cell {
            scale: "10^6 rows",
            size: Size { rows: 10, requests: 1, bytes: 55 },
            query: "a query",
            runs: vec![Run {
                one: asked(1.0),
                cluster: asked(2.0),
                killed: asked(3.0),
                was_killed_meanwhile,
                same,
                same_killed,
            }],
        }
    }

    fn kill(same: bool, was_meanwhile: bool) -> Kill {
        Kill {
            query: "a query".to_owned(),
            undisturbed: asked(1.0),
            killed: asked(2.0),
            at: 0.5,
            was_meanwhile,
            same,
        }
    }

    #[test]
    fn one_answer_that_differs_is_a_missed_target() {
        let met = |cells: &[Cell], kills: &[Kill]| -> Vec<bool> {
            targets(cells, kills).iter().map(|target| target.met == Some(true)).collect()
        };
        let (good, fine) = (cell(true, true, true), [kill(true, true)]);
        let with = |other: Cell| met(&[good.clone(), other], &fine);
        assert_eq!(met(std::slice::from_ref(&good), &fine), [true; 3]);
        assert_eq!(with(cell(false, true, true)), [false, true, true]);
        assert_eq!(with(cell(true, false, true)), [true, false, true]);
        // What was killed too late says nothing.
        assert_eq!(met(&[cell(true, true, false)], &fine), [true, false, true]);
        let of_kills = |kills: &[Kill]| met(std::slice::from_ref(&good), kills)[2];
        assert!(of_kills(&[kill(true, true), kill(true, false)]));
        assert!(!of_kills(&[kill(true, true), kill(false, false)]));
        assert!(!of_kills(&[kill(true, false)]));
        assert_eq!(met(&[], &[]), [false; 3]);
    }
}
