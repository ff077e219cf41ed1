//! Predicts whether batching would help, by a closed-loop model of the gate that is fed from the trace.
//!
//! N callers go round: processor work, other waits (thinking), writing their data, joining the round, sharing one
//! commit. The gate releases a round when the callers that it waits for have come. It does so, too, when they are
//! half a commit later than usual. The model's inputs are measured:
//!
//! - the commit's duration as a function of the fsyncs that it serves,
//! - each caller's thinking: waits between two fsyncs other than for the journal,
//! - the processor time of one round trip,
//! - the device's time to write data when no flush is in its way: under the gate data is written between commits, and
//!   callers take turns.
//!
//! Waits for the journal outside of the commit are left out, because shared commits remove them.
//!
//! Thinking times are drawn from the trace in a fixed sequence: the same trace gives the same answer. As the gate's
//! controller does, the model takes the best of a few numbers of callers to wait for. The gain is the model's
//! throughput over the measured one.

use serde::Serialize;

use crate::line_fit::LineFit;

/// Time that the gate waits for a late round, in commits; as in `control::auto`.
const LATE_ROUND_COMMITS: f64 = 0.5;
/// Weight of the last round in the expected time until a round is full.
const EXPECTED_TIME_WEIGHT: f64 = 1.0 / 8.0;
/// Maximum number of sampled thinking times.
const MAX_THINKING_SAMPLES: usize = 4_096;
/// Number of simulated rounds.
const SIMULATED_ROUNDS: usize = 400;
/// Minimum gain that is worth a gate.
const MIN_GAIN: f64 = 0.05;

/// Sums over the calls of the threads that call fsync on one file system.
#[derive(Debug, Default)]
pub(crate) struct FsyncCallerSums {
    thinking_ns: Vec<f64>,
    seen: u64,
    cycles: f64,
    cycle_cpu_ns: f64,
    syncs: f64,
    with_data: f64,
    data_ns: f64,
    overhead_ns: f64,
}

impl FsyncCallerSums {
    /// Adds a round trip, from the end of an fsync to the end of the thread's next. `thinking_ns` are waits for other
    /// things than the journal.
    pub(crate) fn cycle(&mut self, thinking_ns: u64, cpu_ns: u64) {
        self.seen += 1;
        if self.thinking_ns.len() < MAX_THINKING_SAMPLES {
            self.thinking_ns.push(thinking_ns as f64);
        } else {
            // Every later one replaces an older one at a scattered place, ever more rarely.
            let slot = scatter(self.seen) % self.seen;
            if let Some(old) = self.thinking_ns.get_mut(slot as usize) {
                *old = thinking_ns as f64;
            }
        }
        self.cycles += 1.0;
        self.cycle_cpu_ns += cpu_ns as f64;
    }

    /// Adds an fsync: the time of its data, and the time to be woken and to run, without its commit.
    pub(crate) fn sync(&mut self, data_ns: u64, overhead_ns: u64) {
        self.syncs += 1.0;
        self.with_data += f64::from(u8::from(data_ns > 0));
        self.data_ns += data_ns as f64;
        self.overhead_ns += overhead_ns as f64;
    }
}

/// The model's other inputs.
#[derive(Debug)]
pub(crate) struct BatchingInputs<'a> {
    /// Mean number of callers at a time.
    pub(crate) concurrent: f64,
    pub(crate) processors: u32,
    pub(crate) measured_per_s: f64,
    /// Device time per write, in nanoseconds, without flushes; `None` if unknown.
    pub(crate) write_ns: Option<f64>,
    /// Duration of the full commits that served fsyncs, by the number of fsyncs.
    pub(crate) commits: &'a LineFit,
    /// Whether most fsyncs used fast commits.
    pub(crate) fast_commit: bool,
}

/// Predicted effect of batching on one file system's fsyncs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct BatchingPrediction {
    /// Whether the gate is worth it: it should gain at least 5 %.
    pub would_help: bool,
    /// fsyncs per second as measured.
    pub measured_per_s: f64,
    /// Predicted fsyncs per second under the gate. Without a gain the measured ones: the gate then steps aside.
    pub predicted_per_s: f64,
    /// Predicted over measured, minus 1.
    pub gain: f64,
    /// Mean number of callers at a time.
    pub callers: u64,
    /// Number of callers that the best round waits for.
    pub wait_for: u64,
    /// Duration of a commit that serves all callers, in nanoseconds.
    pub commit_ns: f64,
    /// Mean thinking time between two fsyncs, in nanoseconds.
    pub thinking_ns: f64,
    /// Processor time of one round trip, in nanoseconds.
    pub cpu_ns: f64,
    /// Measured time to write the data of one fsync, in nanoseconds.
    pub data_ns: f64,
    /// Predicted time to write that data when no commit's flush is in its way.
    pub write_ns: f64,
    /// The reason why there is no prediction.
    pub unknown: Option<&'static str>,
}

/// Predicts the gate's gain.
pub(crate) fn predict(
    callers: &FsyncCallerSums,
    situation: &BatchingInputs<'_>,
) -> BatchingPrediction {
    let count = situation.concurrent.round().max(0.0);
    let mut answer = BatchingPrediction {
        measured_per_s: situation.measured_per_s,
        predicted_per_s: situation.measured_per_s,
        callers: count as u64,
        ..BatchingPrediction::default()
    };
    answer.unknown = if callers.thinking_ns.is_empty() || situation.measured_per_s <= 0.0 {
        Some("no thread called fsync twice")
    } else if situation.fast_commit {
        Some("fast commits batch by themselves")
    } else if situation.commits.mean_y() <= 0.0 {
        Some("no full commit served an fsync")
    } else {
        None
    };
    answer.thinking_ns = mean(&callers.thinking_ns);
    answer.cpu_ns = callers.cycle_cpu_ns / callers.cycles.max(1.0);
    answer.data_ns = callers.data_ns / callers.syncs.max(1.0);
    let with_data = callers.with_data / callers.syncs.max(1.0);
    answer.write_ns = situation.write_ns.map_or(answer.data_ns, |write_ns| write_ns * with_data);
    if answer.unknown.is_some() || count < 2.0 {
        return answer;
    }
    answer.commit_ns = situation.commits.at(count).max(1.0);
    let world = ClosedLoop {
        callers: count as usize,
        processors: situation.processors.max(1) as usize,
        cpu_ns: answer.cpu_ns,
        alone_ns: if situation.write_ns.is_some() { 0.0 } else { answer.data_ns },
        write_ns: situation.write_ns.map_or(0.0, |_| answer.write_ns),
        overhead_ns: callers.overhead_ns / callers.syncs.max(1.0),
        commits: situation.commits,
        thinking_ns: &callers.thinking_ns,
    };
    let mut best = (situation.measured_per_s, 0);
    for eighths in 2..=8 {
        let wait_for = (world.callers * eighths).div_ceil(8).max(2).min(world.callers);
        let per_s = world.play(wait_for);
        if per_s > best.0 {
            best = (per_s, wait_for);
        }
    }
    answer.predicted_per_s = best.0;
    answer.wait_for = best.1 as u64;
    answer.gain = best.0 / situation.measured_per_s - 1.0;
    answer.would_help = answer.gain >= MIN_GAIN;
    answer
}

/// The simulated callers, which share rounds.
struct ClosedLoop<'a> {
    callers: usize,
    processors: usize,
    cpu_ns: f64,
    /// Data time of each caller by itself.
    alone_ns: f64,
    /// Data time of a caller at the device, where callers queue.
    write_ns: f64,
    overhead_ns: f64,
    commits: &'a LineFit,
    thinking_ns: &'a [f64],
}

impl ClosedLoop<'_> {
    /// Returns the fsyncs per second when a round waits for `wait_for` callers.
    fn play(&self, wait_for: usize) -> f64 {
        let mut draws = 0;
        let mut arrivals = vec![0.0; self.callers];
        let (mut now_ns, mut served, mut usual_ns) = (0.0_f64, 0.0, 0.0);
        for _ in 0..SIMULATED_ROUNDS {
            arrivals.sort_by(f64::total_cmp);
            let opened_ns = now_ns.max(arrivals[0]);
            let full_ns = now_ns.max(arrivals[wait_for - 1]);
            let patience_ns = LATE_ROUND_COMMITS * self.commits.at(wait_for as f64).max(1.0);
            let release_ns = full_ns.min(opened_ns + usual_ns + patience_ns);
            usual_ns += EXPECTED_TIME_WEIGHT * (full_ns - opened_ns - usual_ns);
            let members = arrivals.partition_point(|&at| at <= release_ns).max(1);
            now_ns = release_ns + self.commits.at(members as f64).max(1.0) + self.overhead_ns;
            served += members as f64;
            // Released together, they share the processors; then each thinks and writes its data.
            for (place, arrival) in arrivals[..members].iter_mut().enumerate() {
                let turn = (place / self.processors + 1) as f64;
                draws += 1;
                let sample = scatter(draws) % self.thinking_ns.len() as u64;
                let thinking_ns = self.thinking_ns[sample as usize];
                *arrival = now_ns + turn * self.cpu_ns + thinking_ns + self.alone_ns;
            }
            arrivals[..members].sort_by(f64::total_cmp);
            let mut device_ns = now_ns;
            for arrival in &mut arrivals[..members] {
                device_ns = arrival.max(device_ns) + self.write_ns;
                *arrival = device_ns;
            }
        }
        served / now_ns.max(1.0) * 1e9
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Returns a number of a fixed sequence without pattern (splitmix64).
fn scatter(number: u64) -> u64 {
    let mut mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Commits of 12 ms for any number of fsyncs.
    fn commits() -> LineFit {
        let mut fit = LineFit::default();
        for served in 0..20 {
            fit.add(f64::from(served), 12e6);
        }
        fit
    }

    fn answer(
        concurrent: f64,
        measured_per_s: f64,
        thinking_ns: u64,
        cpu_ns: u64,
    ) -> BatchingPrediction {
        let mut callers = FsyncCallerSums::default();
        for _ in 0..100 {
            callers.cycle(thinking_ns, cpu_ns);
            callers.sync(0, 0);
        }
        let commits = commits();
        let situation = BatchingInputs {
            concurrent,
            processors: 2,
            measured_per_s,
            write_ns: None,
            commits: &commits,
            fast_commit: false,
        };
        predict(&callers, &situation)
    }

    #[test]
    fn two_alternating_groups_are_worth_a_gate() {
        // 4 callers, 2 per commit of 12 ms: 167 per second; all per commit: 333.
        let answer = answer(4.0, 167.0, 0, 10_000);
        assert!(answer.would_help, "{answer:?}");
        assert!((330.0..334.0).contains(&answer.predicted_per_s), "{answer:?}");
    }

    #[test]
    fn a_lone_caller_gains_nothing() {
        let answer = answer(1.0, 83.0, 0, 10_000);
        assert!(!answer.would_help && answer.gain == 0.0, "{answer:?}");
    }

    #[test]
    fn callers_who_think_for_long_gain_little() {
        // Each thinks 120 ms: in a round of two, the first would be held for most of that.
        let answer = answer(2.0, 2.0 / 0.140, 120_000_000, 10_000);
        assert!(answer.gain < 0.2, "{answer:?}");
    }
}
