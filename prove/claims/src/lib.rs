//! Claims about the figures of a sweep: parses them, judges them by the figures, and makes the page with the verdicts.
//!
//! - `claims`: the file of claims.
//! - `expression`: the language of claims.
//! - `figures`: figures of a repeat, computed from its counters.
//! - `data` and `series`: repeats by their axes, and along one axis.
//! - `scope` and `functions`: evaluation.
//! - `page`: targets, findings and tables on a page ([`luc_harness::report`]).
//! - `criterion`: when a ratio is not slower, and rounds that this takes.
//! - `choice`: the best of each side, chosen and judged on different rounds.
//! - `part`: pages of raw data that are no sweep's.
//! - `papers`: a paper's claims, judged by the raw data of plans' pages.

mod choice;
mod claims;
pub mod criterion;
mod data;
mod error;
mod expression;
mod figures;
mod functions;
mod page;
mod papers;
mod part;
mod scope;
mod series;
mod value;

pub use claims::Claims;
pub use data::{Data, Later, Point};
pub use error::ClaimsError;
pub use page::page;
pub use papers::Paper;
pub use part::PartPage;
