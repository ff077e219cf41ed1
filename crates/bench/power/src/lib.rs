//! The processors' frequency, set for a run and put back on any exit, and the energy that a run takes.
//!
//! [`frequency`] works through cpufreq, or by a quota of processor time where there is none; [`energy`] reads RAPL's
//! counters or a meter's output. The root of sysfs is a parameter, so that tests have a machine of their own.

pub mod energy;
pub mod frequency;
