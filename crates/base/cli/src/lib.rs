//! Command lines, failures, JSON, shell completion and manual pages, in one way for all programs.
//!
//! [`parse`] reads a command line, or has a [`ParseRefusal`] with the mistake in one line. [`finish`] and [`fail`] end
//! a program: text that standard output refuses is an error, a reader that has gone (`luc ... | head`) is none. Figures
//! go to standard output by [`print_json`], to a file by [`JsonFile`].

#[macro_use]
extern crate luc_units;

mod command_line_mistake;
#[cfg(feature = "manual")]
mod completions_and_manual;
mod json_file;
mod program_end;

#[cfg(feature = "manual")]
pub use completions_and_manual::{Shell, print_script, script, write_pages};
pub use json_file::{JsonError, JsonFile, print_json, write_json};
pub use program_end::{ParseRefusal, fail, finish, parse};
