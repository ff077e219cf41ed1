//! Two hosts: the fit, one line, and one offset for all of the time, compared with the truth.

use luc_fleet_clocks::{ClockError, FitOptions, OffsetPoint, PairFit, PairPoints, fit, one_line};
use luc_stats::seeded_random;
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

use super::clock::Clock;
use super::network::{Delays, Ways, record, thinned};
use super::ntp_slewed_clock::NtpSlewedClock;

/// Number of events looked at in each run.
const EVENTS: usize = 40_000;

/// A scenario of two hosts.
#[derive(Clone, Copy)]
pub(super) struct PairScenario {
    pub(super) name: &'static str,
    pub(super) seconds: f64,
    /// Messages in a second, each way.
    pub(super) per_s: f64,
    pub(super) kappa_ns_per_s2: f64,
    pub(super) is_loaded: bool,
    /// Whether times are of CLOCK_MONOTONIC and are mapped.
    pub(super) is_slewed: bool,
}

impl PairScenario {
    pub(super) fn ways(self) -> Ways {
        let delays = |least, queue, slow_share, slow| Delays { least, queue, slow_share, slow };
        if self.is_loaded {
            return Ways {
                there: delays(12e3, 8e3, 0.2, 40e3),
                back: delays(14e3, 10e3, 0.4, 60e3),
            };
        }
        Ways { there: delays(12e3, 5e3, 0.1, 10e3), back: delays(14e3, 6e3, 0.2, 15e3) }
    }
}

#[derive(Serialize)]
pub(super) struct PairRun {
    pub(super) messages: usize,
    pub(super) kept_messages: usize,
    /// Processor time of the fit to all messages, not only those kept, ms.
    pub(super) fit_ms: f64,
    pub(super) inside: usize,
    pub(super) events: usize,
    pub(super) jumps: usize,
    /// Share of the messages that arrive before they are sent.
    pub(super) inverted_share: f64,
    pub(super) line_inverted_share: f64,
    pub(super) line_is_separating: bool,
    /// Figures of each event, ns, in ascending order: errors less half the asymmetry, errors with it, and half-widths.
    #[serde(skip)]
    pub(super) extra: Vec<f64>,
    #[serde(skip)]
    pub(super) whole: Vec<f64>,
    #[serde(skip)]
    pub(super) half_widths: Vec<f64>,
    #[serde(skip)]
    pub(super) line_extra: Vec<f64>,
    #[serde(skip)]
    pub(super) line_whole: Vec<f64>,
    /// Errors of one offset that is right at the begin, and of the best possible one.
    #[serde(skip)]
    pub(super) first_offset_whole: Vec<f64>,
    #[serde(skip)]
    pub(super) best_offset_whole: Vec<f64>,
    /// Share of the messages that arrive before they are sent, by these offsets.
    pub(super) first_offset_inverted_share: f64,
    pub(super) best_offset_inverted_share: f64,
}

pub(super) fn run(row: PairScenario, seed: u64) -> Result<PairRun, ClockError> {
    let mut random = seeded_random::stream(seed, 0);
    let a = Clock::new(&mut random, row.seconds, 0.0);
    let b = Clock::new(&mut random, row.seconds, 30_000.0);
    let extent = (row.seconds, row.per_s);
    let options = FitOptions {
        kappa_ns_per_s2: row.kappa_ns_per_s2,
        // A clock that is read shows whole ns.
        timestamp_error_ns: 1.0,
        ..FitOptions::default()
    };
    if !row.is_slewed {
        let read: [&dyn Fn(f64) -> i64; 2] = [&|at| a.read(at), &|at| b.read(at)];
        let points = record(&mut random, extent, row.ways(), read)?;
        return judge(row, (&a, &b), &points, options, &mut random);
    }
    let on_a = NtpSlewedClock::new(&a, &mut random, row.seconds)?;
    let on_b = NtpSlewedClock::new(&b, &mut random, row.seconds)?;
    let read: [&dyn Fn(f64) -> i64; 2] = [&|at| on_a.mapped(at), &|at| on_b.mapped(at)];
    let points = record(&mut random, extent, row.ways(), read)?;
    let options = FitOptions {
        timestamp_error_ns: 1.0 + on_a.map.error_ns() + on_b.map.error_ns(),
        ..options
    };
    judge(row, (&a, &b), &points, options, &mut random)
}

fn judge(
    row: PairScenario,
    (a, b): (&Clock, &Clock),
    points: &PairPoints,
    options: FitOptions,
    random: &mut ChaCha8Rng,
) -> Result<PairRun, ClockError> {
    let kept = thinned(points);
    let fitted = fit(&kept, &options)?;
    let before = processor_ms();
    fit(points, &options)?;
    let fit_ms = processor_ms() - before;
    let line = one_line(points)?;
    let (origin, hidden) = (a.origin_until(b), row.ways().half_asymmetry());
    let mut found = PairRun {
        messages: points.forward.len() + points.backward.len(),
        kept_messages: kept.forward.len() + kept.backward.len(),
        fit_ms,
        inside: 0,
        events: EVENTS,
        jumps: fitted.jumps().len(),
        inverted_share: inverted(points, |at_ns| offset(&fitted, at_ns)),
        line_inverted_share: inverted(points, |at_ns| Some(line.offset_ns(at_ns))),
        line_is_separating: line.is_separating,
        extra: Vec::with_capacity(EVENTS),
        whole: Vec::with_capacity(EVENTS),
        half_widths: Vec::with_capacity(EVENTS),
        line_extra: Vec::with_capacity(EVENTS),
        line_whole: Vec::with_capacity(EVENTS),
        first_offset_whole: Vec::with_capacity(EVENTS),
        best_offset_whole: Vec::with_capacity(EVENTS),
        first_offset_inverted_share: 0.0,
        best_offset_inverted_share: 0.0,
    };
    let mut truths = Vec::with_capacity(EVENTS);
    for _ in 0..EVENTS {
        let at = random.random_range(0.0..row.seconds * 1e9);
        let (on_a, truth) = (a.read(at), a.until(b, at));
        let known = fitted.at(on_a);
        // A shows whole ns, and the truth is between two.
        let ends = [truth.floor(), truth.ceil()].map(|truth| origin + truth as i64);
        found.inside += usize::from(ends.into_iter().any(|truth| known.bounds.contains(truth)));
        let wrong =
            known.offset_ns.map_or(f64::INFINITY, |offset| (offset - origin) as f64 - truth);
        let line_wrong = line.offset_ns(on_a) - origin as f64 - truth;
        // The middle of both ways is off by half their difference.
        found.extra.push((wrong - hidden).abs());
        found.whole.push(wrong.abs());
        found.line_extra.push((line_wrong - hidden).abs());
        found.line_whole.push(line_wrong.abs());
        let half_width = known.bounds.half_width_ns();
        found.half_widths.push(half_width.unwrap_or(f64::INFINITY));
        truths.push(origin as f64 + truth);
    }
    let first = first_offset(points);
    let best = middle(truths.iter().copied());
    let errors = |offset: f64| truths.iter().map(move |truth| (offset - truth).abs());
    found.first_offset_whole.extend(errors(first));
    found.best_offset_whole.extend(errors(best));
    found.first_offset_inverted_share = inverted(points, |_| Some(first));
    found.best_offset_inverted_share = inverted(points, |_| Some(best));
    for figures in [
        &mut found.extra,
        &mut found.whole,
        &mut found.half_widths,
        &mut found.line_extra,
        &mut found.line_whole,
        &mut found.first_offset_whole,
        &mut found.best_offset_whole,
    ] {
        figures.sort_unstable_by(f64::total_cmp);
    }
    Ok(found)
}

/// Returns the offset by the fastest messages of the first second.
fn first_offset(points: &PairPoints) -> f64 {
    let all = || points.forward.iter().chain(&points.backward);
    let end_ns = all().map(|point| point.at_ns()).min().unwrap_or(0) + 1_000_000_000;
    let early = |point: &&OffsetPoint| point.at_ns() <= end_ns;
    let above = points.forward.iter().filter(early);
    let below = points.backward.iter().filter(early);
    let above = above.map(|point| point.offset_ns() as f64);
    let below = below.map(|point| point.offset_ns() as f64);
    f64::midpoint(above.fold(f64::INFINITY, f64::min), below.fold(f64::NEG_INFINITY, f64::max))
}

/// Returns the middle between the minimum and the maximum.
fn middle(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let least = values.clone().fold(f64::INFINITY, f64::min);
    f64::midpoint(least, values.fold(f64::NEG_INFINITY, f64::max))
}

fn offset(fitted: &PairFit, at_ns: i64) -> Option<f64> {
    fitted.at(at_ns).offset_ns.map(|offset| offset as f64)
}

/// Returns the share of messages that arrive before they are sent, by these offsets.
pub(crate) fn inverted(points: &PairPoints, offset: impl Fn(i64) -> Option<f64>) -> f64 {
    let forward = points.forward.iter().filter(|point| {
        offset(point.at_ns()).is_some_and(|offset| offset > point.offset_ns() as f64)
    });
    let backward = points.backward.iter().filter(|point| {
        offset(point.at_ns()).is_some_and(|offset| offset < point.offset_ns() as f64)
    });
    let all = points.forward.len() + points.backward.len();
    (forward.count() + backward.count()) as f64 / all as f64
}

/// Processor time of this thread, ms, since others use the processors as well.
fn processor_ms() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 * 1e-6
}
