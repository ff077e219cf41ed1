//! Clients that start together, run for a time and are measured: threads or forked processes.
//!
//! The hot loop of a client touches no lock and no allocator: it reads the clock, one shared word
//! that says when to stop, and counters of its own.

use std::sync::atomic::Ordering;
use std::time::Duration;

use luc_host::interrupt_flag::interrupted;

use crate::error::BenchError;
use crate::latency::{LatencyRecorders, OperationLatency};

/// The longest time that clients with a fixed amount of work may take: a year.
pub const MAX_RUN_NS: u64 = 365 * 86_400_000_000_000;

mod arrivals;
mod client;
mod clock;
mod processes;
mod run_control;
mod run_schedule;
mod think_time;
mod threads;

pub use arrivals::Arrivals;
pub use client::WorkloadClient;
pub use clock::now_ns;
pub(crate) use clock::used_ns;
pub use run_control::ClientFault;
use run_control::RunControl;
pub use run_schedule::{ClientKind, RunProgress, RunSchedule};
pub(crate) use think_time::ThinkPauses;
pub use think_time::{ThinkDistribution, ThinkTime};

/// Measured interval of a run, and its clients' latencies.
#[derive(Debug)]
pub struct RunMeasurement {
    /// Length of the measured interval, ns; shorter than planned after an interrupt.
    pub interval_ns: u64,
    pub interrupted: bool,
    recorders: LatencyRecorders,
    clients: usize,
}

impl RunMeasurement {
    /// Builds the figures of clients that had a fixed amount of work.
    pub fn of_rounds(
        recorders: LatencyRecorders,
        clients: usize,
        interval_ns: u64,
        interrupted: bool,
    ) -> Self {
        Self { interval_ns, interrupted, recorders, clients }
    }

    /// Returns latencies of an operation, of all clients together.
    pub fn latency(&self, operation: usize) -> OperationLatency {
        self.recorders.summary(self.clients, operation)
    }

    /// Returns the sum (ns) and count of an operation's latencies, per client.
    pub fn totals(&self, operation: usize) -> impl Iterator<Item = (u64, u64)> + '_ {
        (0..self.clients).map(move |client| self.recorders.of(client).totals(operation))
    }
}

/// Why a run has no figures.
#[derive(Debug)]
pub enum RunFailure {
    Fault(ClientFault),
    Other(BenchError),
}

/// Runs `body` once per client, all started together, and returns when all have ended. Latencies
/// are kept for `operations` operations. `tick` is called about ten times a second. `prepare` is called for each
/// client before any of them starts; `body` gets its result.
///
/// A client of kind process is forked, so this process must have a single thread.
pub fn run<T>(
    schedule: &RunSchedule,
    operations: usize,
    prepare: impl Fn(&WorkloadClient<'_>) -> Result<T, ClientFault> + Sync,
    body: impl Fn(&WorkloadClient<'_>, T) -> Result<(), ClientFault> + Sync,
    tick: &mut dyn FnMut(RunProgress),
) -> Result<RunMeasurement, RunFailure> {
    let recorders = recorders(schedule.clients, operations)?;
    let span = drive(schedule, &recorders, prepare, body, tick)?;
    let interval_ns = span.end_ns.saturating_sub(span.begin_ns);
    if interval_ns == 0 {
        return Err(RunFailure::Other(BenchError::Interrupted));
    }
    let interrupted = interval_ns < schedule.measured_ns;
    Ok(RunMeasurement { interval_ns, interrupted, recorders, clients: schedule.clients })
}

/// Runs clients that have a fixed amount of work instead of a time. Latencies go into `recorders`. Returns false if a
/// signal kept clients from finishing.
pub fn run_to_end<T>(
    clients: usize,
    kind: ClientKind,
    recorders: &LatencyRecorders,
    prepare: impl Fn(&WorkloadClient<'_>) -> Result<T, ClientFault> + Sync,
    body: impl Fn(&WorkloadClient<'_>, T) -> Result<(), ClientFault> + Sync,
) -> Result<bool, RunFailure> {
    let schedule = RunSchedule { clients, kind, warmup_ns: 0, measured_ns: MAX_RUN_NS };
    drive(&schedule, recorders, prepare, body, &mut |_| {})?;
    Ok(!interrupted())
}

/// Makes counters for `clients` clients of `operations` operations each.
pub fn recorders(clients: usize, operations: usize) -> Result<LatencyRecorders, RunFailure> {
    LatencyRecorders::new(clients, operations).map_err(|reason| no_memory(clients, reason))
}

fn no_memory(clients: usize, reason: std::io::Error) -> RunFailure {
    RunFailure::Other(BenchError::Start { client: 1, clients, reason })
}

/// Real begin and end of the measured interval, ns.
struct Span {
    begin_ns: u64,
    end_ns: u64,
}

fn drive<T>(
    schedule: &RunSchedule,
    recorders: &LatencyRecorders,
    prepare: impl Fn(&WorkloadClient<'_>) -> Result<T, ClientFault> + Sync,
    body: impl Fn(&WorkloadClient<'_>, T) -> Result<(), ClientFault> + Sync,
    tick: &mut dyn FnMut(RunProgress),
) -> Result<Span, RunFailure> {
    let control = RunControl::new().map_err(|reason| no_memory(schedule.clients, reason))?;
    control.end_ns().store(u64::MAX, Ordering::Relaxed);
    control.begin_ns().store(u64::MAX, Ordering::Relaxed);
    let client_main = |index: usize| {
        let client = WorkloadClient { index, control: &control, recorder: recorders.of(index) };
        let prepared = prepare(&client);
        control.wait_for_start();
        if let Err(fault) = prepared.and_then(|prepared| body(&client, prepared)) {
            control.set_fault(fault);
        }
        control.end(schedule.clients);
    };
    let outcome = match schedule.kind {
        ClientKind::Thread => threads::run(schedule, &control, client_main, tick),
        ClientKind::Process => processes::run(schedule, &control, client_main, tick),
    };
    if let Some(fault) = control.first_fault() {
        return Err(RunFailure::Fault(fault));
    }
    outcome.map_err(RunFailure::Other)?;
    Ok(Span {
        begin_ns: control.begin_ns().load(Ordering::Relaxed),
        end_ns: control.end_ns().load(Ordering::Relaxed),
    })
}

/// Coordinates: starts the clients once all are ready and watches until the end. `dead` looks
/// for a client that ended before its time.
fn coordinate(
    schedule: &RunSchedule,
    control: &RunControl,
    mut dead: impl FnMut() -> Option<BenchError>,
    tick: &mut dyn FnMut(RunProgress),
) -> Result<(), BenchError> {
    while control.ready().load(Ordering::Acquire) < schedule.clients as u32 {
        if let Some(error) = dead() {
            return Err(error);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let start = now_ns();
    let begin = start + schedule.warmup_ns;
    let end = begin + schedule.measured_ns;
    control.begin_ns().store(begin, Ordering::Relaxed);
    control.end_ns().store(end, Ordering::Relaxed);
    control.start();
    loop {
        let now = now_ns();
        if now >= control.end_ns().load(Ordering::Relaxed) {
            return Ok(());
        }
        if interrupted() {
            control.end_ns().fetch_min(now, Ordering::Relaxed);
            return Ok(());
        }
        if let Some(error) = dead() {
            control.end_ns().fetch_min(now, Ordering::Relaxed);
            return Err(error);
        }
        tick(RunProgress { elapsed_ns: now - start, total_ns: end - start });
        if control.all_ended(schedule.clients, (end - now).min(100_000_000)) {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// Long enough for a client to run in it on a busy machine.
    const MEASURED_NS: u64 = 1_000_000_000;

    fn schedule(clients: usize) -> RunSchedule {
        RunSchedule { clients, kind: ClientKind::Thread, warmup_ns: 0, measured_ns: MEASURED_NS }
    }

    #[test]
    fn every_client_runs_and_is_counted() {
        let measured = run(
            &schedule(5),
            1,
            |_| Ok(()),
            |client, ()| {
                while client.running(now_ns()) {
                    client.record(0, client.index as u64 + 1);
                    std::thread::yield_now();
                }
                Ok(())
            },
            &mut |_| {},
        )
        .expect("run");
        assert!(measured.totals(0).all(|(sum, count)| sum > 0 && count > 0));
        assert_eq!(measured.interval_ns, MEASURED_NS);
        assert!(!measured.interrupted);
    }

    #[test]
    fn the_first_fault_ends_the_run() {
        let schedule = RunSchedule { measured_ns: 60_000_000_000, ..schedule(3) };
        let failure = run(
            &schedule,
            1,
            |_| Ok(()),
            |client, ()| {
                if client.index == 1 {
                    return Err(ClientFault { operation: 2, errno: libc::ENOSPC });
                }
                while client.running(now_ns()) {
                    std::thread::yield_now();
                }
                Ok(())
            },
            &mut |_| {},
        )
        .expect_err("must fail");
        assert!(
            matches!(failure, RunFailure::Fault(ClientFault { operation: 2, errno: libc::ENOSPC })),
            "{failure:?}"
        );
    }

    #[test]
    fn what_is_prepared_is_there_and_work_without_a_time_ends() {
        let recorders = recorders(4, 1).expect("memory");
        let prepared = AtomicUsize::new(0);
        let done = run_to_end(
            4,
            ClientKind::Thread,
            &recorders,
            |client| {
                prepared.fetch_add(1, Ordering::Relaxed);
                Ok(client.index as u64 + 10)
            },
            |client, number| {
                assert_eq!(prepared.load(Ordering::Relaxed), 4, "all are ready");
                client.record(0, number);
                Ok(())
            },
        )
        .expect("run");
        assert!(done);
        assert_eq!(recorders.summary(4, 0).sum_ns(), 10 + 11 + 12 + 13);
    }

    #[test]
    fn nothing_counts_before_the_interval() {
        let schedule = RunSchedule { warmup_ns: 10_000_000, ..schedule(1) };
        let measured = run(
            &schedule,
            1,
            |_| Ok(()),
            |client, ()| {
                assert!(!client.counts(0));
                while client.running(now_ns()) {
                    if client.counts(now_ns()) {
                        client.record(0, 1);
                    }
                }
                Ok(())
            },
            &mut |_| {},
        )
        .expect("run");
        assert!(measured.latency(0).count() > 0);
    }

    #[test]
    fn clients_are_bounded() {
        for clients in [0, 5000] {
            let error =
                RunSchedule::new(clients, ClientKind::Thread, None, 1).expect_err("refused");
            assert!(error.to_string().contains("--threads"), "{error}");
        }
        let schedule = RunSchedule::new(1, ClientKind::Thread, None, 60_000_000_000).expect("fine");
        assert_eq!(schedule.warmup_ns, 6_000_000_000);
    }
}
