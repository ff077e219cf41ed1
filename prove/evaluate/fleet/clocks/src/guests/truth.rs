//! The true relation of the guests' clocks, by their processors' counters, which the host's counter drives.
//!
//! A guest's counter is the host's plus a constant, so the counters of two guests differ by a constant. It is bounded
//! by each guest's readings of the other's counter in their common memory: nobody reads a value before it was written.
//! No packet takes part.

use luc_harness::error::EvaluateError;
use luc_harness::harness::missing;
use luc_vm::GuestOutcome;

/// Maximum change of the difference of two guests' counters in a run. On some hosts it changes, likely because QEMU
/// advances a counter that would go back (`cpu_get_ticks`).
const MAX_DRIFT_NS: f64 = 10_000.0;

/// Bytes of a reading and of a comparison, in the format of `inside.c`.
const READING_BYTES: usize = 56;
const COMPARISON_BYTES: usize = 40;
/// Maximum error of a rate between readings, since the kernel rounds frequencies, ns per ns.
const MAX_RATE_ERROR: f64 = 1e-6;
/// Time by which a processor may read its counter early or late, ns.
const MAX_EARLY_NS: f64 = 50.0;

/// A guest's clocks at one time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading {
    /// Counter before CLOCK_MONOTONIC was read.
    pub(super) before: u64,
    pub(super) monotonic_ns: i64,
    pub(super) after: u64,
    raw_before: u64,
    raw_ns: i64,
    raw_after: u64,
    /// Rate by which adjtimex makes CLOCK_MONOTONIC faster.
    pub(super) rate_ppb: i64,
}

/// Comparison of a guest's counter with another's during some time of its own.
#[derive(Debug, Clone, Copy)]
struct Compared {
    begin: u64,
    end: u64,
    peer: usize,
    /// Minimum difference of its counter from its readings of the other's; `None` if it read nothing new.
    least: Option<i64>,
}

/// A guest's clocks in a run.
#[derive(Debug, Clone)]
pub(super) struct Clocks {
    pub(super) readings: Vec<Reading>,
    compared: Vec<Compared>,
    /// CLOCK_MONOTONIC_RAW in one tick of the counter, ns.
    raw_ns_per_tick: f64,
}

impl Clocks {
    /// Reads the clocks in a guest's results.
    pub(super) fn of(outcome: &GuestOutcome) -> Result<Self, EvaluateError> {
        let words = |name: &str, row: usize| -> Result<Vec<u64>, EvaluateError> {
            let bytes = outcome.files.get(name);
            let bytes = bytes.filter(|bytes| bytes.len().is_multiple_of(row));
            let bytes = bytes.ok_or_else(|| EvaluateError::Command {
                command: "inside".to_owned(),
                how: format!("no file {name} came out of the guest"),
                said: outcome.text(),
            })?;
            let words = bytes.chunks_exact(8).map(|word| word.try_into().map(u64::from_le_bytes));
            words.collect::<Result<_, _>>().map_err(|_| missing(name))
        };
        let readings: Vec<Reading> = words("clocks", READING_BYTES)?
            .chunks_exact(READING_BYTES / 8)
            .map(|row| Reading {
                before: row[0],
                monotonic_ns: row[1] as i64,
                after: row[2],
                raw_before: row[3],
                raw_ns: row[4] as i64,
                raw_after: row[5],
                rate_ppb: row[6] as i64,
            })
            .collect();
        let compared = words("counters", COMPARISON_BYTES)?
            .chunks_exact(COMPARISON_BYTES / 8)
            .map(|row| Compared {
                begin: row[0],
                end: row[1],
                peer: row[2] as usize,
                least: (row[3] > 0).then_some(row[4] as i64),
            })
            .collect();
        let raw_ns_per_tick = slope(&readings).ok_or_else(|| missing("a guest's clocks"))?;
        Ok(Self { readings, compared, raw_ns_per_tick })
    }

    /// Ticks that may be missing between an instruction and the counter, and back.
    fn early_ticks(&self) -> i64 {
        (MAX_EARLY_NS / self.raw_ns_per_tick).ceil() as i64
    }

    pub(super) fn ns(&self, ticks: f64) -> f64 {
        ticks * self.raw_ns_per_tick
    }

    /// Returns the bounds of CLOCK_MONOTONIC at some time between two values of the counter.
    pub(super) fn monotonic_ns(&self, from: u64, to: u64) -> Option<(i64, i64)> {
        // A clock was read not later than its counter after it.
        let (at, last, next) = self.around(from, |reading| reading.after)?;
        let (slowest, fastest) = self.rates(at);
        let gained = (next.monotonic_ns - last.monotonic_ns) as f64;
        let least = (slowest * (from - last.after) as f64)
            .max(gained - fastest * (next.after - from) as f64);
        let low = last.monotonic_ns + least.floor() as i64;
        // Nor earlier than the one before it.
        let (at, last, next) = self.around(to, |reading| reading.before)?;
        let (slowest, fastest) = self.rates(at);
        let gained = (next.monotonic_ns - last.monotonic_ns) as f64;
        let most =
            (fastest * (to - last.before) as f64).min(gained - slowest * (next.before - to) as f64);
        Some((low, last.monotonic_ns + most.ceil() as i64))
    }

    /// Returns the bounds of CLOCK_MONOTONIC_RAW when CLOCK_MONOTONIC was read.
    pub(super) fn raw_of(&self, reading: &Reading) -> (f64, f64) {
        let since = |from: u64, to: u64| self.ns(to as f64 - from as f64);
        let raw_ns = reading.raw_ns as f64;
        (
            raw_ns - since(reading.before, reading.raw_after) - 1.0,
            raw_ns - since(reading.after, reading.raw_before) + 1.0,
        )
    }

    /// Returns the readings around a value of the counter, and the index of the first.
    fn around(&self, at: u64, counter: fn(&Reading) -> u64) -> Option<(usize, Reading, Reading)> {
        let next = self.readings.partition_point(|reading| counter(reading) <= at);
        let last = next.checked_sub(1)?;
        Some((last, self.readings[last], *self.readings.get(next)?))
    }

    /// Returns the minimum and the maximum rate between a reading and the next, ns a tick. The rate was read after each
    /// clock, so the reading before may have the rate that still held.
    fn rates(&self, at: usize) -> (f64, f64) {
        let near = &self.readings[at.saturating_sub(1)..(at + 2).min(self.readings.len())];
        let rates = near.iter().map(|reading| reading.rate_ppb);
        let rate = |ppb: Option<i64>, error: f64| {
            self.raw_ns_per_tick * (1.0 + ppb.unwrap_or(0) as f64 * 1e-9 + error)
        };
        (rate(rates.clone().min(), -MAX_RATE_ERROR), rate(rates.max(), MAX_RATE_ERROR))
    }

    /// Returns CLOCK_MONOTONIC_RAW at a value of the counter, approximately.
    fn raw_ns(&self, counter: f64) -> f64 {
        let first = &self.readings[0];
        first.raw_ns as f64 + (counter - middle(first)) * self.raw_ns_per_tick
    }

    /// Returns the counter at a time of CLOCK_MONOTONIC_RAW, approximately.
    fn counter(&self, raw_ns: i64) -> f64 {
        let first = &self.readings[0];
        middle(first) + (raw_ns - first.raw_ns) as f64 / self.raw_ns_per_tick
    }
}

/// Returns the slope of CLOCK_MONOTONIC_RAW, which is a straight line of the counter.
fn slope(readings: &[Reading]) -> Option<f64> {
    let narrowest = |part: &[Reading]| {
        let width = |reading: &&Reading| reading.raw_after - reading.raw_before;
        part.iter().min_by_key(width).copied()
    };
    let tenth = readings.len() / 10;
    let first = narrowest(readings.get(..tenth)?)?;
    let last = narrowest(readings.get(readings.len() - tenth..)?)?;
    let ticks = middle(&last) - middle(&first);
    let slope = (last.raw_ns - first.raw_ns) as f64 / ticks;
    (slope.is_finite() && slope > 0.0).then_some(slope)
}

fn middle(reading: &Reading) -> f64 {
    // Counters are below 2^53.
    f64::midpoint(reading.raw_before as f64, reading.raw_after as f64)
}

/// A pause of a guest, with each host's counter before it and after it.
#[derive(Debug, Clone)]
pub(super) struct Pause {
    pub(super) host: usize,
    /// Bounds of its counter while it was stopped.
    pub(super) stopped: [u64; 2],
    pub(super) before: Vec<u64>,
    pub(super) after: Vec<u64>,
}

/// Lead of one guest's counter, home's, over another's: a constant, or one before a pause and one after it.
#[derive(Debug, Clone)]
pub(super) struct Ahead {
    parts: Vec<TruthPart>,
    stopped: Option<Stopped>,
}

#[derive(Debug, Clone, Copy)]
struct TruthPart {
    /// Counters of the other host for which the part holds.
    from: u64,
    to: u64,
    /// Bounds of the lead.
    low: i64,
    high: i64,
}

/// The host of the two that was stopped.
#[derive(Debug, Clone, Copy)]
struct Stopped {
    is_home: bool,
    /// Bounds of its counter while it was stopped.
    from: u64,
    to: u64,
}

impl Ahead {
    /// Computes the lead for hosts of these indexes.
    pub(super) fn of(
        clocks: &[Clocks],
        [home, other]: [usize; 2],
        pause: Option<&Pause>,
    ) -> Result<Self, EvaluateError> {
        let (first, last) = (vec![0; clocks.len()], vec![u64::MAX; clocks.len()]);
        let times = match pause {
            None => vec![(first, last)],
            Some(pause) => vec![(first, pause.before.clone()), (pause.after.clone(), last)],
        };
        let parts = times.into_iter().map(|(from, to)| {
            let leasts = |host: usize, peer: usize| -> Vec<i64> {
                let rows = clocks[host].compared.iter().filter(|row| {
                    row.peer == peer && row.begin >= from[host] && row.end <= to[host]
                });
                rows.filter_map(|row| row.least).collect()
            };
            let (there, back) = (leasts(home, other), leasts(other, home));
            let (mut high, mut low) = (*there.iter().min()?, back.iter().min()?.checked_neg()?);
            // A value that is read was written before.
            let early = clocks[home].early_ticks();
            let gap = low.checked_sub(high)?.checked_sub(early.checked_mul(2)?)?;
            if gap > 0 && clocks[home].ns(gap as f64) <= MAX_DRIFT_NS {
                // It went from one to the other. Either may be off by what the quickest comparison took, which is
                // taken to be less than the change.
                (high, low) = (low.checked_add(gap)?, high.checked_sub(gap)?);
            }
            let (low, high) = (low.checked_sub(early)?, high.checked_add(early)?);
            (low <= high).then_some(TruthPart { from: from[other], to: to[other], low, high })
        });
        let parts: Option<Vec<TruthPart>> = parts.collect();
        let parts =
            parts.ok_or_else(|| missing("a constant difference of two guests' counters"))?;
        let stopped = pause.filter(|pause| [home, other].contains(&pause.host));
        Ok(Self {
            parts,
            stopped: stopped.map(|pause| Stopped {
                is_home: pause.host == home,
                from: pause.stopped[0],
                to: pause.stopped[1],
            }),
        })
    }

    /// Returns the bounds of home's counter at some time when the other's was between `from` and `to`.
    pub(super) fn counters(&self, from: u64, to: u64) -> Option<(u64, u64)> {
        let (first, last) = (self.parts.first()?, self.parts.last()?);
        let add = |counter: u64, ahead: i64| counter.checked_add_signed(ahead);
        match self.stopped {
            // Home's counter stood still until the other's had gained what there is between both constants.
            Some(stopped) if stopped.is_home => Some((
                add(from, last.low)?.max(add(from, first.low)?.min(stopped.from)),
                add(to, first.high)?.min(add(to, last.high)?.max(stopped.to)),
            )),
            Some(stopped) if to <= stopped.from => {
                Some((add(from, first.low)?, add(to, first.high)?))
            }
            Some(stopped) if from < stopped.to => {
                Some((add(from, first.low)?, add(to, last.high)?))
            }
            _ => Some((add(from, last.low)?, add(to, last.high)?)),
        }
    }

    /// Maximum distance of the truth from the middle of the bounds, ticks: the worst part's.
    pub(super) fn error_ticks(&self) -> f64 {
        let widths = self.parts.iter().map(|part| (part.high - part.low) as f64 / 2.0);
        widths.fold(0.0, f64::max)
    }

    /// Change of home's lead by the pause, ticks.
    pub(super) fn changed_ticks(&self) -> f64 {
        match self.parts[..] {
            [first, last] => (last.low + last.high - first.low - first.high) as f64 / 2.0,
            _ => 0.0,
        }
    }

    /// Returns the other's CLOCK_MONOTONIC_RAW less home's at a time of home's, approximately; `None` around a pause.
    pub(super) fn offset_ns(&self, home: &Clocks, other: &Clocks, home_raw_ns: i64) -> Option<f64> {
        let counter = home.counter(home_raw_ns);
        let counters = self.parts.iter().map(|part| {
            let ahead = (part.low as f64 + part.high as f64) / 2.0;
            (part, counter - ahead)
        });
        let mut counters = counters
            .filter(|(part, counter)| (part.from as f64..=part.to as f64).contains(counter));
        let (_, counter) = counters.next()?;
        Some(other.raw_ns(counter) - home_raw_ns as f64)
    }
}
