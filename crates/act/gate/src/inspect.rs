//! Says before a run whether it can be gated: can a preloaded library get into the program, and is
//! there an ext4 journal below the files. Nothing is changed and nothing is run.
//!
//! - [`resolve()`] finds a command as `execvp` would; [`program()`] says whether it can be gated.
//! - [`filesystem`] says which file system and journal stand behind a path or a device.
//! - [`raw`] answers the same about a device inside a preloaded library.

mod elf;
mod error;
pub mod filesystem;
pub mod program;
mod resolve;
mod script;
#[cfg(test)]
mod tests;

pub use error::InspectError;
pub use luc_rounds::journal as raw;
pub use program::{Gateability, Privilege, program};
pub use resolve::resolve;
