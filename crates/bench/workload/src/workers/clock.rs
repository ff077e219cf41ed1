//! The clock of all clients, and each client's own.

pub use luc_host::clock::now_ns;
use luc_host::clock::{ClockId, read_ns};

/// Returns the processor time that the calling thread has used, ns.
pub(crate) fn used_ns() -> u64 {
    read_ns(ClockId::ThreadCPUTime)
}
