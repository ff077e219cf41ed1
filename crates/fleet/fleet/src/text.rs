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

use crate::counters::Counters;
use crate::explain::Explanation;
use crate::fit::Fit;
use crate::why::WhyReport;
use style::Style;

/// Prints a result with [`fmt::Display`].
#[derive(Debug, Clone, Copy)]
pub struct Text<'a, T> {
    pub what: &'a T,
    /// Whether to use colours, as for a terminal.
    pub colours: bool,
}

impl fmt::Display for Text<'_, Fit> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let style = Style(self.colours);
        hosts::write(f, style, &self.what.hosts, &self.what.left_out)?;
        clocks::write(f, style, &self.what.pairs, &self.what.unrelated)?;
        clocks::write_contradiction(f, self.what.contradiction.as_deref())
    }
}

impl fmt::Display for Text<'_, Explanation> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let style = Style(self.colours);
        hosts::write(f, style, &self.what.hosts, &self.what.left_out)?;
        findings::write(f, style, &self.what.findings)?;
        explanation::write(f, style, self.what)
    }
}

impl fmt::Display for Text<'_, WhyReport> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        why::write(f, Style(self.colours), self.what)
    }
}

impl fmt::Display for Text<'_, Counters> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        counters::write(f, Style(self.colours), self.what)
    }
}
