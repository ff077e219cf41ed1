//! The page: tables, and targets computed from all runs.

use luc_harness::cells;
use luc_harness::report::{Page, Table, Target, number, or_dash};

use super::judge::{Events, Judged, Pair, Way};
use super::run::GuestsRun;
use super::scenario::{SCENARIOS, Scenario};

/// Minimum number of events, and of runs.
const MIN_EVENTS: usize = 1_000_000;
const MIN_RUNS: usize = 10;
/// Maximum ratio of half-widths to half the smallest round trip, from 100 messages a second on.
const MAX_WIDTH_RATIO: f64 = 1.05;
const PER_MILLION: f64 = 1e-3;

/// Describes a run in a few words.
pub(super) fn brief(run: &GuestsRun) -> String {
    let Some(judged) = &run.judged else {
        return format!("not made: {}", run.unable.as_deref().unwrap_or("no reason"));
    };
    let events = sum(judged.ways.iter().map(|way| way.events));
    let maps = judged.ways.iter().map(|way| way.map);
    let (off, worst) = maps.fold((0, 0.0), |(off, worst), map| {
        (off + map.of - map.within, f64::max(worst, map.worst_ns))
    });
    format!(
        "{} of {} events within, {} in doubt, {} wrong; maps off {off} times, by {worst:.0} ns at most",
        events.right, events.all, events.in_doubt, events.wrong
    )
}

fn sum(all: impl Iterator<Item = Events>) -> Events {
    all.fold(Events::default(), |a, b| Events {
        all: a.all + b.all,
        right: a.right + b.right,
        in_doubt: a.in_doubt + b.in_doubt,
        wrong: a.wrong + b.wrong,
        unbounded: a.unbounded + b.unbounded,
        unknown: a.unknown + b.unknown,
    })
}

struct ScenarioRuns<'r> {
    scenario: &'static Scenario,
    judged: Vec<&'r Judged>,
}

impl ScenarioRuns<'_> {
    fn ways(&self) -> impl Iterator<Item = &Way> {
        self.judged.iter().flat_map(|judged| &judged.ways)
    }

    fn pairs(&self) -> impl Iterator<Item = &Pair> {
        self.judged.iter().flat_map(|judged| &judged.pairs)
    }

    fn events(&self) -> Events {
        sum(self.ways().map(|way| way.events))
    }

    /// Mean of a figure over ways or pairs.
    fn mean<T>(values: impl Iterator<Item = T>, of: impl Fn(T) -> f64) -> f64 {
        let (count, sum) =
            values.fold((0.0, 0.0), |(count, sum), one| (count + 1.0, sum + of(one)));
        sum / count
    }

    fn worst<T>(values: impl Iterator<Item = T>, of: impl Fn(T) -> f64) -> f64 {
        values.map(of).fold(0.0, f64::max)
    }

    /// Mean over pairs of the half-width divided by half the smallest round trip. The fit lets the offset bend next
    /// to nothing.
    fn unbent_ratio(&self) -> Option<f64> {
        let ratios = self.pairs().filter_map(|pair| {
            let half_width_ns = pair.unbent_half_width_ns?;
            Some(half_width_ns / pair.half_round_trip_ns)
        });
        let ratios: Vec<f64> = ratios.collect();
        (!ratios.is_empty()).then(|| Self::mean(ratios.iter(), |ratio| *ratio))
    }

    /// Mean of the median half-width of each way beside half the smallest round trip of its pair.
    fn width_ratio(&self) -> f64 {
        let ratios = self.judged.iter().flat_map(|judged| {
            judged.ways.iter().filter_map(|way| {
                let hosts = [way.home.min(way.other), way.home.max(way.other)];
                let pair = judged.pairs.iter().find(|pair| pair.hosts == hosts)?;
                Some(way.half_width_ns.p50 / pair.half_round_trip_ns)
            })
        });
        Self::mean(ratios, |ratio| ratio)
    }
}

pub(super) fn page(runs: &[GuestsRun], seeds: u64, seconds: f64) -> Page {
    let of = |scenario: &'static Scenario| ScenarioRuns {
        scenario,
        judged: runs
            .iter()
            .filter(|run| run.scenario == scenario.name)
            .filter_map(|run| run.judged.as_ref())
            .collect(),
    };
    let all: Vec<ScenarioRuns<'_>> =
        SCENARIOS.iter().map(of).filter(|one| !one.judged.is_empty()).collect();
    let mut tables = vec![
        ("Events placed on another guest's clock:".to_owned(), events(&all)),
        (
            "CLOCK_MONOTONIC_RAW by CLOCK_MONOTONIC, at each reading of the truth:".to_owned(),
            maps(&all),
        ),
        (
            "Half-widths of the bounds, errors of the estimates, and packets that arrive before they were sent:".to_owned(),
            widths(&all),
        ),
        ("What was said of jumps:".to_owned(), jumps(runs)),
    ];
    let not_made: Vec<&GuestsRun> = runs.iter().filter(|run| run.judged.is_none()).collect();
    if !not_made.is_empty() {
        let mut table = Table::of_words(&["run", "why it was not made"]);
        for run in not_made {
            let why = run.unable.clone().unwrap_or_default();
            table.row(vec![format!("{} {}", run.scenario, run.seed), why]);
        }
        tables.push(("Runs that were not made:".to_owned(), table));
    }
    Page {
        title: "Clocks of guests, related by their packets".to_owned(),
        about: about(runs, seeds, seconds),
        tables,
        targets: targets(runs, &all),
    }
}

fn about(runs: &[GuestsRun], seeds: u64, seconds: f64) -> String {
    let mut kernels: Vec<&str> = runs.iter().map(|run| run.kernel.as_str()).collect();
    kernels.sort_unstable();
    kernels.dedup();
    let judged = || runs.iter().filter_map(|run| run.judged.as_ref());
    let ways = || judged().flat_map(|judged| &judged.ways);
    let counters = ways().map(|way| way.counters_ns).fold(0.0, f64::max);
    let truth = ways().map(|way| way.truth_ns.p50).fold(0.0, f64::max);
    let mut sources: Vec<&str> =
        judged().flat_map(|judged| judged.clock_source.iter().map(String::as_str)).collect();
    sources.sort_unstable();
    sources.dedup();
    format!(
        "Guests of two or three under QEMU (TCG without icount, two processors each), with Debian's kernels as they are \
         ({}), connected by virtio-net cards. In each guest `luc record --fleet` records the packets of real TCP \
         connections, 64 bytes a message, at random times; rates of messages are each way and pair. Runs last {seconds} \
         s, {seeds} seeds each; kernels take turns. The kernels are told `tsc=reliable clocksource=tsc` and keep time by \
         {}. A drawn rate is up to 100 ppm, bent by 20 ppm in periods of 15 to 60 s, with load steps of up to 30 ppm \
         each 3 to 12 s, set anew by adjtimex each 0.5 to 2 s. With NTP the first guest's clock is drawn, its `chronyd \
         -x` tells its time, and the second guest's `chronyd` follows, asking each 0.5 to 1 s; its time is off at the \
         begin, and the first's is set by 0.7 s and -0.4 s by settimeofday during the run, so that it slews by up to 8 \
         %. Where time is set, that is done by settimeofday to the second guest's clock by as much. A guest is stopped \
         and goes on by QEMU's `stop` and `cont`, 1.5 s later.\n\nThe truth is what each guest's program reads a thousand \
         times a second at most: the processor's time stamp counter, CLOCK_MONOTONIC, and the counter again. Without \
         icount a guest's counter is the host's plus a constant. By how much the counters of two guests differ is \
         bounded by a page that they share (ivshmem): each writes its counter and reads the other's, and nobody reads \
         what was not written yet; so the difference is known to within ±{} ns at worst, 50 ns for reordered \
         instructions included. A run in which the difference changes is made again, twice at most. Between two readings \
         CLOCK_MONOTONIC is taken to run at the rates that adjtimex showed at them, ±1 ppm. The truth of an event is then \
         known to within ±{} ns at the median. An event is right if all of \
         that is within the bounds, in doubt if only some of it is, wrong if nothing is. A guest that is stopped has \
         clocks that stand still, and what the other does meanwhile is placed on these. No packet takes part in the \
         truth. The guests' crystal is one, the host's, so that no CLOCK_MONOTONIC_RAW bends; that is in \
         [fleet-clocks](fleet-clocks.md). Bounds are those that `luc fleet` computes with, by its library, since no \
         command prints one for any time that is asked for; jumps and failures are as `luc fleet fit --json` prints them. Where rates change 20 times a second they are drawn \
         from ±500 ppm each time, all that adjtimex allows, and samples of the clocks are ten a second as always. \
         *If nothing may bend* is by a fit of the same packets that takes the crystal to be one, as it is here: 1 ns/s² \
         and the whole run, where `luc fleet` allows 5 µs/s² and looks at 2 s on either side. It shows what of a \
         half-width is due to fast packets being rare.",
        kernels.join(", "),
        sources.join(", "),
        number(counters),
        number(truth),
    )
}

fn targets(runs: &[GuestsRun], all: &[ScenarioRuns<'_>]) -> Vec<Target> {
    let events = sum(all.iter().map(ScenarioRuns::events));
    let made = runs.iter().filter(|run| run.judged.is_some()).count();
    let is_enough = events.all >= MIN_EVENTS && made >= MIN_RUNS;
    let mut targets = vec![Target::new(
        format!(
            "the truth is within the guaranteed bounds at all of at least {MIN_EVENTS} events of at least \
                 {MIN_RUNS} runs"
        ),
        is_enough && events.right == events.all,
        format!(
            "{} of {}, {} in doubt, {} wrong, {made} runs",
            events.right, events.all, events.in_doubt, events.wrong
        ),
    )];
    let maps = all.iter().flat_map(ScenarioRuns::ways).map(|way| way.map);
    let (within, of) = maps.fold((0, 0), |(within, of), map| (within + map.within, of + map.of));
    targets.push(Target::new(
        "CLOCK_MONOTONIC_RAW is within what the map says of itself at all readings",
        of > 0 && within == of,
        format!("{within} of {of}"),
    ));
    for one in all {
        targets.push(Target::below(
            format!("{}: half-width beside half the smallest round trip", one.scenario.name),
            Some(one.width_ratio()),
            MAX_WIDTH_RATIO,
        ));
    }
    let stopped = all.iter().filter(|one| one.scenario.has_pause);
    let stopped: Vec<&Pair> = stopped.flat_map(ScenarioRuns::pairs).collect();
    if !stopped.is_empty() {
        let is_said = |pair: &&&Pair| pair.jumps.len() == 1;
        let said = stopped.iter().filter(is_said).count();
        targets.push(Target::new(
            "the jump of a guest that was stopped is stated, and no other",
            said == stopped.len(),
            format!("{said} of {}", stopped.len()),
        ));
    }
    let others = all.iter().filter(|one| !one.scenario.has_pause);
    let others: Vec<&Pair> = others.flat_map(ScenarioRuns::pairs).collect();
    let jumps: usize = others.iter().map(|pair| pair.jumps.len()).sum();
    if !others.is_empty() {
        targets.push(Target::new(
            "no jump is stated where none was, whatever the rates and however time is set",
            jumps == 0,
            format!("{jumps} in {} pairs", others.len()),
        ));
    }
    let explained = all.iter().flat_map(|one| &one.judged);
    let explained = explained.map(|judged| judged.explained);
    let (messages, before) = explained.fold((0, 0), |(messages, before), one| {
        (messages + one.messages, before + one.before_sent)
    });
    targets.push(Target::new(
        "no message arrives before it was sent, whatever the clocks are within their bounds (`luc fleet explain`)",
        messages > 0 && before == 0,
        format!("{before} of {messages}"),
    ));
    let inverted =
        all.iter().flat_map(ScenarioRuns::pairs).map(|pair| pair.inverted.unwrap_or(1.0));
    let inverted = inverted.fold(0.0, f64::max);
    targets.push(Target::new(
        "no packet arrives before it was sent, by the fit, but beside a jump, where no order is said",
        inverted == 0.0,
        format!("worst share {:.4} %", inverted * 100.0),
    ));
    targets
}

fn events(all: &[ScenarioRuns<'_>]) -> Table {
    let mut table = Table::new(&[
        "scenario",
        "runs",
        "events",
        "within",
        "in doubt",
        "wrong",
        "without a bound",
        "truth not known",
        "truth known to, ns, p50 / worst p99",
    ]);
    for one in all {
        let events = one.events();
        let p50 = ScenarioRuns::mean(one.ways(), |way| way.truth_ns.p50);
        let p99 = ScenarioRuns::worst(one.ways(), |way| way.truth_ns.p99);
        table.row(cells![
            one.scenario.name,
            one.judged.len(),
            events.all,
            events.right,
            events.in_doubt,
            events.wrong,
            events.unbounded,
            events.unknown,
            format!("{} / {}", number(p50), number(p99))
        ]);
    }
    table
}

fn maps(all: &[ScenarioRuns<'_>]) -> Table {
    let mut table = Table::new(&[
        "scenario",
        "rates a run and guest",
        "rates, ppm",
        "NTP updates a run",
        "within what the map says",
        "off by at most, ns",
        "says, ns: where no rate changes / most",
    ]);
    for one in all {
        let maps = || one.ways().map(|way| way.map);
        let (within, of) =
            maps().fold((0, 0), |(within, of), map| (within + map.within, of + map.of));
        let low = one.ways().map(|way| way.rates_ppb[0]).min().unwrap_or(0);
        let high = one.ways().map(|way| way.rates_ppb[1]).max().unwrap_or(0);
        table.row(cells![
            one.scenario.name,
            number(ScenarioRuns::mean(one.ways(), |way| way.rates as f64)),
            format!(
                "{} to {}",
                number(low as f64 * PER_MILLION),
                number(high as f64 * PER_MILLION)
            ),
            number(ScenarioRuns::mean(one.judged.iter(), |judged| judged.ntp_updates as f64)),
            format!("{within} of {of}"),
            number(ScenarioRuns::worst(maps(), |map| map.worst_ns)),
            format!(
                "{} / {}",
                number(ScenarioRuns::mean(maps(), |map| map.least_stated_ns)),
                number(ScenarioRuns::worst(maps(), |map| map.most_stated_ns))
            )
        ]);
    }
    table
}

fn widths(all: &[ScenarioRuns<'_>]) -> Table {
    let mut table = Table::new(&[
        "scenario",
        "messages/s",
        "half-width p50 / p99, µs",
        "half the smallest round trip, µs",
        "median beside it",
        "the same, if nothing may bend",
        "error of the estimate p50 / p99, µs",
        "inverted by the fit",
        "by one line of the recorded times",
        "by one line of CLOCK_MONOTONIC_RAW",
    ]);
    let percent = |values: Vec<Option<f64>>| {
        let known: Vec<f64> = values.into_iter().flatten().collect();
        if known.is_empty() {
            return "-".to_owned();
        }
        format!("{:.2} %", ScenarioRuns::mean(known.iter(), |share| share * 100.0))
    };
    for one in all {
        let us = |of: fn(&Way) -> f64| number(ScenarioRuns::mean(one.ways(), |way| of(way) / 1e3));
        table.row(cells![
            one.scenario.name,
            number(one.scenario.per_s),
            format!("{} / {}", us(|way| way.half_width_ns.p50), us(|way| way.half_width_ns.p99)),
            number(ScenarioRuns::mean(one.pairs(), |pair| pair.half_round_trip_ns / 1e3)),
            format!("{:.3}", one.width_ratio()),
            or_dash(one.unbent_ratio().map(|ratio| format!("{ratio:.3}"))),
            format!("{} / {}", us(|way| way.error_ns.p50), us(|way| way.error_ns.p99)),
            percent(one.pairs().map(|pair| pair.inverted).collect()),
            percent(one.pairs().map(|pair| pair.line_inverted).collect()),
            percent(one.pairs().map(|pair| pair.raw_line_inverted).collect())
        ]);
    }
    table
}

fn jumps(runs: &[GuestsRun]) -> Table {
    let mut table = Table::of_words(&["run", "guests", "the truth", "what was said"]);
    for run in runs {
        let judged = run.judged.iter();
        for pair in judged.flat_map(|judged| &judged.pairs) {
            let ms = |ns: f64| format!("{:.3} ms", ns / 1e6);
            let said = pair.jumps.iter().map(|jump| {
                let by = jump["by_ns"].as_f64().map_or("unknown".to_owned(), ms);
                let ends = [&jump["after_ns"], &jump["before_ns"]]
                    .map(|end| end.as_f64().unwrap_or(0.0) / 1e9);
                format!("by {by} between {:.3} and {:.3} s", ends[0], ends[1])
            });
            let mut said: Vec<String> = said.collect();
            said.extend(pair.failure.clone());
            if said.is_empty() && pair.stopped_ns == 0.0 {
                continue;
            }
            table.row(vec![
                format!("{} {}", run.scenario, run.seed),
                format!("{} and {}", pair.hosts[0], pair.hosts[1]),
                if pair.stopped_ns == 0.0 {
                    "none".to_owned()
                } else {
                    format!("the second fell behind by {}", ms(pair.stopped_ns))
                },
                said.join("; "),
            ]);
        }
    }
    table
}
