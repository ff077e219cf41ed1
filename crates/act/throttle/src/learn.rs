//! Measures what a disk costs to share, by the probe of `luc bench ranking`, and stores the results.
//!
//! [`plan`] plans the measurement, [`measure`] makes it, and [`profile`] stores the results.

pub mod measure;
pub mod plan;
pub mod profile;

use luc_control::throttle::auto::Measured;
use luc_events::Dev;
pub use profile::Learned;

/// Results for a disk; `None` if there are none, or the file is unusable.
#[must_use]
pub fn read_learned(dev: Dev) -> Option<Learned> {
    profile::read(dev).ok().flatten()
}

/// Results for a disk, in the form that a policy needs.
#[must_use]
pub fn read_measured(dev: Dev) -> Option<Measured> {
    read_learned(dev).as_ref().map(Learned::for_policy)
}
