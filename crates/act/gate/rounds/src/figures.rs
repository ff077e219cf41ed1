//! Figures of one `luc run`: counted by the preload library, read for the report.

pub mod histogram;
pub mod participants;
pub mod segment;

pub use segment::{CallKind, FileSystemFigures, RunFigures};
