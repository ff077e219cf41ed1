//! Shows what an analysis found.
//!
//! - [`text`]: for a terminal.
//! - [`figures`]: times, shares and the like, as people read them.

pub mod figures;
pub mod text;

pub use text::Text;
