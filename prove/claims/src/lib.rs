//! Claims about the figures of a sweep: parses them, judges them by the figures, and makes the page with the verdicts.
//!
//! - `claims`: the file of claims.
//! - `expression`: the language of claims.
//! - `figures`: figures of a repeat, computed from its counters.
//! - `data` and `series`: repeats by their axes, and along one axis.
//! - `scope` and `functions`: evaluation.
//! - `page`: targets, findings and tables on a page ([`luc_harness::report`]).
//! - `part`: pages of raw data that are no sweep's.

mod claims;
mod data;
mod error;
mod expression;
mod figures;
mod functions;
mod page;
mod part;
mod scope;
mod series;
mod value;

pub use claims::Claims;
pub use data::{Data, Point};
pub use error::ClaimsError;
pub use page::page;
pub use part::PartPage;
