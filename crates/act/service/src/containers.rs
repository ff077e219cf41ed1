//! Containers: their runtime puts them under a filter, by a profile of system calls that luc makes ([`profile`]), and
//! hands the filter's listener to `lucd`.
//!
//! - [`profile`]: the profile, pure; [`runtime`]: whether a runtime can do what it asks for.
//! - [`mod@file`]: from a file to a file.
//! - [`state`]: what a runtime says of a container, and what `lucd` keeps of it.

mod error;
pub mod file;
pub mod profile;
pub mod runtime;
pub mod state;

pub use error::ContainerError;
