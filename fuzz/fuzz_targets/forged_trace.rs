//! A whole trace, changed with checksums that are right: no panic that is not contained, no hang.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| luc_fuzz::forged(data));
