//! Tracks of processes and threads.

use std::collections::HashMap;
use std::io::Write;

use luc_events::event_kinds::WaitState;
use luc_events::tables::{OffCpuWait, ThreadInfo};
use luc_events::{Dev, Pid, Tgid};
use luc_explain::CallTimePart;

use super::packets::{PacketWriter, SliceBegin, TrackKind};
use super::track_id::TrackId;

/// Call of a thread as a slice of a Perfetto trace.
#[derive(Debug, Default)]
pub(super) struct CallSlice {
    pub(super) name: &'static str,
    pub(super) enter_ns: u64,
    pub(super) exit_ns: u64,
    /// Parts of the call, in order.
    pub(super) pieces: Vec<(CallTimePart, u64)>,
    pub(super) flows: Vec<u64>,
    pub(super) dev: Dev,
    pub(super) inode: u64,
    pub(super) bytes: u64,
    pub(super) errno: u32,
}

#[derive(Debug, Default)]
struct Thread {
    name: String,
    /// Whether its track has been described. Threads that do nothing have no track.
    has_track: bool,
    /// End of the last written call.
    calls_ns: u64,
    /// End of the last written time off the processor.
    off_ns: u64,
    has_off_track: bool,
    /// A sync that may be part of the next call.
    held: Option<CallSlice>,
}

/// Names and tracks of threads and processes.
#[derive(Debug, Default)]
pub(super) struct ThreadTracks {
    threads: HashMap<Pid, Thread>,
    processes: HashMap<Tgid, Process>,
}

#[derive(Debug, Default)]
struct Process {
    name: String,
    has_track: bool,
}

impl Process {
    fn describe<W: Write>(&self, packets: &mut PacketWriter<W>, process: Tgid) {
        let (pid, name) = (process.0, self.name.as_str());
        packets.describe(TrackId::Process.uuid(pid), TrackKind::Process { pid, name });
    }
}

impl ThreadTracks {
    /// Names a thread. A process has the name of its main thread, or of the first if that is unknown.
    pub(super) fn task<W: Write>(&mut self, packets: &mut PacketWriter<W>, row: &ThreadInfo) {
        let is_main = row.process.0 == row.thread.0;
        let process = self.processes.entry(row.process).or_default();
        if process.name != row.comm && (is_main || process.name.is_empty()) {
            process.name.clone_from(&row.comm);
            if process.has_track {
                process.describe(packets, row.process);
            }
        }
        let thread = self.threads.entry(row.thread).or_default();
        if thread.name != row.comm {
            thread.name.clone_from(&row.comm);
            if thread.has_track {
                thread.describe(packets, row.thread, row.process);
            }
        }
    }

    pub(super) fn process<W: Write>(
        &mut self,
        packets: &mut PacketWriter<W>,
        process: Tgid,
    ) -> u64 {
        let found = self.processes.entry(process).or_default();
        if !found.has_track {
            found.has_track = true;
            found.describe(packets, process);
        }
        TrackId::Process.uuid(process.0)
    }

    fn thread<W: Write>(
        &mut self,
        packets: &mut PacketWriter<W>,
        (thread, process): (Pid, Tgid),
    ) -> &mut Thread {
        self.process(packets, process);
        let found = self.threads.entry(thread).or_default();
        if !found.has_track {
            found.has_track = true;
            found.describe(packets, thread, process);
        }
        found
    }

    /// Keeps a call back until the next one of its thread is known.
    pub(super) fn hold<W: Write>(
        &mut self,
        packets: &mut PacketWriter<W>,
        id: (Pid, Tgid),
        slice: CallSlice,
    ) {
        let thread = self.thread(packets, id);
        if let Some(held) = thread.held.replace(slice) {
            thread.write(packets, id.0, &held, None);
        }
    }

    /// Writes a call, and before it or inside it the call that was kept back.
    pub(super) fn call<W: Write>(
        &mut self,
        packets: &mut PacketWriter<W>,
        id: (Pid, Tgid),
        slice: CallSlice,
    ) {
        let thread = self.thread(packets, id);
        match thread.held.take() {
            Some(held) if slice.enter_ns <= held.enter_ns && held.exit_ns <= slice.exit_ns => {
                thread.write(packets, id.0, &slice, Some(&held));
            }
            held => {
                if let Some(held) = held {
                    thread.write(packets, id.0, &held, None);
                }
                thread.write(packets, id.0, &slice, None);
            }
        }
    }

    /// Writes a time off the processor.
    pub(super) fn wait<W: Write>(&mut self, packets: &mut PacketWriter<W>, row: &OffCpuWait) {
        let id = (row.thread, row.process);
        let thread = self.thread(packets, id);
        let track = TrackId::OffProcessor.uuid(row.thread.0);
        if !thread.has_off_track {
            thread.has_off_track = true;
            let parent = Some(TrackId::Thread.uuid(row.thread.0));
            let name = "off the processor";
            packets.describe(track, TrackKind::Named { parent, name });
        }
        let off_ns = row.off_ns.max(thread.off_ns);
        let on_ns = row.on_ns.max(off_ns);
        thread.off_ns = on_ns;
        let name = match row.state {
            WaitState::Preempted => "preempted",
            _ => row.cause.name(),
        };
        packets.begin(
            track,
            off_ns,
            &SliceBegin {
                name,
                category: "wait",
                numbers: &[("woken by thread", u64::from(row.waker.0))],
                words: &[("state", row.state.name())],
                ..SliceBegin::default()
            },
        );
        if row.woken_ns > 0 && row.state != WaitState::Preempted {
            let begin = SliceBegin {
                name: CallTimePart::Runnable.name(),
                category: "wait",
                ..SliceBegin::default()
            };
            packets.begin(track, row.woken_ns.clamp(off_ns, on_ns), &begin);
            packets.end(track, on_ns);
        }
        packets.end(track, on_ns);
    }

    /// Writes all calls that were kept back.
    pub(super) fn finish<W: Write>(&mut self, packets: &mut PacketWriter<W>) {
        for (&pid, thread) in &mut self.threads {
            if let Some(held) = thread.held.take() {
                thread.write(packets, pid, &held, None);
            }
        }
    }
}

impl Thread {
    fn describe<W: Write>(&self, packets: &mut PacketWriter<W>, thread: Pid, process: Tgid) {
        let uuid = TrackId::Thread.uuid(thread.0);
        if thread.is_none() {
            let name = "thread not known";
            packets.describe(uuid, TrackKind::Named { parent: None, name });
            return;
        }
        let kind = TrackKind::Thread { pid: process.0, tid: thread.0, name: &self.name };
        packets.describe(uuid, kind);
    }

    /// Writes a call with its parts, and a call inside it.
    fn write<W: Write>(
        &mut self,
        packets: &mut PacketWriter<W>,
        pid: Pid,
        slice: &CallSlice,
        inner: Option<&CallSlice>,
    ) {
        let track = TrackId::Thread.uuid(pid.0);
        let begin_ns = slice.enter_ns.max(self.calls_ns);
        let end_ns = slice.exit_ns.max(begin_ns);
        let dev = slice.dev.to_string();
        let mut numbers = vec![("inode", slice.inode)];
        if slice.bytes > 0 {
            numbers.push(("bytes", slice.bytes));
        }
        if slice.errno > 0 {
            numbers.push(("errno", u64::from(slice.errno)));
        }
        packets.begin(
            track,
            begin_ns,
            &SliceBegin {
                name: slice.name,
                category: "call",
                flows: &slice.flows,
                numbers: &numbers,
                words: &[("file system", &dev)],
            },
        );
        self.calls_ns = begin_ns;
        let mut at_ns = slice.enter_ns;
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for &(part, ns) in &slice.pieces {
            let until_ns = at_ns.saturating_add(ns);
            match inner {
                Some(inner) if at_ns >= inner.exit_ns => after.push((part, at_ns, until_ns)),
                Some(inner) => before.push((part, at_ns, until_ns.min(inner.enter_ns))),
                None => before.push((part, at_ns, until_ns)),
            }
            at_ns = until_ns;
        }
        self.parts(packets, track, &before, end_ns);
        if let Some(inner) = inner {
            self.write(packets, pid, inner, None);
        }
        self.parts(packets, track, &after, end_ns);
        packets.end(track, end_ns.max(self.calls_ns));
        self.calls_ns = end_ns.max(self.calls_ns);
    }

    /// Writes parts, except for running.
    fn parts<W: Write>(
        &mut self,
        packets: &mut PacketWriter<W>,
        track: u64,
        parts: &[(CallTimePart, u64, u64)],
        end_ns: u64,
    ) {
        for &(part, from_ns, until_ns) in parts {
            let (from_ns, until_ns) = (from_ns.max(self.calls_ns), until_ns.min(end_ns));
            if part == CallTimePart::Running || from_ns >= until_ns {
                continue;
            }
            let begin = SliceBegin { name: part.name(), category: "part", ..SliceBegin::default() };
            packets.begin(track, from_ns, &begin);
            packets.end(track, until_ns);
            self.calls_ns = until_ns;
        }
    }
}
