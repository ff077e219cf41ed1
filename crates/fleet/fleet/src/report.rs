//! Writes requests as files for other programs.
//!
//! - [`html`]: one page with all results, for a browser.
//! - [`perfetto`]: a trace for <https://ui.perfetto.dev>.
//! - [`otlp`]: the slowest requests as spans for OpenTelemetry.

mod calls;
pub mod html;
pub mod otlp;
pub mod perfetto;

use std::io;

use crate::error::FleetError;
use crate::explain::{Found, RequestReport, reports};
use crate::joined::Joined;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chosen {
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
pub struct Report<'a> {
    found: Found<'a>,
    chosen: Chosen,
}

impl<'a> Report<'a> {
    /// Finds messages and requests in the traces.
    ///
    /// # Errors
    /// [`FleetError::NoSuchRequest`], [`FleetError::Tree`].
    pub fn new(joined: &'a Joined, chosen: Chosen) -> Result<Self, FleetError> {
        let found = Found::new(joined)?;
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
