//! Rounds in place of a time. In each, all clients do the same share of work once, and the first fsync meets a journal
//! at rest.

use luc_host::interrupt_flag;

use super::explain;
use super::timed_run::{
    TimedPlan, TimedReportHead, TimedRunOutcome, TimedWorkload, sync_file_system,
};
use crate::error::BenchError;
use crate::scratch_directory::ScratchDirectory;
use crate::workers::{self, Arrivals, ClientFault, RunMeasurement, WorkloadClient, now_ns};

/// Number of rounds, and arrivals of the clients in each.
#[derive(Debug, Clone, Copy)]
pub(super) struct RoundPlan<'a> {
    pub(super) count: usize,
    pub(super) arrivals: Option<&'a Arrivals>,
}

/// Runs the rounds. `prepare` gets the shared part, the client and the round, from 0; `body` gets its result when the
/// client arrives. The measured time is the sum over the rounds from the start to the last client's end.
pub(super) fn run<W: TimedWorkload, T>(
    workload: &W,
    timed: &TimedPlan,
    rounds: RoundPlan<'_>,
    prepare: impl Fn(&W::Shared, &WorkloadClient<'_>, usize) -> Result<T, ClientFault> + Sync,
    body: impl Fn(&W::Shared, &WorkloadClient<'_>, T) -> Result<(), ClientFault> + Sync,
) -> Result<TimedRunOutcome, BenchError> {
    if !(1..=1_000_000).contains(&rounds.count) {
        return Err(BenchError::Input {
            option: format!("--rounds {}", rounds.count),
            reason: "out of range",
            advice: "use 1 to 1000000 rounds",
        });
    }
    let (clients, kind) = (timed.schedule.clients, timed.schedule.kind);
    let scratch = ScratchDirectory::create(&timed.directory)?;
    let shared = workload.make(scratch.path())?;
    let failed = |failure| explain(&timed.directory, W::OPERATIONS, failure);
    let recorders = workers::recorders(clients, W::OPERATIONS.len()).map_err(failed)?;
    let (mut made, mut interval_ns) = (0, 0);
    while made < rounds.count && !interrupt_flag::interrupted() {
        // Writeback of the last round must not overlap this one.
        sync_file_system(scratch.path())
            .map_err(|error| BenchError::operation(&timed.directory, "syncing", error))?;
        let prepare = |client: &WorkloadClient<'_>| prepare(&shared, client, made);
        let body = |client: &WorkloadClient<'_>, own: T| {
            if let Some(arrivals) = rounds.arrivals {
                arrivals.wait(client, timed.seed, made, clients);
            }
            body(&shared, client, own)
        };
        let start = now_ns();
        let is_whole =
            workers::run_to_end(clients, kind, &recorders, prepare, body).map_err(failed)?;
        if !is_whole {
            break;
        }
        interval_ns += now_ns() - start;
        made += 1;
    }
    drop(shared);
    scratch.remove()?;
    if made == 0 {
        return Err(BenchError::Interrupted);
    }
    let measured = RunMeasurement::of_rounds(recorders, clients, interval_ns, made < rounds.count);
    let head = TimedReportHead {
        no_fsync: timed.no_fsync,
        ..TimedReportHead::new(W::NAME, &timed.directory, timed.seed, &timed.schedule, &measured)
    };
    Ok(TimedRunOutcome { head, measured })
}
