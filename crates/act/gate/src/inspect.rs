//! Decides before a run whether it can be gated: whether a preloaded library gets into the program, and whether the
//! files are on an ext4 journal. Nothing is changed and nothing is run.
//!
//! - [`resolve()`] finds a command as `execvp` would; [`program()`] decides whether it can be gated.
//! - [`filesystem`] finds the file system and the journal behind a path or a device.
//! - [`raw`] finds the journal behind a device inside a preloaded library.

mod elf;
mod error;
pub mod filesystem;
mod find_program;
pub mod program;
mod shebang;
#[cfg(test)]
mod tests;

pub use error::InspectError;
pub use find_program::resolve;
pub use luc_rounds::journal_lookup as raw;
pub use program::{Gateability, Privilege, program};
