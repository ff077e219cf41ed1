//! `luc.ko` in virtual machines: loaded and unloaded under load, what it gains, what it refuses.

#[path = "../guest/guest_fixtures.rs"]
mod common;

mod awaited_commit;
mod batching_gain;
mod copy_out;
mod load_under_io;
mod module_under_test;
mod stretched_times;
mod unknown_kernels;
