//! Records the activity of threads, journals and disks, by eBPF programs on the kernel's tracepoints.
//!
//! The programs are in `bpf/`, by topic; `bpf/event_layouts.h` has the layouts that they share with `ring_records`. A
//! recording:
//!
//! - `recording_capability` detects what this kernel has and what this process may do;
//! - `recording_filter` and `syscall_classes` become the programs' constants, `load_programs` loads and attaches them;
//! - `recorder_thread` takes their records and sums out on a separate thread. `decode` and `map_pairs` make rows of
//!   `luc_events` of them, `kernel_stacks` names the causes of waits, `mounted_file_systems` the file systems;
//! - a [`RowSink`] takes the rows: [`StoreSink`] writes them into a trace, [`RingSink`] into the traces of a ring,
//!   [`ForwardingSink`] sends them to another thread.
//!
//! With [`RecorderOptions::network`] it also records connections of TCP and unix sockets, messages and packets.
//! `clock_sample` then reads the clocks. `sleeping_threads` has the causes of sleeps at the beginning and at the end of
//! the trace. `thread_starts` finds the functions of threads, by `elf_symbols`, and `process_program` the programs of
//! processes. In the summary mode `exchange_sums` has sums of the times of requests instead.
//!
//! With [`RecorderOptions::counters`] the counters of the processors are read for each recorded thread: `open_counters`
//! opens them.
//!
//! Apart from recordings, [`disk_contention`] adds up the use of disks by watched tasks, in memory that it maps.
//!
//! Nothing is pinned in the kernel: when the process ends in any way, the kernel frees everything.
//!
//! # Recording for many hosts
//!
//! In `bpf/`, for [`RecorderOptions::network`]:
//!
//! - `tcp_connections.h` sees TCP connections begin and end; `tcp_sequence_offsets.h` turns sequence numbers into
//!   offsets of a stream.
//! - `map_storage.h` makes what is remembered of a socket, also where several recorders meet it at once.
//! - `socket_messages.h` sees who sent and received which bytes; `message_rows.h` has the threads that send.
//! - `request_tokens.h` finds names of requests in the bytes.
//! - `unix_sockets.h` remembers unix sockets. `unix_socket_tracepoints.h` counts their bytes, before Linux 6.3
//!   `unix_socket_calls.h`. `pipes.h` does the same of pipes.
//! - `tcp_packets.h` keeps few packets of many, the same ones on both hosts.
//! - `sleeping_threads.h` says who sleeps when a recording begins and ends.
//! - `hardware_counts.h` reads the processors' counters for each recorded thread.
//! - `request_times.h` counts how long requests took, in sums; in the summary mode nothing else of these is loaded.
//! - `row_batches.h` has many rows leave the kernel at once; `network_layouts.h` has their layouts.
//!
//! # Recording into a ring
//!
//! `ring_sink` puts a row into the segment of its time. `ring_sink/standing_rows` remembers threads, connections and files
//! that are there: each segment begins with their rows. At a cut `recorder_thread` has the kernel list all of them anew.

mod block_signals;
mod clock_sample;
mod decode;
mod describe_trace;
pub mod disk_contention;
mod elf_symbols;
mod error;
mod exchange_sums;
mod forwarding_sink;
mod kernel_stacks;
mod kernel_symbols;
#[cfg(test)]
mod layout_check;
mod libbpf_messages;
mod load_programs;
mod map_pairs;
mod mounted_file_systems;
mod open_counters;
mod preemption_guard;
mod process_program;
mod recorder;
mod recorder_thread;
mod recording_capability;
mod recording_filter;
mod recording_outcome;
mod ring_records;
mod ring_sink;
mod row_sink;
mod sleeping_threads;
mod syscall_classes;
mod thread_starts;
mod tracepoints;

pub use block_signals::spawn_without_signals;
pub use error::ProbeError;
pub use forwarding_sink::ForwardingSink;
pub use open_counters::CounterList;
pub use recorder::{Recorder, RecorderOptions, RecordingDetail};
pub use recording_capability::{NetworkRecording, RecordingCapability};
pub use recording_filter::RecordingFilter;
pub use recording_outcome::RecordingOutcome;
pub use ring_sink::{RingOptions, RingSink};
pub use row_sink::{RowSink, StoreSink};
