//! `luc.ko` in virtual machines: loaded and unloaded under load, what it gains, what it refuses.

#[path = "../guest/common.rs"]
mod common;

mod awaited;
mod copy_out;
mod gain;
mod load;
mod module;
mod stretch;
mod unknown;
