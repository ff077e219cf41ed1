//! Containers: luc makes a profile of system calls ([`profile`]), by which their runtime puts them under a filter.
//! The runtime hands the filter's listener to `lucd`.
//!
//! - [`profile`]: the profile, pure; [`runtime`]: asks a runtime whether it can do what the profile demands.
//! - [`mod@file`]: makes a profile's file from another one.
//! - [`state`]: the state of a container, as its runtime sends it and as `lucd` keeps it.

mod error;
pub mod file;
pub mod profile;
pub mod runtime;
pub mod state;

pub use error::ContainerError;
