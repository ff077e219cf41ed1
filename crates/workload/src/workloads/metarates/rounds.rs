//! The original's way: all clients start together and each creates a share of the files once. Here that is one file per
//! client ("4 processes, 4 files"), many times over, so that the first fsync of a round meets a journal at rest.

use std::fs::OpenOptions;

use luc_host::interrupt;
use luc_stats::random;

use super::super::explain;
use super::super::timed::{Head, Outcome, Workload, sync_file_system};
use super::Metarates;
use crate::error::BenchError;
use crate::scratch::Scratch;
use crate::workers::{self, Client, Fault, Measured, now_ns};

/// Runs the rounds. The measured time is that from each start to the last client's end, all rounds together.
pub(super) fn run(plan: &Metarates, rounds: usize) -> Result<Outcome, BenchError> {
    if !(1..=1_000_000).contains(&rounds) {
        return Err(BenchError::Input {
            option: format!("--rounds {rounds}"),
            reason: "out of range",
            advice: "use 1 to 1000000 rounds",
        });
    }
    let timed = &plan.timed;
    let (clients, kind) = (timed.schedule.clients, timed.schedule.kind);
    let scratch = Scratch::create(&timed.directory)?;
    plan.make(scratch.path())?;
    let failed = |failure| explain(&timed.directory, Metarates::OPERATIONS, failure);
    let recorders = workers::recorders(clients, Metarates::OPERATIONS.len()).map_err(failed)?;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    let (mut made, mut interval_ns) = (0, 0);
    while made < rounds && !interrupt::interrupted() {
        // What the last round left to write must not run into this one.
        sync_file_system(scratch.path())
            .map_err(|error| BenchError::operation(&timed.directory, "syncing", error))?;
        let prepare = |client: &Client<'_>| {
            let directory = plan.directory_of(scratch.path(), client.index);
            let mut random = random::stream(timed.seed, client.index as u64);
            let data = random::bytes(&mut random, plan.file_size_bytes as usize);
            Ok((
                directory.join(format!("c{:04}.{made:08}", client.index)),
                data,
            ))
        };
        let body = |client: &Client<'_>, (path, data): (std::path::PathBuf, Vec<u8>)| {
            if let Some(arrivals) = &plan.arrivals {
                arrivals.wait(client, timed.seed, made, clients);
            }
            let laps = plan.one_file(&options, path.as_os_str(), &data)?;
            laps.record(client, !data.is_empty());
            Ok::<(), Fault>(())
        };
        let start = now_ns();
        let is_whole =
            workers::run_to_end((clients, kind), &recorders, prepare, body).map_err(failed)?;
        if !is_whole {
            break;
        }
        interval_ns += now_ns() - start;
        made += 1;
    }
    scratch.remove()?;
    if made == 0 {
        return Err(BenchError::Interrupted);
    }
    let measured = Measured::of_rounds(recorders, clients, interval_ns, made < rounds);
    let head = Head {
        no_fsync: timed.no_fsync,
        ..Head::new(
            Metarates::NAME,
            (&timed.directory, timed.seed),
            &timed.schedule,
            &measured,
        )
    };
    Ok(Outcome { head, measured })
}
