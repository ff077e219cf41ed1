//! What a disk costs to share: measured by the probe of `luc bench ranking`, kept for later.
//!
//! [`plan`] says what will be done, [`measure`] does it, [`profile`] is what is kept and where.

pub mod measure;
pub mod plan;
pub mod profile;

use luc_control::throttle::auto::Measured;
use luc_events::Dev;
pub use profile::Learned;

/// What was learned of a disk; `None` where it was not, or the file is no good.
#[must_use]
pub fn learned(dev: Dev) -> Option<Learned> {
    profile::read(dev).ok().flatten()
}

/// The same for a policy.
#[must_use]
pub fn measured(dev: Dev) -> Option<Measured> {
    learned(dev).as_ref().map(Learned::for_policy)
}
