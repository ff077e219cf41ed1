//! Virtual machines from end to end. Where QEMU, a kernel or its headers cannot be had, each test prints
//! `skipped: why`.

mod cable;
mod common;
mod faults;
mod lagdisk;
mod repeat;
mod results;
