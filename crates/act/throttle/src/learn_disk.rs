//! Measures what a disk costs to share, by the probe of `luc bench ranking`, and stores the results.
//!
//! [`measurement_plan`] plans the measurement, [`measure_sharing`] makes it, and [`disk_profile`] stores the results.

pub mod disk_profile;
pub mod measure_sharing;
pub mod measurement_plan;

pub use disk_profile::DiskProfile;
use luc_control::throttle::auto_throttle::DiskMeasurement;
use luc_events::Dev;

/// Results for a disk; `None` if there are none, or the file is unusable.
#[must_use]
pub fn read_learned(dev: Dev) -> Option<DiskProfile> {
    disk_profile::read(dev).ok().flatten()
}

/// Results for a disk, in the form that a policy needs.
#[must_use]
pub fn read_measured(dev: Dev) -> Option<DiskMeasurement> {
    read_learned(dev).as_ref().map(DiskProfile::for_policy)
}
