//! A whole trace, damaged: an error that says where, or the same report.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| luc_fuzz::damaged(data));
