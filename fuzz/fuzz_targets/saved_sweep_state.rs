//! Any text in place of what a sweep has saved of devices, processors and itself.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| luc_fuzz::saved(data));
