//! Virtual machines from end to end. Where QEMU, a kernel or its headers cannot be had, each test prints
//! `skipped: why`.

mod cable;
mod guest_faults;
mod guest_fixtures;
mod lagdisk;
mod repeatable_time;
mod script_results;
