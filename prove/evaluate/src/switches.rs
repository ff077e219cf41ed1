//! A program that does nothing but switch: pairs of threads that pass a byte through two pipes.
//!
//! Both threads of a pair have the same processor. So each passing is a context switch, and the processor is never
//! idle.

use std::hint::black_box;
use std::io::{PipeReader, PipeWriter, Read as _, Write as _, pipe};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use luc_host::interrupt;
use luc_host::usage::Usage;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::Serialize;

use crate::error::EvaluateError;
use crate::harness::missing;

const CALIBRATION_TIME: Duration = Duration::from_millis(300);
/// Number of calibrating runs. Each brings the rate closer.
const CALIBRATIONS: usize = 5;
/// Interval at which signals are checked.
const SIGNAL_POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Options of `luc-evaluate switches`.
#[derive(Debug, Clone, clap::Args)]
pub struct Orders {
    /// Pairs of threads; the processors are dealt out to them in turn
    #[arg(long, default_value_t = 1)]
    pub pairs: usize,
    /// Steps of computing between two switches of a thread
    #[arg(long, default_value_t = 0)]
    pub work: u64,
    /// Duration in seconds
    #[arg(long, default_value_t = 3.0)]
    pub seconds: f64,
    /// Duration of the warm-up before that, which is not counted, in seconds
    #[arg(long, default_value_t = 0.0)]
    pub warmup: f64,
    /// Find the work that makes this many switches a second, and print that too
    #[arg(long, value_name = "RATE")]
    pub calibrate: Option<f64>,
}

#[derive(Debug, Clone, Copy, Serialize)]
pub struct Done {
    /// Steps of computing between two switches of a thread.
    pub work: u64,
    /// Round trips of the byte per second, of all pairs.
    pub rounds_per_s: f64,
    /// Round trips per second of this process' processor time, which other work on the machine hardly affects.
    pub rounds_per_processor_s: f64,
    /// Context switches of all threads per second, by the kernel's count.
    pub switches_per_s: f64,
}

/// Runs the pairs of threads, and measures.
///
/// # Errors
/// [`EvaluateError`]: there is no pipe, thread or processor to be had.
pub fn run(orders: &Orders) -> Result<Done, EvaluateError> {
    let mut work = orders.work;
    if let Some(wanted) = orders.calibrate {
        work = calibrate(orders.pairs, wanted)?;
    }
    let length = |seconds: f64| Duration::from_secs_f64(seconds.clamp(0.0, 3600.0));
    switch(orders.pairs, work, length(orders.warmup), length(orders.seconds))
}

/// Finds the work with which `pairs` make `wanted` switches a second.
fn calibrate(pairs: usize, wanted: f64) -> Result<u64, EvaluateError> {
    // Time per switch = idle + step * work: two points give both, and each further run corrects.
    let run = |work| switch(pairs, work, Duration::ZERO, CALIBRATION_TIME);
    let ns = |work| run(work).map(|done| 1e9 / done.switches_per_s.max(1.0));
    let idle = ns(0)?;
    let mut work = 1_000;
    for _ in 0..CALIBRATIONS {
        let step = (ns(work)? - idle).max(1e-3) / work as f64;
        work = (((1e9 / wanted - idle) / step).round() as i64).max(1).unsigned_abs();
    }
    Ok(work)
}

/// Round trips of one pair. Each is aligned, so that pairs do not slow down each other.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Rounds(AtomicU64);

fn switch(
    pairs: usize,
    work: u64,
    warmup: Duration,
    length: Duration,
) -> Result<Done, EvaluateError> {
    let processors = processors()?;
    let over = AtomicBool::new(false);
    let rounds: Vec<Rounds> = (0..pairs).map(|_| Rounds::default()).collect();
    let counts = || {
        let all = rounds.iter().map(|pair| pair.0.load(Ordering::Relaxed));
        (all.sum::<u64>(), Usage::of_this_process())
    };
    let (before, after, seconds) = thread::scope(|scope| -> Result<_, EvaluateError> {
        let mut workers = Vec::new();
        for (pair, rounds) in rounds.iter().enumerate() {
            let processor = processors[pair % processors.len()];
            let ((there, to), (here, back)) = pipe()
                .and_then(|first| Ok((first, pipe()?)))
                .map_err(EvaluateError::file("make", "a pipe"))?;
            let over = &over;
            workers.push(scope.spawn(move || echo(processor, work, there, back)));
            workers.push(scope.spawn(move || call(processor, work, to, here, rounds, over)));
        }
        pause(warmup);
        let (before, began) = (counts(), Instant::now());
        pause(length);
        let (after, seconds) = (counts(), began.elapsed().as_secs_f64());
        over.store(true, Ordering::Relaxed);
        let mut ended = workers.into_iter().map(thread::ScopedJoinHandle::join);
        ended
            .try_for_each(|ended| ended.unwrap_or_else(|_| Err(std::io::ErrorKind::Other.into())))
            .map_err(EvaluateError::file("pass a byte through", "a pipe"))?;
        Ok((before, after, seconds))
    })?;
    let rounds = (after.0 - before.0) as f64;
    let switches = |usage: &Usage| usage.voluntary_switches + usage.involuntary_switches;
    Ok(Done {
        work,
        rounds_per_s: rounds / seconds,
        rounds_per_processor_s: rounds / (after.1.processor_s() - before.1.processor_s()).max(1e-9),
        switches_per_s: (switches(&after.1) - switches(&before.1)) as f64 / seconds,
    })
}

/// Sleeps, but not beyond a signal.
fn pause(length: Duration) {
    let until = Instant::now() + length;
    while !interrupt::interrupted() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        thread::sleep(left.min(SIGNAL_POLL_INTERVAL));
    }
}

/// Sends a byte and waits for it, until the run is over.
fn call(
    processor: usize,
    work: u64,
    mut to: PipeWriter,
    mut back: PipeReader,
    rounds: &Rounds,
    over: &AtomicBool,
) -> std::io::Result<()> {
    stay_on(processor)?;
    while !over.load(Ordering::Relaxed) {
        compute(work);
        to.write_all(&[1])?;
        back.read_exact(&mut [0])?;
        rounds.0.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

/// Returns bytes to their sender, until no more come.
fn echo(
    processor: usize,
    work: u64,
    mut from: PipeReader,
    mut back: PipeWriter,
) -> std::io::Result<()> {
    stay_on(processor)?;
    while from.read(&mut [0])? == 1 {
        compute(work);
        back.write_all(&[1])?;
    }
    Ok(())
}

/// Computes steps that depend on each other, so that the compiler leaves none out.
fn compute(steps: u64) {
    let mut state = 1u64;
    for _ in 0..steps {
        state = black_box(state.wrapping_mul(6_364_136_223_846_793_005));
    }
}

/// Returns the processors that this thread may use.
fn processors() -> Result<Vec<usize>, EvaluateError> {
    let allowed = sched_getaffinity(None).map_err(|error| {
        EvaluateError::file("ask for", "this process' processors")(error.into())
    })?;
    let all: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu)).collect();
    if all.is_empty() {
        return Err(missing("a processor"));
    }
    Ok(all)
}

fn stay_on(processor: usize) -> std::io::Result<()> {
    let mut set = CpuSet::new();
    set.set(processor);
    sched_setaffinity(None, &set)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_round_is_two_switches() {
        let orders = Orders { pairs: 2, work: 1_000, seconds: 0.2, warmup: 0.05, calibrate: None };
        let done = run(&orders).expect("pipes and processors");
        assert!(done.rounds_per_s > 0.0);
        // The main thread and whoever else runs here add some.
        assert!(done.switches_per_s >= 1.9 * done.rounds_per_s, "{done:?}");
    }

    #[test]
    fn more_work_makes_fewer_rounds() {
        let rounds = |work| {
            switch(1, work, Duration::ZERO, Duration::from_millis(100))
                .expect("pipes and processors")
                .rounds_per_s
        };
        assert!(rounds(1_000_000) < rounds(1));
    }
}
