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
//!
//! # Recording for many hosts
//!
//! In `bpf/`, for [`Options::network`]:
//!
//! - `net.h` sees TCP connections begin and end; `connection.h` turns sequence numbers into offsets of a stream.
//! - `storage.h` makes what is remembered of a socket, also where several recorders meet it at once.
//! - `message.h` sees who sent and received which bytes; `talker.h` has the threads that send.
//! - `token.h` finds names of requests in the bytes.
//! - `local.h` remembers unix sockets. `local_trace.h` counts their bytes, before Linux 6.3 `local_call.h`. `pipe.h`
//!   does the same of pipes.
//! - `packet.h` keeps few packets of many, the same ones on both hosts.
//! - `asleep.h` says who sleeps when a recording begins and ends.
//! - `counter.h` reads the processors' counters for each recorded thread.
//! - `exchange.h` counts how long requests took, in sums; in the summary mode nothing else of these is loaded.
//! - `batch.h` has many rows leave the kernel at once; `events_net.h` has their layouts.
//!
//! # Recording into a ring
//!
//! `ring` puts a row into the segment of its time. `ring/standing` remembers what there is, and each segment begins
//! with it. At a cut `drain` has the kernel say all of it once more.

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
