//! Writes requests as files for other programs.
//!
//! - [`html`]: one page with all results, for a browser.
//! - [`perfetto`]: a trace for <https://ui.perfetto.dev>.
//! - [`otlp`]: the slowest requests as spans for OpenTelemetry.

mod calls_between_processes;
pub mod html;
pub mod otlp;
pub mod perfetto;

use std::io;

use crate::error::FleetError;
use crate::explain::{FleetRequests, RequestReport, reports};
use crate::joined_traces::JoinedTraces;

/// Selection of the requests that a report shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportSelection {
    /// Rank of the request to report; `None`: the slowest.
    pub request: Option<usize>,
    /// Number of slowest requests to write if no rank is given.
    pub slowest: usize,
}

#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    #[error(transparent)]
    Fleet(#[from] FleetError),
    #[error("the report cannot be written: {0}; check the space left")]
    Output(#[from] io::Error),
}

/// Results that reports are written from.
#[derive(Debug)]
pub struct ReportSource<'a> {
    found: FleetRequests<'a>,
    chosen: ReportSelection,
}

impl<'a> ReportSource<'a> {
    /// Finds messages and requests in the traces.
    ///
    /// # Errors
    /// [`FleetError::NoSuchRequest`], [`FleetError::Tree`].
    pub fn new(joined: &'a JoinedTraces, chosen: ReportSelection) -> Result<Self, FleetError> {
        let found = FleetRequests::new(joined)?;
        if let Some(number) = chosen.request {
            found.top(number)?;
        }
        Ok(Self { found, chosen })
    }

    /// Reports of the chosen requests, the slowest first.
    fn requests(&self) -> Result<Vec<RequestReport>, FleetError> {
        match self.chosen.request {
            Some(number) => reports(&self.found, [number]),
            None => {
                let last = self.found.tops().min(self.chosen.slowest);
                reports(&self.found, 1..=last)
            }
        }
    }
}
