//! `luc record --fleet` end to end: planted exchanges between network namespaces are compared with the rows of the
//! trace, byte for byte. Needs root, iproute2 and BTF; skipped, with the reason, where they are missing.

mod compiled_programs;
mod exchanges;
mod filters_and_modes;
mod guests;
mod latency_sums;
mod network_effects;
mod pipes;
mod planted_exchange;
mod request_tokens;
mod ring;
mod running_program;
mod sequence_offsets;
mod sleeping_threads;
mod start_routines;
mod trace_checks;
pub(crate) mod two_hosts;
mod unix_sockets;
