//! Shows what an analysis found.
//!
//! - [`text`]: for a terminal.
//! - [`top`]: live, in a terminal or line by line.
//! - [`figures`]: times, shares and the like, as people read them.

pub mod figures;
pub mod text;
pub mod top;

pub use text::Text;
