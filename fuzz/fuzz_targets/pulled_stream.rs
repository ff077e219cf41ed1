//! Any bytes in place of what another host sends of its ring: no panic, and only files of segments, within bounds.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| luc_fuzz::pulled(data));
