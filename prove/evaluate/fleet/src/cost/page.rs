//! The page of the part `fleet-cost`.

use luc_harness::drift::over_unrecorded;
use luc_harness::report::{Page, Table, Target, number, spread, spread_as};
use luc_harness::{Extent, cells};
use luc_stats::median;

use super::servers::{LIST, QUERIES_BEFORE, SEARCH_CLIENTS, Servers};
use super::{CostRun, RecordingMode, Round, ServerCell, WARMUP_S};

struct OfCell<'a> {
    cell: ServerCell,
    rounds: Vec<&'a Round>,
}

impl OfCell<'_> {
    fn figures(&self, setting: RecordingMode, of: impl Fn(&CostRun) -> Option<f64>) -> Vec<f64> {
        let runs = self.rounds.iter().flat_map(|round| &round.runs);
        runs.filter(|run| run.setting == setting).filter_map(of).collect()
    }

    /// Ratios of a figure of each round to its unrecorded value.
    fn over(&self, setting: RecordingMode, of: impl Fn(&CostRun) -> f64) -> Vec<f64> {
        let ratio = |round: &&Round| {
            let figures: Vec<f64> = round.runs.iter().map(&of).collect();
            let index = round.runs.iter().position(|run| run.setting == setting)?;
            over_unrecorded(&figures, index)
        };
        self.rounds.iter().filter_map(ratio).collect()
    }

    /// Ratio of counted requests to those at both ends, of each run with sums.
    fn shares_of_exchanges(&self) -> Vec<f64> {
        self.figures(RecordingMode::Sums, |run| {
            // Each is one message each way, at two ends.
            let wanted = run.requests * self.cell.messages();
            (wanted > 0.0).then_some(run.rows?.exchanges as f64 / wanted)
        })
    }

    /// Ratio of rows of messages to those that the requests must have, of each run.
    fn shares(&self, setting: RecordingMode) -> Vec<f64> {
        self.figures(setting, |run| {
            let wanted = run.requests * self.cell.messages() * setting.ends();
            let rows = run.rows?;
            (wanted > 0.0).then(|| rows.messages as f64 / wanted)
        })
    }
}

pub(super) fn page(
    cells: &[ServerCell],
    rounds: &[Round],
    servers: &Servers,
    Extent { repeats, seconds }: Extent,
) -> Page {
    let all: Vec<OfCell<'_>> = cells
        .iter()
        .map(|&cell| OfCell {
            cell,
            rounds: rounds.iter().filter(|round| round.cell == cell).collect(),
        })
        .collect();
    let versions = servers.versions.join(", ");
    Page {
        title: "What recording the network costs".to_owned(),
        about: format!(
            "Requests per second of servers of the distribution ({versions}) on this machine, over loopback or a bridge, while they \
             are recorded, against the same unrecorded; {repeats} rounds of {seconds} s each. Redis keeps nothing on \
             disk, and gets values of 100 bytes by `redis-benchmark`, a request at a time on each connection; where it \
             reads lists, of {LIST} such values, it comes nearest to the 100,000 messages a second for which the targets were set (a request and its answer are two). \
             PostgreSQL does not synchronize its files, so that no disk decides; `pgbench -S` makes transactions of one \
             statement, `pgbench` such of seven. The search service of part fleet-solr is a front end and two shards, \
             each a node of Solr on a host of its own; {SEARCH_CLIENTS} clients ask one query after the other, and \
             each has asked {QUERIES_BEFORE} before anything is measured. `luc record` and `luc record --fleet` record everybody, so that a \
             message has rows at both ends; *server only* records the server and its children (`--pid`), as on a host \
             whose clients are elsewhere, though these run here as well. `--tokens` looks for names that requests carry; of \
             these only Solr's have HTTP, and none has a name. `luc record --fleet --summary` counts how long \
             requests take, of everybody, at both ends. Requests begin {WARMUP_S} s after the recorder. A round \
             is a run under each recorder, in random order, between two unrecorded ones; each recorded run is compared \
             with what lies between its round's two unrecorded ones, as far from each as it was in the round. The \
             ratio given is the median over the rounds. In parentheses the 95 % interval from order statistics, or \
             with fewer than 6 rounds the range. Processor time is that of client, server and recorder, without the \
             recorder's start and end."
        ),
        tables: vec![
            ("Requests:".to_owned(), speeds(&all)),
            ("What was recorded:".to_owned(), rows(&all)),
        ],
        targets: targets(&all),
    }
}

fn ratio(value: f64) -> String {
    format!("{value:.3}")
}

fn speeds(cells: &[OfCell<'_>]) -> Table {
    let mut table = Table::new(&[
        "program",
        "under",
        "requests, 1/s",
        "over unrecorded",
        "processor time, µs/request",
        "over unrecorded",
        "of it the recorder's",
    ]);
    for of_cell in cells {
        for setting in [RecordingMode::Unrecorded].into_iter().chain(RecordingMode::RECORDERS) {
            let rates = of_cell.figures(setting, |run| Some(run.requests_per_s));
            if rates.is_empty() {
                continue;
            }
            let is_recorded = setting != RecordingMode::Unrecorded;
            let over = |of: fn(&CostRun) -> f64| {
                let ratios = if is_recorded { of_cell.over(setting, of) } else { Vec::new() };
                spread_as(&ratios, ratio)
            };
            let recorder = of_cell.figures(setting, |run| {
                is_recorded.then(|| run.loaded.recorder_s / run.requests.max(1.0) * 1e6)
            });
            table.row(cells![
                of_cell.cell.name(),
                setting.name(),
                spread(&rates),
                over(|run| run.requests_per_s),
                spread(&of_cell.figures(setting, |run| Some(run.processor_us()))),
                over(CostRun::processor_us),
                spread(&recorder)
            ]);
        }
    }
    table
}

fn rows(cells: &[OfCell<'_>]) -> Table {
    let mut table = Table::new(&[
        "program",
        "under",
        "rows, 1/s",
        "messages per request",
        "waits per request",
        "packets per request",
        "requests counted per request",
        "lost",
        "bytes per row",
        "trace, kB/s",
    ]);
    for of_cell in cells {
        for setting in RecordingMode::RECORDERS {
            let of = |figure: &dyn Fn(&CostRun, &super::Rows) -> f64| {
                let figures = of_cell.figures(setting, |run| {
                    let rows = run.rows.as_ref()?;
                    Some(figure(run, rows))
                });
                median(&figures)
            };
            let shown = |figure: Option<f64>| figure.map_or_else(|| "-".to_owned(), number);
            // Rows of sums are not counted.
            let of_rows =
                |figure: Option<f64>| shown(figure.filter(|_| setting != RecordingMode::Sums));
            let each = |count: fn(&super::Rows) -> u64| {
                shown(of(&|run, rows| count(rows) as f64 / run.requests.max(1.0)))
            };
            let lost = of_cell.figures(setting, |run| run.rows.map(|rows| rows.lost as f64));
            table.row(cells![
                of_cell.cell.name(),
                setting.name(),
                of_rows(of(&|_, rows| rows.per_s())),
                each(|rows| rows.messages),
                each(|rows| rows.waits),
                each(|rows| rows.packets),
                each(|rows| rows.exchanges),
                number(lost.iter().sum()),
                of_rows(of(&|_, rows| {
                    rows.trace_bytes as f64 / (rows.per_s() * rows.trace_s).max(1.0)
                })),
                shown(of(&|_, rows| rows.trace_bytes as f64 / rows.trace_s.max(1e-9) / 1e3))
            ]);
        }
    }
    table
}

fn targets(cells: &[OfCell<'_>]) -> Vec<Target> {
    let mut targets = Vec::new();
    let mut least_share: Option<f64> = None;
    let mut least_counted: Option<f64> = None;
    let mut lost = 0.0;
    for of_cell in cells {
        for setting in RecordingMode::RECORDERS {
            targets.push(Target::at_least(
                format!("{}: {} over unrecorded", of_cell.cell.name(), setting.name()),
                median(&of_cell.over(setting, |run| run.requests_per_s)),
                setting.least(),
            ));
            if setting == RecordingMode::Sums {
                let shares = of_cell.shares_of_exchanges();
                least_counted = least_counted.into_iter().chain(shares).reduce(f64::min);
            }
            let shares = of_cell.shares(setting);
            least_share = least_share.into_iter().chain(shares).reduce(f64::min);
            let of_setting = of_cell.figures(setting, |run| run.rows.map(|rows| rows.lost as f64));
            lost += of_setting.iter().sum::<f64>();
        }
    }
    targets.push(Target::at_least(
        "rows of messages over those that the requests must have, in the worst run",
        least_share,
        1.0,
    ));
    targets.push(Target::at_least(
        "requests counted at both ends by --summary over those that there must be, in the worst run",
        least_counted,
        1.0,
    ));
    targets.push(Target::new("no event lost in any recording", lost == 0.0, number(lost)));
    targets
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn run(setting: &str, rate: f64, messages: Option<u64>) -> CostRun {
        let rows = messages.map(|messages| {
            json!({
                "messages": messages, "packets": 1, "connections": 2, "waits": 3, "brief_waits": 4,
                "exchanges": 200, "lost": 5, "trace_bytes": 600, "trace_s": 2.0
            })
        });
        serde_json::from_value(json!({
            "setting": setting, "recorder": null, "command": "c", "requests": 100.0, "requests_per_s": rate,
            "loaded": {
                "seconds": 1.0, "client_s": 0.001, "server_s": 0.002, "recorder_s": 0.001, "said": ""
            },
            "rows": rows, "stolen_share": 0.0, "disturbed": false
        }))
        .expect("a run")
    }

    #[test]
    fn ratios_and_shares_are_of_their_round() {
        let round = Round {
            cell: ServerCell::Redis(50),
            runs: vec![
                run("unrecorded", 100.0, None),
                run("fleet", 45.0, Some(399)),
                run("unrecorded", 80.0, None),
            ],
        };
        let of_cell = OfCell { cell: ServerCell::Redis(50), rounds: vec![&round] };
        assert_eq!(of_cell.over(RecordingMode::Fleet, |run| run.requests_per_s), [0.5]);
        // 100 requests, each received and answered, at both ends.
        assert_eq!(of_cell.shares(RecordingMode::Fleet), [399.0 / 400.0]);
        let shown: Vec<String> = targets(&[of_cell]).iter().map(ToString::to_string).collect();
        let verdict =
            |what: &str| shown.iter().find(|line| line.contains(what)).expect("it is there");
        assert!(verdict("luc record --fleet over").contains("**not met** (0.500)"), "{shown:?}");
        assert!(verdict("worst run").contains("**not met**"), "{shown:?}");
        assert!(verdict("lost").contains("**not met** (5.00)"), "{shown:?}");
    }
}
