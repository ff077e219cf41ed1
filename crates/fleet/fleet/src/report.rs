//! What was found, as files for other programs.
//!
//! - [`html`]: one page with everything in it, for a browser.
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

/// Which requests a report is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chosen {
    /// The request of this number, by time; `None`: the slowest.
    pub request: Option<usize>,
    /// How many of the slowest are written where no number is given.
    pub slowest: usize,
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The traces do not have it.
    #[error(transparent)]
    Fleet(#[from] FleetError),
    /// It cannot be written.
    #[error("the report cannot be written: {0}; check the space left")]
    Output(#[from] io::Error),
}

/// What reports are made of.
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

    /// The requests that are written, the slowest first.
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
