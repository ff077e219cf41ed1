//! Shows what an analysis found.
//!
//! - [`text`]: for a terminal.
//! - [`html`]: one page with everything in it, for a browser.
//! - [`perfetto`]: a trace for <https://ui.perfetto.dev>.
//! - [`openmetrics`]: for Prometheus and what else reads its format.
//! - [`json`]: all of it, for programs.
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
