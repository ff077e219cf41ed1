//! Tracks of journals: commits, and the work in them.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io::Write;
use std::ops::Range;

use luc_events::event_kinds::CommitKind;
use luc_events::tables::{JournalCommit, MountedFileSystem};
use luc_events::{Dev, Tgid, Transaction};
use luc_explain::{CallTimePart, ExplainedCommit};

use super::packets::{PacketWriter, SliceBegin, TrackKind};
use super::thread_tracks::ThreadTracks;
use super::track_id::TrackId;

/// Maximum number of a journal's commits that are kept back until the calls that waited for them are known.
const MAX_HELD_COMMITS: usize = 1_024;
/// Maximum time that a commit is kept back.
const MAX_HELD_NS: u64 = 10_000_000_000;
/// Maximum number of calls that are tied to a commit: the first.
const MAX_FLOWS: usize = 256;
/// Maximum number of owners whose work in a commit is shown: the largest.
const MAX_OWNERS: usize = 4;

/// A commit that is kept back, because more calls may have waited for it.
#[derive(Debug)]
struct Held {
    row: JournalCommit,
    owners: Vec<Owner>,
    data_bytes: u64,
    flows: Vec<u64>,
    served: u64,
}

/// A process whose work is in a commit.
#[derive(Debug)]
struct Owner {
    process: Tgid,
    /// All bytes, data included.
    bytes: u64,
    data_bytes: u64,
}

#[derive(Debug, Default)]
struct Journal {
    held: VecDeque<Held>,
    has_track: bool,
    has_fast_track: bool,
    /// End of the last written commit: full, fast.
    written_ns: [u64; 2],
    /// Time when the last full commit closed its transaction, and the next one began to fill.
    closed_ns: u64,
}

/// A process' work for a journal.
#[derive(Debug)]
struct Work {
    track: u64,
    written_ns: u64,
}

/// Tracks beside the journal's own, on which the work in its commits is shown.
struct Tracks<'a> {
    threads: &'a mut ThreadTracks,
    work: &'a mut HashMap<(Tgid, Dev), Work>,
    next_flow: &'a mut u64,
}

/// Tracks of journals in a Perfetto trace.
#[derive(Debug, Default)]
pub(super) struct JournalTracks {
    journals: HashMap<Dev, Journal>,
    places: HashMap<Dev, String>,
    work: HashMap<(Tgid, Dev), Work>,
}

impl JournalTracks {
    pub(super) fn file_system(&mut self, row: &MountedFileSystem) {
        self.places.insert(row.dev, row.mount_point.clone());
    }

    /// Ties a call to a commit. Returns false if the commit is already written.
    pub(super) fn tie(
        &mut self,
        dev: Dev,
        transaction: Transaction,
        call_ns: &Range<u64>,
        flow: u64,
    ) -> bool {
        let held = self
            .journals
            .get_mut(&dev)
            .into_iter()
            .flat_map(|journal| journal.held.iter_mut().rev())
            .find(|held| {
                held.row.transaction == transaction
                    && held.row.start_ns <= call_ns.end
                    && held.row.end_ns >= call_ns.start
            });
        match held {
            Some(held) if held.flows.len() < MAX_FLOWS => {
                held.flows.push(flow);
                true
            }
            _ => false,
        }
    }

    /// Counts an fsync for its own commit.
    pub(super) fn served(&mut self, own: &JournalCommit) {
        let held = self
            .journals
            .get_mut(&own.dev)
            .into_iter()
            .flat_map(|journal| journal.held.iter_mut().rev())
            .find(|held| held.row == *own);
        if let Some(held) = held {
            held.served += 1;
        }
    }

    /// Keeps a commit back, and writes those that are old enough.
    pub(super) fn commit<W: Write>(
        &mut self,
        packets: &mut PacketWriter<W>,
        threads: &mut ThreadTracks,
        next_flow: &mut u64,
        commit: &ExplainedCommit<'_>,
    ) {
        let row = commit.row;
        let mut by_process: BTreeMap<Tgid, (u64, u64)> = BTreeMap::new();
        for &(process, _, bytes) in commit.bytes {
            by_process.entry(process).or_default().0 += bytes;
        }
        for &(process, _, bytes) in commit.data {
            by_process.entry(process).or_default().1 += bytes;
        }
        let mut owners: Vec<Owner> = by_process
            .into_iter()
            .map(|(process, (bytes, data_bytes))| Owner { process, bytes, data_bytes })
            .collect();
        owners.sort_by_key(|owner| (std::cmp::Reverse(owner.bytes), owner.process));
        owners.truncate(MAX_OWNERS);
        let held = Held {
            row: row.clone(),
            owners,
            data_bytes: commit.data.iter().map(|&(_, _, bytes)| bytes).sum(),
            flows: Vec::new(),
            served: 0,
        };
        let journal = self.journals.entry(row.dev).or_default();
        journal.held.push_back(held);
        while let Some(oldest) = journal.held.front() {
            let age_ns = row.end_ns.saturating_sub(oldest.row.end_ns);
            if journal.held.len() <= MAX_HELD_COMMITS && age_ns <= MAX_HELD_NS {
                break;
            }
            if let Some(oldest) = journal.held.pop_front() {
                let place = self.places.get(&row.dev).map_or("", String::as_str);
                let tracks = Tracks { threads, work: &mut self.work, next_flow };
                journal.write(packets, place, tracks, oldest);
            }
        }
    }

    /// Writes all commits that were kept back.
    pub(super) fn finish<W: Write>(
        &mut self,
        packets: &mut PacketWriter<W>,
        threads: &mut ThreadTracks,
        next_flow: &mut u64,
    ) {
        for (dev, journal) in &mut self.journals {
            let place = self.places.get(dev).map_or("", String::as_str);
            for held in std::mem::take(&mut journal.held) {
                let tracks = Tracks { threads, work: &mut self.work, next_flow };
                journal.write(packets, place, tracks, held);
            }
        }
    }
}

impl Journal {
    fn write<W: Write>(
        &mut self,
        packets: &mut PacketWriter<W>,
        place: &str,
        tracks: Tracks<'_>,
        mut held: Held,
    ) {
        let dev = held.row.dev;
        let place = if place.is_empty() { dev.to_string() } else { format!("{place} ({dev})") };
        self.describe(packets, dev, held.row.kind, &place);
        let is_fast = held.row.kind == CommitKind::Fast;
        let row = &held.row;
        let written_ns = &mut self.written_ns[usize::from(is_fast)];
        let start_ns = row.start_ns.max(*written_ns);
        let end_ns = row.end_ns.max(start_ns);
        *written_ns = end_ns;

        if !is_fast {
            let since_ns = match self.closed_ns {
                0 => start_ns,
                closed_ns => closed_ns.min(start_ns),
            };
            for &Owner { process, bytes, data_bytes } in &held.owners {
                let flow = *tracks.next_flow;
                *tracks.next_flow += 1;
                held.flows.push(flow);
                let parent = tracks.threads.process(packets, process);
                let track = TrackId::Work.uuid(tracks.work.len() as u32 + 1);
                let found = tracks.work.entry((process, dev)).or_insert_with(|| {
                    let name = &format!("work for commits of {place}");
                    let parent = Some(parent);
                    packets.describe(track, TrackKind::Named { parent, name });
                    Work { track, written_ns: 0 }
                });
                let from_ns = since_ns.max(found.written_ns);
                found.written_ns = start_ns.max(from_ns);
                let begin = SliceBegin {
                    name: &format!("for commit {}", row.transaction),
                    category: "work",
                    flows: &[flow],
                    numbers: &[("bytes in the commit", bytes), ("of that data", data_bytes)],
                    ..SliceBegin::default()
                };
                packets.begin(found.track, from_ns, &begin);
                packets.end(found.track, found.written_ns);
            }
            self.closed_ns = match row.flushing_ns {
                0 => start_ns,
                flushing_ns => flushing_ns.clamp(start_ns, end_ns),
            };
        }

        let track =
            if is_fast { TrackId::FastCommits.uuid(dev.0) } else { TrackId::Journal.uuid(dev.0) };
        let begin = SliceBegin {
            name: &format!("commit {}", row.transaction),
            category: "commit",
            flows: &held.flows,
            numbers: &[
                ("asked for by thread", u64::from(row.asked_by.0)),
                ("fsyncs served", held.served),
                ("handles", u64::from(row.handles)),
                ("blocks logged", u64::from(row.blocks_logged)),
                ("bytes of data", held.data_bytes),
            ],
            ..SliceBegin::default()
        };
        packets.begin(track, start_ns, &begin);
        if !is_fast {
            phases(packets, track, row, start_ns, end_ns);
        }
        packets.end(track, end_ns);
        if !is_fast {
            packets.count(TrackId::Served.uuid(dev.0), end_ns, held.served);
            packets.count(TrackId::Data.uuid(dev.0), end_ns, held.data_bytes);
        }
    }

    fn describe<W: Write>(
        &mut self,
        packets: &mut PacketWriter<W>,
        dev: Dev,
        kind: CommitKind,
        place: &str,
    ) {
        let journal = TrackId::Journal.uuid(dev.0);
        if !self.has_track {
            self.has_track = true;
            let name = &format!("journal of {place}");
            packets.describe(journal, TrackKind::Named { parent: None, name });
            let parent = journal;
            for (track, name) in [
                (TrackId::Served, "fsyncs served by the commit"),
                (TrackId::Data, "bytes of data written around the commit"),
            ] {
                packets.describe(track.uuid(dev.0), TrackKind::Counter { parent, name });
            }
        }
        if kind == CommitKind::Fast && !self.has_fast_track {
            self.has_fast_track = true;
            let (parent, name) = (Some(journal), "fast commits");
            let track = TrackId::FastCommits.uuid(dev.0);
            packets.describe(track, TrackKind::Named { parent, name });
        }
    }
}

/// Writes a commit's phases inside its slice.
fn phases<W: Write>(
    packets: &mut PacketWriter<W>,
    track: u64,
    row: &JournalCommit,
    start_ns: u64,
    end_ns: u64,
) {
    let flushing_ns = row.flushing_ns.clamp(start_ns, end_ns);
    let logging_ns = row.logging_ns.clamp(flushing_ns, end_ns);
    for (part, from_ns, until_ns) in [
        (CallTimePart::Locking, start_ns, flushing_ns),
        (CallTimePart::Flushing, flushing_ns, logging_ns),
        (CallTimePart::Logging, logging_ns, end_ns),
    ] {
        if from_ns < until_ns {
            let begin =
                SliceBegin { name: part.name(), category: "phase", ..SliceBegin::default() };
            packets.begin(track, from_ns, &begin);
            packets.end(track, until_ns);
        }
    }
}
