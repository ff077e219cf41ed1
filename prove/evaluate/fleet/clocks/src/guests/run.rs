//! A run, and its results.

use serde::Serialize;

use super::judge::Judged;

#[derive(Debug, Serialize)]
pub(super) struct GuestsRun {
    pub(super) scenario: &'static str,
    pub(super) seed: u64,
    /// Reason why it was not made.
    pub(super) unable: Option<String>,
    pub(super) kernel: String,
    pub(super) seconds: f64,
    /// Number of attempts in vain, in which the counters of two guests did not differ by a constant.
    pub(super) in_vain: u32,
    pub(super) judged: Option<Judged>,
}
