//! What `luc fleet` and `luc record --fleet` claim, measured.
//!
//! - [`clocks`]: how well the clocks of simulated hosts are related.
//! - [`cost`]: what servers and their clients lose while they are recorded.
//! - [`truth`]: whether what was planted in a search service is found.

pub mod clocks;
pub mod cost;
pub mod truth;
