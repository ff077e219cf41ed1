//! Figures of one `luc run`: counted by the preload library, read for the report.

pub mod participants;
pub mod run_figures;
pub mod shared_histogram;

pub use run_figures::{FileSystemFigures, GatedCallKind, RunFigures};
