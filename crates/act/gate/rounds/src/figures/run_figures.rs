//! The memory that one `luc run` shares with the programs it started.

use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU32, AtomicU64};

use super::participants::Participants;
use super::shared_histogram::SharedHistogram;
use crate::device_slots::{self, DeviceSlot, FILE_SYSTEMS};

/// The calls that the gate takes part in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GatedCallKind {
    Fsync,
    Fdatasync,
    Msync,
}

/// Counters of one file system.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct FileSystemFigures {
    device: AtomicU64,
    /// Rounds in which a call of this run was first to come back.
    pub rounds: AtomicU32,
    pub calls: [AtomicU64; 3],
    /// Calls that went through a round.
    pub gated: AtomicU64,
    /// Gated calls that left at their own deadline.
    pub timed_out: AtomicU64,
    /// Calls that returned an error.
    pub failed: AtomicU64,
    /// Sum of all latencies, in nanoseconds.
    pub latency_ns: AtomicU64,
    /// The part of the latencies spent waiting in rounds.
    pub waited_ns: AtomicU64,
    /// The longest wait in a round.
    pub longest_wait_ns: AtomicU64,
    /// The part of the latencies spent writing data back before joining a round.
    pub written_back_ns: AtomicU64,
    /// Latencies as the program saw them.
    pub latency: SharedHistogram,
}

/// One run's figures. Mapped from a file that starts as zeros.
#[repr(C)]
#[derive(Debug)]
pub struct RunFigures {
    /// Filters of system calls that a service's first process is under, the notifier's included; 0 for the library.
    pub filters: AtomicU32,
    file_systems: [FileSystemFigures; FILE_SYSTEMS],
    /// Processes that have synchronized.
    pub participants: Participants,
}

impl RunFigures {
    /// The place of the file system `device` (as `st_dev`), claimed on first use; `None` when all are
    /// taken.
    pub fn file_system(&self, device: u64) -> Option<&FileSystemFigures> {
        Some(device_slots::claim(&self.file_systems, device)?.1)
    }

    /// Takes over what `other` has counted, which begins anew.
    pub fn take_over(&self, other: &Self) {
        for (device, theirs) in other.used() {
            if let Some(ours) = self.file_system(device) {
                ours.take_over(theirs);
            }
        }
        self.participants.take_over(&other.participants);
    }

    /// All places in use, with `st_dev` of their file systems.
    pub fn used(&self) -> impl Iterator<Item = (u64, &FileSystemFigures)> {
        device_slots::claimed(&self.file_systems)
    }
}

impl DeviceSlot for FileSystemFigures {
    fn device(&self) -> &AtomicU64 {
        &self.device
    }
}

/// Measurements of one call.
#[derive(Clone, Copy, Debug)]
pub struct MeasuredCall {
    pub kind: GatedCallKind,
    /// Time from the program's call to its return, in nanoseconds.
    pub latency_ns: u64,
    /// Whether it returned an error.
    pub failed: bool,
    /// The call's way through a round, if it joined one.
    pub round: Option<RoundTimes>,
}

/// The part of a call that the gate adds.
#[derive(Clone, Copy, Debug)]
pub struct RoundTimes {
    /// Writing data back before joining, in nanoseconds.
    pub written_back_ns: u64,
    /// Waiting in the round, in nanoseconds.
    pub waited_ns: u64,
    /// Whether it left at its own deadline.
    pub timed_out: bool,
    /// Whether it was the first of its round to come back from the commit.
    pub first_to_return: bool,
}

impl FileSystemFigures {
    pub fn record(&self, call: &MeasuredCall) {
        self.calls[call.kind as usize].fetch_add(1, Relaxed);
        self.latency_ns.fetch_add(call.latency_ns, Relaxed);
        self.latency.record(call.latency_ns);
        if call.failed {
            self.failed.fetch_add(1, Relaxed);
        }
        if let Some(round) = call.round {
            self.record_round(&round);
        }
    }

    /// Counts one call whose return is not seen, so that its latency is not known.
    pub fn record_unseen(&self, kind: GatedCallKind, round: Option<&RoundTimes>) {
        self.calls[kind as usize].fetch_add(1, Relaxed);
        if let Some(round) = round {
            self.record_round(round);
        }
    }

    /// All that is added up.
    fn sums(&self) -> [&AtomicU64; 9] {
        let [fsyncs, fdatasyncs, msyncs] = self.calls.each_ref();
        [
            fsyncs,
            fdatasyncs,
            msyncs,
            &self.gated,
            &self.timed_out,
            &self.failed,
            &self.latency_ns,
            &self.waited_ns,
            &self.written_back_ns,
        ]
    }

    fn take_over(&self, other: &Self) {
        self.rounds.fetch_add(other.rounds.swap(0, Relaxed), Relaxed);
        self.longest_wait_ns.fetch_max(other.longest_wait_ns.swap(0, Relaxed), Relaxed);
        for (ours, theirs) in self.sums().into_iter().zip(other.sums()) {
            ours.fetch_add(theirs.swap(0, Relaxed), Relaxed);
        }
        self.latency.take_over(&other.latency);
    }

    fn record_round(&self, round: &RoundTimes) {
        self.gated.fetch_add(1, Relaxed);
        self.waited_ns.fetch_add(round.waited_ns, Relaxed);
        self.written_back_ns.fetch_add(round.written_back_ns, Relaxed);
        self.longest_wait_ns.fetch_max(round.waited_ns, Relaxed);
        if round.timed_out {
            self.timed_out.fetch_add(1, Relaxed);
        }
        if round.first_to_return {
            self.rounds.fetch_add(1, Relaxed);
        }
    }
}
