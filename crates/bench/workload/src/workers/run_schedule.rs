//! Number and kind of clients, and the times of a run.

use crate::error::BenchError;

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ClientKind {
    Thread,
    Process,
}

/// Number of clients, and the times of their run.
#[derive(Debug, Clone, Copy)]
pub struct RunSchedule {
    /// Number of clients, at least 1.
    pub clients: usize,
    pub kind: ClientKind,
    /// Time before the measured interval, ns.
    pub warmup_ns: u64,
    /// Length of the measured interval, ns.
    pub measured_ns: u64,
}

impl RunSchedule {
    /// Checks the number of clients and fills in the default warm-up: the longer of 1 s and a tenth
    /// of the measured interval.
    ///
    /// # Errors
    /// [`BenchError::Input`] if `clients` is 0 or above 4096.
    pub fn new(
        clients: usize,
        kind: ClientKind,
        warmup_ns: Option<u64>,
        measured_ns: u64,
    ) -> Result<Self, BenchError> {
        if !(1..=4096).contains(&clients) {
            return Err(BenchError::Input {
                option: format!("--threads {clients}"),
                reason: "not a number of clients",
                advice: "use 1 to 4096",
            });
        }
        let warmup_ns = warmup_ns.unwrap_or_else(|| (measured_ns / 10).max(1_000_000_000));
        Ok(Self { clients, kind, warmup_ns, measured_ns })
    }
}

/// Progress of a run, for a progress bar.
#[derive(Debug, Clone, Copy)]
pub struct RunProgress {
    /// Time since the start, ns.
    pub elapsed_ns: u64,
    /// Warm-up and measured interval together, ns.
    pub total_ns: u64,
}
