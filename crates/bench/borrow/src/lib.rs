//! Resources that a sweep borrows from this machine, and how it gives each back.
//!
//! - `device`: block devices. Checks that one may be formatted, locks it, and records every change before making it.
//! - `cleanup`: a process that outlives the sweep and restores everything, however the sweep ended.
//! - `borrowed_processors`: processor settings for each repeat, and the meter of energy.
//! - `borrow_request`: the resources that one sweep asks for.

#[macro_use]
extern crate luc_units;

mod borrow_request;
mod borrowed_processors;
mod cleanup;
mod device;
mod error;
mod scheduler;

pub use borrow_request::{BorrowRequest, DeviceRequest};
pub use borrowed_processors::{BorrowedProcessors, energy_about, open_latency};
pub use cleanup::{
    CleanupProcess, CleanupState, RestoredResources, SWEEP_VARIABLE, clean_up, clear_left, name_of,
    restore_left,
};
pub use device::{
    BorrowableDevice, ChangedDevice, DeviceDescription, HeldDevices, hold, identified,
    own_identity, shown_size,
};
pub use error::BorrowError;
pub use scheduler::IoScheduler;

/// Parses text that root would restore from and serializes it again; `None` if it is not a sweep's. For fuzzing.
///
/// `kind` modulo 3 selects the format: devices, processors, or a note.
#[doc(hidden)]
#[must_use]
pub fn saved(kind: u8, text: &str) -> Option<String> {
    match kind % 3 {
        0 => device::saved(text),
        1 => luc_power::frequency::saved(text),
        _ => cleanup::saved(text),
    }
}
