//! Records the activity of threads, journals and disks, by eBPF programs on the kernel's tracepoints.
//!
//! The programs are in `bpf/`, by topic; `bpf/events.h` has the layouts that they share with `record`. A recording:
//!
//! - `capability` detects what this kernel has and what this process may do;
//! - `filter` and `syscalls` become the programs' constants, `load` loads and attaches them;
//! - `drain` takes their records and sums out on a separate thread. `decode` and `sums` make rows of `luc_events` of
//!   them, `stacks` names the causes of waits, `mounts` the file systems;
//! - a [`Sink`] takes the rows: [`StoreSink`] writes them into a trace, [`RingSink`] into the traces of a ring,
//!   [`Forward`] sends them to another thread.
//!
//! With [`Options::network`] it also records connections of TCP and unix sockets, messages and packets. `clock_sample`
//! then reads the clocks. `asleep` has the causes of sleeps at the beginning and at the end of the trace. `starts`
//! finds the functions of threads, by `elf`, and `program` the programs of processes. In the summary mode `exchanges`
//! has sums of the times of requests instead.
//!
//! With [`Options::counters`] the counters of the processors are read for each recorded thread: `counters` opens them.
//!
//! Apart from recordings, [`contention`] adds up the use of disks by watched tasks, in memory that it maps.
//!
//! Nothing is pinned in the kernel: when the process ends in any way, the kernel frees everything.

mod asleep;
mod capability;
mod clock;
mod clock_sample;
pub mod contention;
mod counters;
mod decode;
mod drain;
mod elf;
mod error;
mod exchanges;
mod filter;
mod forward;
#[cfg(test)]
mod layout;
mod load;
mod messages;
mod mounts;
mod outcome;
mod program;
mod record;
mod recorder;
mod ring;
mod signals;
mod sink;
mod stacks;
mod starts;
mod sums;
mod symbols;
mod syscalls;
mod tracepoints;
mod unpreempted;

pub use capability::{Capability, Network};
pub use counters::CounterList;
pub use error::ProbeError;
pub use filter::Filter;
pub use forward::Forward;
pub use outcome::Outcome;
pub use recorder::{Mode, Options, Recorder};
pub use ring::{RingOptions, RingSink};
pub use signals::spawn_without_signals;
pub use sink::{Sink, StoreSink};
