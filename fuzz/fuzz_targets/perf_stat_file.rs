//! Any text in place of what perf stat wrote: no panic, one line of refusal, and figures that are figures.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| luc_fuzz::counters(data));
