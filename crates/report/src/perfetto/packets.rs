//! The packets of a Perfetto trace, streamed to a writer. Field numbers: Perfetto's
//! `protos/perfetto/trace/trace_packet.proto`, `track_event/*.proto` and `clock_snapshot.proto`.

use std::io::{self, Write};

use super::encode::Message;

/// Trace.packet
const PACKET: u64 = 1;

/// TracePacket
const CLOCK_SNAPSHOT: u64 = 6;
const TIMESTAMP: u64 = 8;
const SEQUENCE_ID: u64 = 10;
const TRACK_EVENT: u64 = 11;
const SEQUENCE_FLAGS: u64 = 13;
const TRACK_DESCRIPTOR: u64 = 60;

/// TrackEvent
const ANNOTATIONS: u64 = 4;
const TYPE: u64 = 9;
const TRACK_UUID: u64 = 11;
const CATEGORIES: u64 = 22;
const NAME: u64 = 23;
const COUNTER_VALUE: u64 = 30;
const FLOW_IDS: u64 = 47;

const SLICE_BEGIN: u64 = 1;
const SLICE_END: u64 = 2;
const COUNTER: u64 = 4;

/// BuiltinClock
const REALTIME: u64 = 1;
const MONOTONIC: u64 = 3;
const BOOTTIME: u64 = 6;

/// All packets are of one sequence.
const SEQUENCE: u64 = 1;
const SEQ_INCREMENTAL_STATE_CLEARED: u64 = 1;

/// What a track is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind<'a> {
    Process { pid: u32, name: &'a str },
    Thread { pid: u32, tid: u32, name: &'a str },
    Named { parent: Option<u64>, name: &'a str },
    Counter { parent: u64, name: &'a str },
}

/// The beginning of a slice.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Begin<'a> {
    pub(super) name: &'a str,
    pub(super) category: &'a str,
    pub(super) flows: &'a [u64],
    pub(super) numbers: &'a [(&'a str, u64)],
    pub(super) words: &'a [(&'a str, &'a str)],
}

/// Where packets go. After an error it writes nothing more.
#[derive(Debug)]
pub(super) struct Packets<W> {
    out: W,
    error: Option<io::Error>,
    /// The packet being written.
    packet: Message,
    /// Perfetto's clock is CLOCK_BOOTTIME; add this to CLOCK_MONOTONIC.
    boottime_offset_ns: u64,
}

impl<W: Write> Packets<W> {
    /// Begins a trace. `at_ns`, in CLOCK_MONOTONIC, is when the clocks had these offsets.
    pub(super) fn new(
        out: W,
        at_ns: u64,
        boottime_offset_ns: u64,
        realtime_offset_ns: u64,
    ) -> Self {
        let mut packets = Self {
            out,
            error: None,
            packet: Message::default(),
            boottime_offset_ns,
        };
        packets.packet(|packet| {
            packet.uint(SEQUENCE_FLAGS, SEQ_INCREMENTAL_STATE_CLEARED);
            packet.message(CLOCK_SNAPSHOT, |snapshot| {
                for (clock, offset_ns) in [
                    (BOOTTIME, boottime_offset_ns),
                    (MONOTONIC, 0),
                    (REALTIME, realtime_offset_ns),
                ] {
                    snapshot.message(1, |entry| {
                        entry.uint(1, clock);
                        entry.uint(2, at_ns.saturating_add(offset_ns));
                    });
                }
            });
        });
        packets
    }

    /// Says what a track is, before its first event; again when its name changed.
    pub(super) fn describe(&mut self, uuid: u64, kind: Kind<'_>) {
        self.packet(|packet| {
            packet.message(TRACK_DESCRIPTOR, |track| {
                track.uint(1, uuid);
                match kind {
                    Kind::Process { pid, name } => track.message(3, |process| {
                        process.uint(1, u64::from(pid));
                        process.text(6, name);
                    }),
                    Kind::Thread { pid, tid, name } => track.message(4, |thread| {
                        thread.uint(1, u64::from(pid));
                        thread.uint(2, u64::from(tid));
                        thread.text(5, name);
                    }),
                    Kind::Named { parent, name } => {
                        track.text(2, name);
                        if let Some(parent) = parent {
                            track.uint(5, parent);
                        }
                    }
                    Kind::Counter { parent, name } => {
                        track.text(2, name);
                        track.uint(5, parent);
                        track.message(8, |_| ());
                    }
                }
            });
        });
    }

    pub(super) fn begin(&mut self, track: u64, at_ns: u64, begin: &Begin<'_>) {
        self.event(track, at_ns, SLICE_BEGIN, |event| {
            event.text(CATEGORIES, begin.category);
            event.text(NAME, begin.name);
            for &flow in begin.flows {
                event.fixed64(FLOW_IDS, flow);
            }
            for &(name, number) in begin.numbers {
                event.message(ANNOTATIONS, |annotation| {
                    annotation.text(10, name);
                    annotation.uint(3, number);
                });
            }
            for &(name, word) in begin.words {
                event.message(ANNOTATIONS, |annotation| {
                    annotation.text(10, name);
                    annotation.text(6, word);
                });
            }
        });
    }

    pub(super) fn end(&mut self, track: u64, at_ns: u64) {
        self.event(track, at_ns, SLICE_END, |_| ());
    }

    pub(super) fn count(&mut self, track: u64, at_ns: u64, value: u64) {
        self.event(track, at_ns, COUNTER, |event| {
            event.uint(COUNTER_VALUE, value.min(i64::MAX as u64));
        });
    }

    /// Ends the trace.
    pub(super) fn finish(mut self) -> io::Result<()> {
        match self.error {
            Some(error) => Err(error),
            None => self.out.flush(),
        }
    }

    fn event(&mut self, track: u64, at_ns: u64, kind: u64, fill: impl FnOnce(&mut Message)) {
        let at_ns = at_ns.saturating_add(self.boottime_offset_ns);
        self.packet(|packet| {
            packet.uint(TIMESTAMP, at_ns);
            packet.message(TRACK_EVENT, |event| {
                event.uint(TYPE, kind);
                event.uint(TRACK_UUID, track);
                fill(event);
            });
        });
    }

    fn packet(&mut self, fill: impl FnOnce(&mut Message)) {
        if self.error.is_some() {
            return;
        }
        self.packet.bytes.clear();
        self.packet.message(PACKET, |packet| {
            packet.uint(SEQUENCE_ID, SEQUENCE);
            fill(packet);
        });
        self.error = self.out.write_all(&self.packet.bytes).err();
    }
}

/// Track ids: what it is in the lowest bits, whose it is above, so that most take few bytes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Track {
    Process = 1,
    Thread = 2,
    OffProcessor = 3,
    Journal = 4,
    FastCommits = 5,
    Served = 6,
    Data = 7,
    Work = 8,
}

impl Track {
    pub(super) fn uuid(self, whose: u32) -> u64 {
        u64::from(whose) << 4 | self as u64
    }
}
