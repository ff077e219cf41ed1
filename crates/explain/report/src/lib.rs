//! Formats of an analysis' report.
//!
//! - [`text`]: for a terminal.
//! - [`html`]: one page for a browser.
//! - [`perfetto`]: a trace for <https://ui.perfetto.dev>.
//! - [`openmetrics`]: for Prometheus and other readers of its format.
//! - [`json`]: the whole report, for programs.
//! - [`export`]: what these have in common. [`output`]: files that appear whole or not at all.

mod evidence;
pub mod export;
pub mod html;
pub mod json;
pub mod openmetrics;
pub mod output;
pub mod perfetto;
#[cfg(test)]
mod random;
pub mod text;

pub use export::{Export, Exports};
pub use text::Text;
