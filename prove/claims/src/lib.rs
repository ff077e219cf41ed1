//! Claims about the figures of a sweep: what they are written in, whether the figures bear them out, and the page that
//! says so.
//!
//! `claims` is the file, `expression` parses what claims are written in, `figures` computes a repeat's figures of its
//! counters, `data` has the repeats by their axes, `series` along one axis, `scope` and `functions` evaluate, `page`
//! writes targets, findings and tables on a page ([`luc_harness::report`]).

mod claims;
mod data;
mod error;
mod expression;
mod figures;
mod functions;
mod page;
mod scope;
mod series;
mod value;

pub use claims::Claims;
pub use data::{Data, Point};
pub use error::ClaimsError;
pub use page::page;
