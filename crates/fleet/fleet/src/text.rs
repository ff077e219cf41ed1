//! Prints results for people.

mod clocks;
mod counters;
mod explanation;
pub(crate) mod findings;
mod hosts;
pub(crate) mod request;
pub(crate) mod style;
mod table;
mod why;

use std::fmt;

use crate::clock_fit_report::ClockFitReport;
use crate::counters::CountersReport;
use crate::explain::FleetExplanation;
use crate::why_command::WhyReport;
use style::TextStyle;

/// Prints a result with [`fmt::Display`].
#[derive(Debug, Clone, Copy)]
pub struct ResultText<'a, T> {
    pub what: &'a T,
    /// Whether to use colours, as for a terminal.
    pub colours: bool,
}

impl fmt::Display for ResultText<'_, ClockFitReport> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let style = TextStyle(self.colours);
        hosts::write(f, style, &self.what.hosts, &self.what.left_out)?;
        clocks::write(f, style, &self.what.pairs, &self.what.unrelated)?;
        clocks::write_contradiction(f, self.what.contradiction.as_deref())
    }
}

impl fmt::Display for ResultText<'_, FleetExplanation> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let style = TextStyle(self.colours);
        hosts::write(f, style, &self.what.hosts, &self.what.left_out)?;
        findings::write(f, style, &self.what.findings)?;
        explanation::write(f, style, self.what)
    }
}

impl fmt::Display for ResultText<'_, WhyReport> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        why::write(f, TextStyle(self.colours), self.what)
    }
}

impl fmt::Display for ResultText<'_, CountersReport> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        counters::write(f, TextStyle(self.colours), self.what)
    }
}
