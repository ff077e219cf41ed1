//! Keeps this process in memory. A throttle or guardian that waits for a page from the throttled disk thaws too late.

use rustix::io;
use rustix::mm::{MlockAllFlags, mlockall};
use rustix::thread::{CapabilitySet, capabilities};

/// Locks all of its memory, present and future. Does nothing without CAP_IPC_LOCK, as in most containers. The limit on
/// locked memory would then refuse memory later, in the middle of the work.
pub(crate) fn stay_resident() -> io::Result<()> {
    let may = capabilities(None)?.effective;
    if !may.contains(CapabilitySet::IPC_LOCK) {
        return Ok(());
    }
    mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE)
}
