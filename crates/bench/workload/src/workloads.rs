//! The workloads: closed loops of clients in a fresh directory. Those that run for a time share [`timed_run`].
//! [`ranking`] is one process on one file.

pub mod append;
pub mod commit;
pub mod initial_write;
pub mod metarates;
pub mod oltp;
pub mod overwrite;
pub mod ranking;
mod round_plan;
pub mod timed_run;
pub mod varmail;

use std::path::Path;

use crate::error::BenchError;
use crate::workers::RunFailure;

/// Converts a client's failure to an error for the user.
pub fn explain(directory: &Path, operations: &[&str], failure: RunFailure) -> BenchError {
    match failure {
        RunFailure::Other(error) => error,
        RunFailure::Fault(fault) => {
            let what = operations.get(fault.operation).copied().unwrap_or("an operation");
            let reason = std::io::Error::from_raw_os_error(fault.errno);
            BenchError::operation(directory, what, reason)
        }
    }
}

/// Lets this process hold `files` files and a few more open.
///
/// # Errors
/// [`BenchError`]: the hard limit is below that.
pub fn raise_file_limit(files: usize) -> Result<(), BenchError> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let wanted = files as u64 + 64;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= wanted) {
        return Ok(());
    }
    let raised = Rlimit { current: Some(wanted), maximum: limit.maximum };
    setrlimit(Resource::Nofile, raised).map_err(|_| BenchError::Input {
        option: format!("--files {files}"),
        reason: "more than this process may have open",
        advice: "use fewer or raise the limit (ulimit -Hn)",
    })
}
