//! A trace for <https://ui.perfetto.dev>, in its native protobuf, streamed while the analysis runs.
//!
//! - Each process has its threads, and each thread its calls as slices. Inside a call are its parts, named as in
//!   reports. A track below has all times off the processor, by cause.
//! - Each journal has its commits with their phases, and two counters: fsyncs served and bytes of data per commit.
//! - The work in a commit is on a track of the process that did it. Its slice lasts as long as the transaction
//!   collected work.
//! - Flows tie a call to the commits that it waited for, and a commit to the work in it.
//!
//! Slices of a track are in order and do not overlap, for any trace: overlaps are cut. Memory is bounded by threads,
//! processes and 1,024 commits per journal.

use std::io::{self, Write};
use std::ops::Range;

use luc_events::event_kinds::SyncKind;
use luc_events::tables::{MountedFileSystem, OffCpuWait, ThreadInfo, TraceDescription};
use luc_events::{Dev, Transaction};
use luc_explain::{AnalysisObserver, ExplainedCall, ExplainedCommit, ExplainedSync, TraceReport};

use crate::ReportExport;

mod journal_tracks;
pub mod packets;
mod protobuf_message;
mod thread_tracks;
mod track_id;

use journal_tracks::JournalTracks;
use packets::PacketWriter;
use thread_tracks::{CallSlice, ThreadTracks};

/// Writer of a trace for Perfetto.
#[derive(Debug)]
pub struct PerfettoWriter<W> {
    packets: PacketWriter<W>,
    threads: ThreadTracks,
    journals: JournalTracks,
    next_flow: u64,
}

impl<W: Write> PerfettoWriter<W> {
    /// Begins the Perfetto trace of a trace.
    pub fn new(trace: &TraceDescription, out: W) -> Self {
        let (boottime_ns, realtime_ns) = (trace.boottime_offset_ns, trace.realtime_offset_ns);
        Self {
            packets: PacketWriter::new(out, trace.start_ns, boottime_ns, realtime_ns),
            threads: ThreadTracks::default(),
            journals: JournalTracks::default(),
            next_flow: 1,
        }
    }

    /// Makes flows from a call to the commits that it waited for.
    fn flows(&mut self, dev: Dev, call_ns: Range<u64>, waited: &[(Transaction, u64)]) -> Vec<u64> {
        let mut flows = Vec::new();
        for &(transaction, _) in waited {
            if self.journals.tie(dev, transaction, &call_ns, self.next_flow) {
                flows.push(self.next_flow);
                self.next_flow += 1;
            }
        }
        flows
    }
}

impl<W: Write> AnalysisObserver for PerfettoWriter<W> {
    fn sync(&mut self, sync: &ExplainedSync<'_>) {
        let row = sync.row;
        if let Some(own) = sync.own {
            self.journals.served(own);
        }
        let flows = self.flows(row.dev, row.enter_ns..row.exit_ns, sync.waited);
        let slice = CallSlice {
            name: row.kind.name(),
            enter_ns: row.enter_ns,
            exit_ns: row.exit_ns,
            pieces: sync.pieces.to_vec(),
            flows,
            dev: row.dev,
            inode: row.inode.0,
            bytes: 0,
            errno: row.errno,
        };
        let thread = (row.thread, row.process);
        if row.kind == SyncKind::SyncWrite {
            // The write that it is a part of comes next.
            self.threads.hold(&mut self.packets, thread, slice);
        } else {
            self.threads.call(&mut self.packets, thread, slice);
        }
    }

    fn call(&mut self, call: &ExplainedCall<'_>) {
        let row = call.row;
        let flows = self.flows(row.dev, row.enter_ns..row.exit_ns, call.waited);
        let slice = CallSlice {
            name: row.kind.name(),
            enter_ns: row.enter_ns,
            exit_ns: row.exit_ns,
            pieces: call.pieces.to_vec(),
            flows,
            dev: row.dev,
            inode: row.inode.0,
            bytes: row.bytes,
            errno: row.errno,
        };
        let thread = (row.thread, row.process);
        self.threads.call(&mut self.packets, thread, slice);
    }

    fn commit(&mut self, commit: &ExplainedCommit<'_>) {
        let Self { packets, threads, journals, next_flow } = self;
        journals.commit(packets, threads, next_flow, commit);
    }

    fn wait(&mut self, row: &OffCpuWait) {
        self.threads.wait(&mut self.packets, row);
    }

    fn task(&mut self, row: &ThreadInfo) {
        self.threads.task(&mut self.packets, row);
    }

    fn file_system(&mut self, row: &MountedFileSystem) {
        self.journals.file_system(row);
    }
}

impl<W: Write> ReportExport for PerfettoWriter<W> {
    fn finish(mut self: Box<Self>, _report: &TraceReport) -> io::Result<()> {
        self.threads.finish(&mut self.packets);
        self.journals.finish(&mut self.packets, &mut self.threads, &mut self.next_flow);
        self.packets.finish()
    }
}

#[cfg(test)]
mod tests;
