//! Packets of a Perfetto trace, streamed to a writer.
//!
//! Field numbers are those of Perfetto's `protos/perfetto/trace/trace_packet.proto`, `track_event/*.proto`,
//! `clock_snapshot.proto` and `common/system_info.proto`.

use std::io::{self, Write};

use super::protobuf_message::ProtobufMessage;

const PACKET: u64 = 1;

const CLOCK_SNAPSHOT: u64 = 6;
const TIMESTAMP: u64 = 8;
const SEQUENCE_ID: u64 = 10;
const TRACK_EVENT: u64 = 11;
const SEQUENCE_FLAGS: u64 = 13;
const SYSTEM_INFO: u64 = 45;
const TRACK_DESCRIPTOR: u64 = 60;
const MACHINE_ID: u64 = 98;

const ANNOTATIONS: u64 = 4;
const TYPE: u64 = 9;
const TRACK_UUID: u64 = 11;
const CATEGORIES: u64 = 22;
const NAME: u64 = 23;
const COUNTER_VALUE: u64 = 30;
const FLOW_IDS: u64 = 47;

const SLICE_BEGIN: u64 = 1;
const SLICE_END: u64 = 2;
const INSTANT: u64 = 3;
const COUNTER: u64 = 4;

const REALTIME: u64 = 1;
const MONOTONIC: u64 = 3;
const BOOTTIME: u64 = 6;

/// Sequence of the first machine. The others have sequences of their own.
const SEQUENCE: u64 = 1;
const SEQ_INCREMENTAL_STATE_CLEARED: u64 = 1;

/// Description of a track.
#[derive(Clone, Copy, Debug)]
pub enum TrackKind<'a> {
    /// A process of the machine.
    Process { pid: u32, name: &'a str },
    /// A thread of the machine.
    Thread { pid: u32, tid: u32, name: &'a str },
    Named {
        /// Id of the track above it; `None` at the top.
        parent: Option<u64>,
        name: &'a str,
    },
    /// A number over time.
    Counter {
        /// Id of the track above it.
        parent: u64,
        name: &'a str,
    },
}

/// Beginning of a slice, or an instant.
#[derive(Clone, Copy, Debug, Default)]
pub struct SliceBegin<'a> {
    pub name: &'a str,
    pub category: &'a str,
    /// Flows of the slice. A flow ties slices of one machine: the trace processor keeps a table of flows for each
    /// machine.
    pub flows: &'a [u64],
    pub numbers: &'a [(&'a str, u64)],
    pub words: &'a [(&'a str, &'a str)],
}

/// A machine whose tracks are in the trace.
#[derive(Clone, Copy, Debug)]
pub struct TracedMachine<'a> {
    /// Number of the machine; 0 is the one that a trace begins with.
    pub id: u32,
    /// Name, which Perfetto shows since June 2026.
    pub name: &'a str,
    /// Release of the kernel; empty if unknown.
    pub kernel: &'a str,
    /// Number of processors; 0 if unknown.
    pub processors: u32,
}

/// Writer of packets. After an error it writes nothing more.
#[derive(Debug)]
pub struct PacketWriter<W> {
    out: W,
    error: Option<io::Error>,
    packet: ProtobufMessage,
    /// Offset of CLOCK_BOOTTIME, which is Perfetto's clock, from CLOCK_MONOTONIC.
    boottime_offset_ns: u64,
    /// Machine of the packets.
    machine: u32,
}

impl<W: Write> PacketWriter<W> {
    /// Begins a trace. The clocks had these offsets at `at_ns` of CLOCK_MONOTONIC.
    #[must_use]
    pub fn new(out: W, at_ns: u64, boottime_offset_ns: u64, realtime_offset_ns: u64) -> Self {
        let mut packets = Self {
            out,
            error: None,
            packet: ProtobufMessage::default(),
            boottime_offset_ns,
            machine: 0,
        };
        packets.packet(|packet| {
            packet.uint(SEQUENCE_FLAGS, SEQ_INCREMENTAL_STATE_CLEARED);
            packet.message(CLOCK_SNAPSHOT, |snapshot| {
                for (clock, offset_ns) in
                    [(BOOTTIME, boottime_offset_ns), (MONOTONIC, 0), (REALTIME, realtime_offset_ns)]
                {
                    snapshot.message(1, |entry| {
                        entry.uint(1, clock);
                        entry.uint(2, at_ns.saturating_add(offset_ns));
                    });
                }
            });
        });
        packets
    }

    /// Makes this machine the one of all packets from now on. Each machine is begun once. Times stay those of the first
    /// one's clock.
    pub fn machine(&mut self, machine: TracedMachine<'_>) {
        self.machine = machine.id;
        self.packet(|packet| {
            if machine.id > 0 {
                packet.uint(SEQUENCE_FLAGS, SEQ_INCREMENTAL_STATE_CLEARED);
            }
            packet.message(SYSTEM_INFO, |system| {
                if !machine.kernel.is_empty() {
                    system.message(1, |names| {
                        names.text(1, "Linux");
                        names.text(3, machine.kernel);
                    });
                }
                if machine.processors > 0 {
                    system.uint(8, u64::from(machine.processors));
                }
                system.text(17, machine.name);
            });
        });
    }

    /// Describes a track, before its first event and again when its name changed.
    pub fn describe(&mut self, uuid: u64, kind: TrackKind<'_>) {
        self.packet(|packet| {
            packet.message(TRACK_DESCRIPTOR, |track| {
                track.uint(1, uuid);
                match kind {
                    TrackKind::Process { pid, name } => track.message(3, |process| {
                        process.uint(1, u64::from(pid));
                        process.text(6, name);
                    }),
                    TrackKind::Thread { pid, tid, name } => track.message(4, |thread| {
                        thread.uint(1, u64::from(pid));
                        thread.uint(2, u64::from(tid));
                        thread.text(5, name);
                    }),
                    TrackKind::Named { parent, name } => {
                        track.text(2, name);
                        if let Some(parent) = parent {
                            track.uint(5, parent);
                        }
                    }
                    TrackKind::Counter { parent, name } => {
                        track.text(2, name);
                        track.uint(5, parent);
                        track.message(8, |_| ());
                    }
                }
            });
        });
    }

    /// Begins a slice of a track, inside the open ones.
    pub fn begin(&mut self, track: u64, at_ns: u64, begin: &SliceBegin<'_>) {
        self.named(track, at_ns, SLICE_BEGIN, begin);
    }

    /// Marks a moment of a track.
    pub fn instant(&mut self, track: u64, at_ns: u64, begin: &SliceBegin<'_>) {
        self.named(track, at_ns, INSTANT, begin);
    }

    fn named(&mut self, track: u64, at_ns: u64, kind: u64, begin: &SliceBegin<'_>) {
        self.event(track, at_ns, kind, |event| {
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

    /// Ends the last slice of a track that was begun.
    pub fn end(&mut self, track: u64, at_ns: u64) {
        self.event(track, at_ns, SLICE_END, |_| ());
    }

    /// Sets the number of a counter.
    pub fn count(&mut self, track: u64, at_ns: u64, value: u64) {
        self.event(track, at_ns, COUNTER, |event| {
            event.uint(COUNTER_VALUE, value.min(i64::MAX as u64));
        });
    }

    /// Ends the trace.
    ///
    /// # Errors
    /// The first one of the writer.
    pub fn finish(mut self) -> io::Result<()> {
        match self.error {
            Some(error) => Err(error),
            None => self.out.flush(),
        }
    }

    fn event(
        &mut self,
        track: u64,
        at_ns: u64,
        kind: u64,
        fill: impl FnOnce(&mut ProtobufMessage),
    ) {
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

    fn packet(&mut self, fill: impl FnOnce(&mut ProtobufMessage)) {
        if self.error.is_some() {
            return;
        }
        let machine = u64::from(self.machine);
        self.packet.bytes.clear();
        self.packet.message(PACKET, |packet| {
            packet.uint(SEQUENCE_ID, SEQUENCE + machine);
            if machine > 0 {
                packet.uint(MACHINE_ID, machine);
            }
            fill(packet);
        });
        self.error = self.out.write_all(&self.packet.bytes).err();
    }
}
