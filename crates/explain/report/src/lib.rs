//! Formats of an analysis' report.
//!
//! - [`text`]: for a terminal.
//! - [`html`]: one page for a browser.
//! - [`perfetto`]: a trace for <https://ui.perfetto.dev>.
//! - [`openmetrics`]: for Prometheus and other readers of its format.
//! - [`json`]: the whole report, for programs.
//! - [`export`]: what these have in common. [`atomic_file`]: files that appear whole or not at all.

pub mod atomic_file;
mod evidence_text;
pub mod export;
pub mod html;
pub mod json;
pub mod openmetrics;
pub mod perfetto;
#[cfg(test)]
mod random_traces;
pub mod text;

pub use export::{ReportExport, ReportExports};
pub use text::ReportText;
