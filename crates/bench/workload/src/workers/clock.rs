//! The clock of all clients, and each client's own.

pub use luc_host::kernel_clocks::now_ns;
use luc_host::kernel_clocks::{ClockId, read_ns};

/// Returns the processor time that the calling thread has used, ns.
pub(crate) fn used_ns() -> u64 {
    read_ns(ClockId::ThreadCPUTime)
}
