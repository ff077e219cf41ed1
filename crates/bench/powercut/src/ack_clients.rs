//! Our clients: they make and change files, sync them and then say so on standard output.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use luc_workload::BenchError;
use luc_workload::workers::{
    self, ClientFault, ClientKind, RunFailure, RunSchedule, WorkloadClient,
};

use super::client_content::{ClientStep, FileAmendment, RoundWriter};

#[derive(Debug, Clone)]
pub struct AckClients {
    /// Directory on the disk under trial.
    pub directory: PathBuf,
    pub seed: u64,
    pub clients: usize,
    pub kind: ClientKind,
    /// Acknowledge without any fsync: for showing that losses are found, never for use.
    pub unsafe_no_fsync: bool,
}

/// Runs the clients until they are killed or the disk is gone.
///
/// # Errors
/// [`BenchError`] of the first operation that failed; after a power cut that is expected.
pub fn run(plan: &AckClients) -> Result<(), BenchError> {
    let stdout = io::stdout().as_fd().try_clone_to_owned().map(File::from);
    let acks = stdout.map_err(|error| BenchError::operation(&plan.directory, "dup", error))?;
    let day_ns = 86_400_000_000_000;
    let schedule = RunSchedule::new(plan.clients, plan.kind, Some(0), day_ns)?;
    let body = |client: &WorkloadClient<'_>, ()| {
        let writer = RoundWriter { seed: plan.seed, client: client.index as u32 };
        client_loop(plan, writer, &acks).map_err(ClientFault::of(0))
    };
    match workers::run(&schedule, 1, |_| Ok(()), body, &mut |_| {}) {
        Ok(_) | Err(RunFailure::Other(BenchError::Interrupted)) => Ok(()),
        Err(RunFailure::Other(error)) => Err(error),
        Err(RunFailure::Fault(fault)) => {
            let reason = io::Error::from_raw_os_error(fault.errno);
            Err(BenchError::operation(&plan.directory, "writing and syncing", reason))
        }
    }
}

fn client_loop(plan: &AckClients, writer: RoundWriter, mut acks: &File) -> io::Result<()> {
    for step in 0.. {
        if plan.unsafe_no_fsync {
            // Without fsync nothing else would bound the rate.
            std::thread::sleep(Duration::from_millis(1));
        }
        take_step(plan, writer, step)?;
        // Less than PIPE_BUF: lines of several clients do not mix.
        acks.write_all(format!("ack {} {step}\n", writer.client).as_bytes())?;
    }
    Ok(())
}

fn take_step(plan: &AckClients, writer: RoundWriter, step: u32) -> io::Result<()> {
    let path = plan.directory.join(writer.name(writer.file(step)));
    let body = writer.body(step);
    let sync = |file: &File| {
        if plan.unsafe_no_fsync { Ok(()) } else { file.sync_all() }
    };
    let write = |path: &Path, options: &OpenOptions| {
        let mut file = options.open(path)?;
        file.write_all(&body)?;
        sync(&file)
    };
    match writer.step(step) {
        ClientStep::Create => write(&path, OpenOptions::new().write(true).create_new(true)),
        ClientStep::Amend(FileAmendment::Append) => write(&path, OpenOptions::new().append(true)),
        ClientStep::Amend(FileAmendment::Overwrite) => write(&path, OpenOptions::new().write(true)),
        ClientStep::Amend(FileAmendment::Replace) => {
            let other = path.with_extension("new");
            write(&other, OpenOptions::new().write(true).create_new(true))?;
            fs::rename(&other, &path)?;
            sync(&File::open(&plan.directory)?)
        }
    }
}
