//! Any rows of many hosts in place of what recorders wrote: no panic, and no edge that a plain look does not find.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| luc_fuzz::fleet(data));
