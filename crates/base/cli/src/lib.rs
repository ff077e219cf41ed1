//! Command lines, failures, JSON, shell completion and manual pages, in one way for all programs.
//!
//! [`parse`] reads a command line, or has a [`Refusal`] with the mistake in one line. [`finish`] and [`fail`] end a
//! program: text that standard output refuses is an error, a reader that has gone (`luc ... | head`) is none. Figures go
//! to standard output by [`print_json`], to a file by [`JsonFile`].

#[macro_use]
extern crate luc_units;

mod end;
mod json;
#[cfg(feature = "manual")]
mod manual;
mod mistake;

pub use end::{Refusal, fail, finish, parse};
pub use json::{JsonError, JsonFile, print_json, write_json};
#[cfg(feature = "manual")]
pub use manual::{Shell, print_script, script, write_pages};
