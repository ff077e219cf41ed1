//! Containers: luc makes a profile of system calls ([`seccomp_profile`]), by which their runtime puts them under a
//! filter. The runtime hands the filter's listener to `lucd`.
//!
//! - [`seccomp_profile`]: the profile, pure; [`runtime_support`]: asks a runtime whether it can do what the profile
//!   demands.
//! - [`profile_file`]: makes a profile's file from another one.
//! - [`container_state`]: the state of a container, as its runtime sends it and as `lucd` keeps it.

pub mod container_state;
pub mod profile_file;
mod profile_refusal;
pub mod runtime_support;
pub mod seccomp_profile;

pub use profile_refusal::ProfileRefusal;
