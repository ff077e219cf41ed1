//! Compares the results of `luc fleet` for the guests' clocks with the truth.

use luc_fleet::{
    FirstHostClock, JoinedTraces, PairWithPackets, TablesToRead, TraceArgument, related,
};
use luc_fleet_clocks::{FitOptions, OffsetEvidence, OffsetPoint, PairPoints, fit, one_line};
use luc_harness::error::EvaluateError;
use luc_harness::harness::{Harness, elements, missing};
use luc_stats::quantile;
use serde::Serialize;
use serde_json::Value;

use super::machines::Recorded;
use super::truth::{Ahead, Clocks};
use crate::simulated::pair::inverted;

/// Curvature and window of a second fit, for clocks that count by one crystal.
const MIN_CURVATURE_NS_PER_S2: f64 = 1.0;
const WHOLE_RUN_WINDOW_S: f64 = 3_600.0;

#[derive(Debug, Serialize)]
pub(super) struct Judged {
    pub(super) ways: Vec<Way>,
    pub(super) pairs: Vec<Pair>,
    /// Contradiction between pairs, if there is one.
    pub(super) contradiction: Option<String>,
    pub(super) complaints: Vec<String>,
    pub(super) clock_source: Vec<String>,
    pub(super) ntp_updates: usize,
    /// Output of `luc fleet explain --json` on messages between guests.
    pub(super) explained: Explained,
    /// Output of `luc fleet fit --json`.
    pub(super) said: Value,
}

/// Events of one host, placed on the clock of another.
#[derive(Debug, Serialize)]
pub(super) struct Way {
    pub(super) home: usize,
    pub(super) other: usize,
    pub(super) events: Events,
    /// Half the distance of the bounds, of all events that have both, ns.
    pub(super) half_width_ns: Spread,
    /// Distance of the estimate from the middle of the truth, ns.
    pub(super) error_ns: Spread,
    /// Half the width of the truth, ns.
    pub(super) truth_ns: Spread,
    /// Half the widest part of the truth that is due to the constant of the counters, ns.
    pub(super) counters_ns: f64,
    /// Accuracy of the map from CLOCK_MONOTONIC to CLOCK_MONOTONIC_RAW.
    pub(super) map: Map,
    /// Number of rates that adjtimex showed.
    pub(super) rates: usize,
    /// Minimum and maximum of these rates, ppb.
    pub(super) rates_ppb: [i64; 2],
}

/// Counts of events, by their judgement.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(super) struct Events {
    /// Events whose truth is known.
    pub(super) all: usize,
    /// Events whose truth is completely within the bounds.
    pub(super) right: usize,
    /// Events whose truth is partly within the bounds.
    pub(super) in_doubt: usize,
    /// Events whose truth is outside the bounds.
    pub(super) wrong: usize,
    /// Events that lack a bound, so that they prove little. They are counted above, too.
    pub(super) unbounded: usize,
    /// Events whose truth is not known: a guest was stopped, or the other read no clock around them.
    pub(super) unknown: usize,
}

/// Accuracy of a host's map of CLOCK_MONOTONIC to CLOCK_MONOTONIC_RAW, at each reading.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(super) struct Map {
    pub(super) of: usize,
    /// Number of readings that are off by no more than the map's stated error.
    pub(super) within: usize,
    /// Maximum over all readings of the minimum distance from the truth, ns.
    pub(super) worst_ns: f64,
    /// Minimum of the stated error, where rates do not change, and its maximum, ns.
    pub(super) least_stated_ns: f64,
    pub(super) most_stated_ns: f64,
}

#[derive(Debug, Serialize)]
pub(super) struct Pair {
    pub(super) hosts: [usize; 2],
    pub(super) packets: usize,
    /// Half the sum of the minimum times of a packet there and of one back, by the truth, ns.
    pub(super) half_round_trip_ns: f64,
    /// Half the distance of the bounds at the median packet, ns. The fit is of the whole run, and lets the offset
    /// bend next to nothing.
    pub(super) unbent_half_width_ns: Option<f64>,
    /// Share of packets that arrive before they are sent: by the fit, by one line through the recorded times, and by
    /// one line through those of CLOCK_MONOTONIC_RAW.
    pub(super) inverted: Option<f64>,
    pub(super) line_inverted: Option<f64>,
    pub(super) raw_line_inverted: Option<f64>,
    /// Stated jumps: after, before, by, ns.
    pub(super) jumps: Vec<Value>,
    /// Time by which the second's clock fell behind while it was stopped, ns; 0 if it was not.
    pub(super) stopped_ns: f64,
    pub(super) failure: Option<String>,
}

/// Counts of messages between guests, by `luc fleet explain`.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(super) struct Explained {
    pub(super) messages: u64,
    /// Messages that arrived before they were sent, wherever the clocks are within their bounds.
    pub(super) before_sent: u64,
    pub(super) without_a_time: u64,
}

/// Mean, quantiles and maximum of figures.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Spread {
    pub(super) mean: f64,
    pub(super) p50: f64,
    pub(super) p99: f64,
    pub(super) most: f64,
}

impl Spread {
    fn of(mut values: Vec<f64>) -> Self {
        values.sort_unstable_by(f64::total_cmp);
        let at = |share| quantile(&values, share).unwrap_or(f64::NAN);
        Self {
            mean: values.iter().sum::<f64>() / values.len().max(1) as f64,
            p50: at(0.5),
            p99: at(0.99),
            most: at(1.0),
        }
    }
}

/// Whether the run's truth is known: the counters of each two guests differ by a constant.
pub(super) fn has_truth(recorded: &Recorded) -> bool {
    let hosts = || 0..recorded.clocks.len();
    let mut pairs = hosts().flat_map(|home| hosts().map(move |other| [home, other]));
    pairs.all(|[home, other]| {
        home == other || Ahead::of(&recorded.clocks, [home, other], recorded.pause.as_ref()).is_ok()
    })
}

pub(super) fn judge(harness: &Harness, recorded: &Recorded) -> Result<Judged, EvaluateError> {
    let hosts = recorded.traces.len();
    let mut ways = Vec::new();
    for home in 0..hosts {
        // Times are on the clock of the host that is named first.
        let mut order: Vec<usize> = (0..hosts).collect();
        order.swap(0, home);
        let sources = sources(recorded, &order);
        let joined = JoinedTraces::read(&sources, TablesToRead::OfClocks, None)
            .map_err(|error| fit_error(&error))?;
        let on_home = FirstHostClock::new(&joined);
        for (place, &other) in order.iter().enumerate().skip(1) {
            ways.push(compare_way(recorded, &on_home, [home, other], place)?);
        }
    }
    let order: Vec<usize> = (0..hosts).collect();
    let sources = sources(recorded, &order);
    let traces =
        luc_fleet::read(&sources, TablesToRead::OfClocks).map_err(|error| fit_error(&error))?;
    let said = self::run_luc(harness, recorded, "fit")?;
    let explained = sum_messages(&self::run_luc(harness, recorded, "explain")?);
    let pairs = related(&traces).map_err(|error| fit_error(&error))?;
    let pairs = pairs.iter().zip(elements(&said["pairs"]));
    let pairs = pairs.map(|(pair, said)| self::pair(recorded, pair, said));
    Ok(Judged {
        ways,
        pairs: pairs.collect::<Result<_, _>>()?,
        contradiction: said["contradiction"].as_str().map(str::to_owned),
        complaints: recorded.complaints.clone(),
        clock_source: recorded.clock_source.clone(),
        ntp_updates: recorded.ntp_updates,
        explained,
        said,
    })
}

fn fit_error(error: &dyn std::error::Error) -> EvaluateError {
    missing(&format!("the fit ({error})"))
}

fn sources(recorded: &Recorded, order: &[usize]) -> Vec<TraceArgument> {
    let source = |&host: &usize| TraceArgument {
        name: Some(format!("guest{host}")),
        directory: recorded.traces[host].clone(),
    };
    order.iter().map(source).collect()
}

/// Returns the output of the command line.
fn run_luc(harness: &Harness, recorded: &Recorded, command: &str) -> Result<Value, EvaluateError> {
    let mut words = ["fleet", command, "--json"].map(str::to_owned).to_vec();
    for (host, trace) in recorded.traces.iter().enumerate() {
        words.push(format!("guest{host}={}", trace.display()));
    }
    harness.json(&words)
}

/// Sums the messages from one guest to another.
fn sum_messages(said: &Value) -> Explained {
    let between = elements(&said["one_way"]).iter().filter(|way| way["from"] != way["to"]);
    between.fold(Explained::default(), |sum, way| {
        let count = |name: &str| way[name].as_u64().unwrap_or(0);
        Explained {
            messages: sum.messages + count("edges"),
            before_sent: sum.before_sent + count("before_sent"),
            without_a_time: sum.without_a_time + count("without_a_time"),
        }
    })
}

fn compare_way(
    recorded: &Recorded,
    on_home: &FirstHostClock<'_>,
    [home, other]: [usize; 2],
    place: usize,
) -> Result<Way, EvaluateError> {
    let (of_home, of_other) = (&recorded.clocks[home], &recorded.clocks[other]);
    let ahead = Ahead::of(&recorded.clocks, [home, other], recorded.pause.as_ref())?;
    let mut events = Events::default();
    let mut map = Map { least_stated_ns: f64::INFINITY, ..Map::default() };
    let (mut half_widths, mut errors, mut doubts) = (Vec::new(), Vec::new(), Vec::new());
    for reading in &of_other.readings {
        let (raw_ns, error_ns) = on_home.raw_ns(place, reading.monotonic_ns);
        let (least, most) = of_other.raw_of(reading);
        let off_ns = (least - raw_ns as f64).max(raw_ns as f64 - most).max(0.0);
        map.of += 1;
        map.within += usize::from(off_ns <= error_ns);
        map.worst_ns = map.worst_ns.max(off_ns);
        map.least_stated_ns = map.least_stated_ns.min(error_ns);
        map.most_stated_ns = map.most_stated_ns.max(error_ns);
        let counters = ahead.counters(reading.before, reading.after);
        let truth = counters.and_then(|(from, to)| of_home.monotonic_ns(from, to));
        let Some((least, most)) = truth else {
            events.unknown += 1;
            continue;
        };
        events.all += 1;
        let Some(placed) = on_home.place(place, reading.monotonic_ns) else {
            events.right += 1;
            events.unbounded += 1;
            continue;
        };
        let (low, high) = (placed.bounds.low_ns(), placed.bounds.high_ns());
        let is_right = low.is_none_or(|low| low <= least) && high.is_none_or(|high| most <= high);
        let is_wrong = low.is_some_and(|low| most < low) || high.is_some_and(|high| high < least);
        match (is_right, is_wrong) {
            (true, _) => events.right += 1,
            (false, true) => events.wrong += 1,
            (false, false) => events.in_doubt += 1,
        }
        events.unbounded += usize::from(low.is_none() || high.is_none());
        half_widths.extend(placed.bounds.half_width_ns());
        let middle = (least as f64 + most as f64) / 2.0;
        errors.extend(placed.at_ns.map(|at_ns| (at_ns as f64 - middle).abs()));
        doubts.push((most - least) as f64 / 2.0);
    }
    let rates = of_other.readings.iter().map(|reading| reading.rate_ppb);
    let changes = rates.clone().zip(rates.clone().skip(1)).filter(|(a, b)| a != b).count();
    Ok(Way {
        home,
        other,
        events,
        half_width_ns: Spread::of(half_widths),
        error_ns: Spread::of(errors),
        truth_ns: Spread::of(doubts),
        counters_ns: of_home.ns(ahead.error_ticks()),
        map,
        rates: changes + 1,
        rates_ppb: [rates.clone().min().unwrap_or(0), rates.max().unwrap_or(0)],
    })
}

fn pair(recorded: &Recorded, pair: &PairWithPackets, said: &Value) -> Result<Pair, EvaluateError> {
    let clocks = pair.hosts.map(|host| &recorded.clocks[host]);
    let ahead = Ahead::of(&recorded.clocks, pair.hosts, recorded.pause.as_ref())?;
    let line = |points: &PairPoints| {
        let line = one_line(points).ok()?;
        Some(inverted(points, |at_ns| Some(line.offset_ns(at_ns))))
    };
    let fit = pair.fit.as_ref();
    let jumps = &said["offset"]["jumps"];
    Ok(Pair {
        hosts: pair.hosts,
        packets: pair.raw.forward.len() + pair.raw.backward.len(),
        half_round_trip_ns: half_round_trip_ns(clocks, &ahead, &pair.raw),
        unbent_half_width_ns: unbent_half_width_ns(&pair.raw),
        inverted: fit.map(|fit| {
            // Beside a jump `luc fleet` does not say in which order events were.
            inverted(&pair.raw, |at_ns| {
                let known = fit.at(at_ns);
                let offset_ns = known.offset_ns.filter(|_| known.evidence != OffsetEvidence::Jump);
                offset_ns.map(|offset| offset as f64)
            })
        }),
        line_inverted: line(&pair.recorded),
        raw_line_inverted: line(&pair.raw),
        jumps: jumps.as_array().cloned().unwrap_or_default(),
        stopped_ns: clocks[0].ns(ahead.changed_ticks()),
        failure: said["failure"].as_str().map(str::to_owned),
    })
}

/// Returns half the sum of the minimum times of a packet there and of one back.
fn half_round_trip_ns([a, b]: [&Clocks; 2], ahead: &Ahead, points: &PairPoints) -> f64 {
    let least = |points: &[OffsetPoint], sign: f64| {
        let delays = points.iter().filter_map(|point| {
            let offset_ns = ahead.offset_ns(a, b, point.at_ns())?;
            Some(sign * (point.offset_ns() as f64 - offset_ns))
        });
        delays.fold(f64::INFINITY, f64::min)
    };
    (least(&points.forward, 1.0) + least(&points.backward, -1.0)) / 2.0
}

/// Returns half the distance of the bounds at the median packet, by a fit that these guests allow. Their crystal is
/// one, so all packets of the run bound each moment.
fn unbent_half_width_ns(points: &PairPoints) -> Option<f64> {
    let options = FitOptions {
        kappa_ns_per_s2: MIN_CURVATURE_NS_PER_S2,
        window_s: WHOLE_RUN_WINDOW_S,
        ..FitOptions::default()
    };
    let unbent = fit(points, &options).ok()?;
    let of_packets = points.forward.iter().chain(&points.backward);
    let widths = of_packets.filter_map(|point| unbent.at(point.at_ns()).bounds.half_width_ns());
    Some(Spread::of(widths.collect()).p50)
}
