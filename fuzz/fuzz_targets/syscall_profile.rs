//! Any text in place of a profile of system calls, or of a container's state: no panic, one line of refusal, and no
//! other call is touched.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| luc_fuzz::profile(data));
