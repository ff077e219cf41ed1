//! What `luc fleet` claims of how the clocks of hosts relate, measured.
//!
//! - [`simulated`]: of simulated hosts, whose clocks are known exactly.
//! - [`guests`]: the same of real kernels in guests, whose rates change.

pub mod guests;
pub mod simulated;
