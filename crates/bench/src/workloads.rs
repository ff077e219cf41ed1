//! The workloads: closed loops of clients in a fresh directory.

pub mod commit;
pub mod metarates;
pub mod varmail;

use std::path::Path;

use crate::error::BenchError;
use crate::workers::Failure;

/// Turns a client's failure into what the user reads.
fn explain(directory: &Path, operations: &[&str], failure: Failure) -> BenchError {
    match failure {
        Failure::Other(error) => error,
        Failure::Fault(fault) => {
            let what = operations
                .get(fault.operation)
                .copied()
                .unwrap_or("an operation");
            let reason = std::io::Error::from_raw_os_error(fault.errno);
            BenchError::operation(directory, what, reason)
        }
    }
}
