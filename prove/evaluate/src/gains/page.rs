//! The page of the part `gains`.

use std::thread::available_parallelism;

use luc_stats::median;
use serde_json::Value;

use super::super::harness::{Harness, figure};
use super::super::report::{NOTATION, Page, Table, Target, middle, number, ratio, spread};
use super::super::rounds::{Runs, calls_per_s, files_per_s};
use super::limit::Round;
use super::{CELLS, Cell, Goal, POLICIES, POLICY_THREADS, policy_cell};

/// The tables, row by row.
struct Tables {
    rates: Table,
    limits: Table,
    rest: Table,
    targets: Vec<Target>,
}

pub(super) fn page(harness: &Harness, runs: &Runs, repeats: usize, seconds: f64) -> Page {
    let processors = available_parallelism().map_or(1, usize::from);
    let mut tables = Tables {
        rates: Table::new(&["cell", "stock, calls/s", "gate, calls/s", "ratio"]),
        limits: Table::new(&[
            "cell",
            "data, ms",
            "commit or flushes, ms",
            "processor, ms",
            "limit, calls/s",
            "share, stock",
            "share, gate",
            "round with the gate, ms",
            "beyond the limit, ms",
        ]),
        rest: Table::of_words(&["cell", "what a call's time went into", "the gate said"]),
        targets: Vec::new(),
    };
    for cell in CELLS.iter().filter(|cell| harness.options.wants(cell.name)) {
        tables.row(harness, runs, cell, processors);
    }
    let policies = policies(harness, runs, &mut tables.targets);
    Page {
        title: "Gains of other callers than those that create files, and their limits".to_owned(),
        about: format!(
            "Each cell runs for {seconds} s, {repeats} times, alone (\"stock\") and under `luc run \
             --policy auto` (\"gate\"), on ext4 with a journal of 1 GiB on a disk that takes 20 µs for \
             a request and 6 ms for a flush. \"overwrite\" is `luc bench overwrite`: each caller writes \
             8 KiB into a log of its own that is all written already, and calls fdatasync, which needs \
             a flush and no commit. \"preallocated append\" is `luc bench append --preallocate`: 4 KiB \
             go into a log that fallocate has made, and the fdatasync needs a commit, since extents \
             are converted; of records of 512 bytes one in eight does. \"append\": 512 bytes are \
             appended to a log that grows. \"create and delete\" is `luc bench metarates --keep 16`: \
             create, write 1 KiB, fsync, close, unlink the file made 16 before. The limit is N callers \
             over what a round of theirs must do, one thing after the other: wait for the data of \
             all, one commit (both by `luc bench commit --work`; of callers that need a flush only \
             two flushes, which is what callers released together take: the first request starts a \
             flush alone, the others share the next), and the processor time of N calls on this \
             machine's {processors} processors, as the clients took it in the cheaper of both settings. \
             {NOTATION}"
        ),
        tables: vec![
            ("Throughput:".to_owned(), tables.rates),
            ("A round beside its limit:".to_owned(), tables.limits),
            (
                "What takes the rest, from a further run of `luc run` that was recorded (the last of \
                 them):"
                    .to_owned(),
                tables.rest,
            ),
            ("Policies, `luc bench metarates`:".to_owned(), policies),
        ]
        .into_iter()
        .filter(|(_, table)| !table.is_empty())
        .collect(),
        targets: tables.targets,
    }
}

impl Tables {
    fn row(&mut self, harness: &Harness, runs: &Runs, cell: &Cell, processors: usize) {
        let of = |setting| runs.figures(cell.name, setting, calls_per_s);
        let (stock, gate) = (of("stock"), of("gate"));
        let gain = runs.ratio(
            cell.name,
            ("gate", "stock"),
            calls_per_s,
            harness.options.seed,
        );
        self.rates.row(vec![
            cell.name.to_owned(),
            spread(&stock),
            spread(&gate),
            ratio(gain.as_ref()),
        ]);
        let round = Round::of(cell, runs, processors);
        let share = |rates: &[f64]| Some(median(rates)? / round?.calls_per_s());
        let shown = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), number);
        let took_ms = round
            .zip(median(&gate))
            .map(|(round, rate)| round.at_rate_ms(rate));
        self.limits.row(vec![
            cell.name.to_owned(),
            shown(round.map(|round| round.data_ms)),
            shown(round.map(|round| round.commit_ms)),
            shown(round.map(|round| round.processor_ms)),
            shown(round.map(|round| round.calls_per_s())),
            shown(share(&stock)),
            shown(share(&gate)),
            shown(took_ms),
            shown(
                took_ms
                    .zip(round)
                    .map(|(took, round)| took - round.all_ms()),
            ),
        ]);
        if let Some(run) = runs.of(cell.name, "reported").last() {
            self.rest.row(vec![
                cell.name.to_owned(),
                takers(&run.why),
                said(&run.gate),
            ]);
        }
        match cell.goal {
            Goal::Ratio(least) => self.targets.push(Target::at_least(
                format!("{}: calls/s, gate over stock,", cell.name),
                gain.map(|gain| gain.ratio),
                least,
            )),
            Goal::Share(least) => self.targets.push(Target::at_least(
                format!("{}: share of the limit", cell.name),
                share(&gate),
                least,
            )),
            Goal::Shown => {}
        }
    }
}

/// The papers' policies over stock.
fn policies(harness: &Harness, runs: &Runs, targets: &mut Vec<Target>) -> Table {
    let mut table = Table::new(&[
        "cell",
        "policy",
        "stock, files/s",
        "policy, files/s",
        "ratio",
    ]);
    for threads in POLICY_THREADS {
        let cell = policy_cell(threads);
        if !harness.options.wants(&cell) {
            continue;
        }
        for (policy, least) in POLICIES {
            let gain = runs.ratio(&cell, (policy, "stock"), files_per_s, harness.options.seed);
            table.row(vec![
                cell.clone(),
                policy.to_owned(),
                middle(&runs.figures(&cell, "stock", files_per_s)),
                spread(&runs.figures(&cell, policy, files_per_s)),
                ratio(gain.as_ref()),
            ]);
            targets.push(Target::at_least(
                format!("{cell}: files/s, `{policy}` over stock,"),
                gain.map(|gain| gain.ratio),
                least,
            ));
        }
    }
    table
}

/// What took a call's time, the largest first, by `luc run`'s report.
pub(crate) fn takers(why: &Value) -> String {
    let Some(takers) = why["takers"].as_object() else {
        return "not recorded".to_owned();
    };
    let mut shares: Vec<(&str, f64)> = takers
        .iter()
        .filter_map(|(name, taken)| Some((&**name, figure(taken, "share").ok()?)))
        .filter(|(_, share)| *share >= 0.005)
        .collect();
    shares.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    let words: Vec<String> = shares
        .iter()
        .map(|(name, share)| format!("{} {:.0} %", name.replace('_', " "), share * 100.0))
        .collect();
    words.join(", ")
}

/// What the gate said of a file system: how long it held, and its decision.
pub(crate) fn said(file_system: &Value) -> String {
    let gate = &file_system["gate"];
    let mut words = Vec::new();
    if let (Ok(held), Ok(wrote)) = (
        figure(gate, "mean_wait_us"),
        figure(gate, "mean_write_back_us"),
    ) {
        words.push(format!(
            "held {} ms, data written first in {} ms",
            number(held / 1e3),
            number(wrote / 1e3)
        ));
    }
    let decision = &gate["decision"];
    let text = |key: &str| decision[key].as_str().unwrap_or_default();
    match (text("state"), text("reason")) {
        ("", _) => {}
        (state, "") => words.push(state.to_owned()),
        (state, reason) => words.push(format!("{state}: {reason}")),
    }
    if words.is_empty() {
        return "nothing".to_owned();
    }
    words.join("; ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_took_the_time_is_in_order() {
        let why = json!({ "takers": {
            "flush": { "share": 0.2 }, "own_commit": { "share": 0.7 }, "other": { "share": 0.001 },
        }});
        assert_eq!(takers(&why), "own commit 70 %, flush 20 %");
        assert_eq!(takers(&Value::Null), "not recorded");
    }

    #[test]
    fn what_the_gate_said() {
        let file_system = json!({ "gate": {
            "mean_wait_us": 1500.0, "mean_write_back_us": 250.0,
            "decision": { "state": "aside", "reason": "only one caller at a time" },
        }});
        assert_eq!(
            said(&file_system),
            "held 1.50 ms, data written first in 0.250 ms; aside: only one caller at a time"
        );
        assert_eq!(said(&Value::Null), "nothing");
    }
}
