//! `luc record --fleet` end to end: planted exchanges between network namespaces are compared with the rows of the
//! trace, byte for byte. Needs root, iproute2 and BTF; skipped, with the reason, where they are missing.

mod asleep;
mod exchanges;
mod guests;
mod local;
mod networks;
mod offsets;
mod pipes;
pub(crate) mod place;
mod programs;
mod ring;
mod running;
mod scope;
mod sums;
mod talk;
mod threads;
mod tokens;
mod trace;
