//! When a run counts: one that the hypervisor disturbed says little about the program.

/// A run is made again if more than this share of the processors' time was stolen during it.
pub(super) const MOST: f64 = 0.01;

/// ... but not more often than this; the last one counts then, whatever happened to it.
pub(super) const TRIES: usize = 4;
