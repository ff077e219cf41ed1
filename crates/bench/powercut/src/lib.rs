//! Tests whether an acknowledged fsync is durable. Clients sync files and acknowledge them. The power of the disk below
//! is cut. Every file that was acknowledged before the cut must be there, whole.
//!
//! Round `r` of seed `s` is the first round of seed `s + r`, so one number repeats a round. The seed decides the
//! contents, the time of the cut and the unflushed sectors that survive it. It does not decide how far the clients get
//! until then.
//!
//! [`faults`] tests the opposite case: whether a failed write reaches the program that asked for it.

pub mod ack_clients;
mod acks;
mod client_content;
mod durability_check;
mod error;
pub mod faults;
mod fsck;
mod powercut_round;
mod report;
mod round_setup;
mod stray_processes;
mod trial_disk;

use std::ffi::OsString;
use std::path::PathBuf;

use luc_disk::ModelSpec;
use luc_host::interrupt_flag::interrupted;
use luc_workload::workers::ClientKind;

pub use error::PowercutError;
pub use report::{BadRound, PowercutReport};

/// Request for rounds of power cuts, with their disk and clients.
#[derive(Debug, Clone)]
pub struct PowercutRequest {
    /// The `luc` binary, run again as the disk's daemon and as the clients.
    pub luc: PathBuf,
    /// Rounds, each with a fresh disk.
    pub rounds: u64,
    /// Seed of the first round; each further round takes the next number.
    pub seed: u64,
    pub clients: usize,
    pub kind: ClientKind,
    /// File system, as in `mkfs.FS`.
    pub fs: String,
    /// Options of mkfs, separated by blanks.
    pub mkfs_options: String,
    /// Options as in `mount -o`.
    pub mount_options: String,
    pub model: ModelSpec,
    pub size_bytes: u64,
    /// A lagdisk to use instead of emulated disks. Its content is destroyed; it has its own timing and size.
    pub lagdisk: Option<PathBuf>,
    /// The gate's policy, for the report.
    pub policy: Option<String>,
    /// Put before the clients' command line, to run them under something.
    pub wrap: Vec<OsString>,
    /// The clients skip their fsyncs: shows that losses are found.
    pub unsafe_no_fsync: bool,
    /// Run this instead of our clients. It prints a line per file that is durable: its path.
    pub command: Option<Vec<OsString>>,
}

/// Runs the rounds. `tick` gets the number of finished rounds.
///
/// # Errors
/// [`PowercutError`]: bad input, a machine that cannot do it, or clients that failed. Losses are no
/// error but in the report.
pub fn run(
    plan: &PowercutRequest,
    tick: &mut dyn FnMut(u64),
) -> Result<PowercutReport, PowercutError> {
    if plan.rounds == 0 {
        return Err(PowercutError::Zero("--rounds"));
    }
    if plan.clients == 0 || plan.clients > 4096 {
        return Err(PowercutError::Clients(plan.clients));
    }
    let checker = fsck::FsckProgram::of(&plan.fs)?;
    let mut report = PowercutReport::new(plan, checker.as_ref());
    for round in 0..plan.rounds {
        match powercut_round::round(plan, checker.as_ref(), plan.seed.wrapping_add(round)) {
            Ok(outcome) => report.add(outcome),
            Err(PowercutError::Interrupted) => report.interrupted = true,
            Err(_) if interrupted() => report.interrupted = true,
            Err(error) => return Err(error),
        }
        if report.interrupted {
            break;
        }
        tick(round + 1);
    }
    Ok(report)
}
