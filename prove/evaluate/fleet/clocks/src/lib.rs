//! Measures the claims of `luc fleet` on the relation of hosts' clocks.
//!
//! - [`simulated`]: simulated hosts, whose clocks are known exactly.
//! - [`guests`]: real kernels in guests, whose rates change.

pub mod guests;
pub mod simulated;
