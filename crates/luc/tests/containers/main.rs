//! `luc oci-profile`.

#[path = "../common/mod.rs"]
mod common;
mod profile;
