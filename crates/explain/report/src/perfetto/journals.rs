//! Tracks of journals: commits, and whose work was in them.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io::Write;

use luc_events::codes::CommitKind;
use luc_events::tables::{Commit, FileSystem};
use luc_events::{Dev, Tgid, Transaction};
use luc_explain::{ExplainedCommit, Part};

use super::packets::{Begin, Kind, Packets};
use super::threads::Threads;
use super::track::Track;

/// Commits of a journal that are kept back, until the calls that waited for them are known.
const HELD_COMMITS: usize = 1_024;
/// And no longer than this.
const HELD_NS: u64 = 10_000_000_000;
/// Calls that are tied to one commit, the first of them.
const MAX_FLOWS: usize = 256;
/// Owners whose work in one commit is shown, the largest.
const MAX_OWNERS: usize = 4;

/// A commit whose calls are not all known yet.
#[derive(Debug)]
struct Held {
    row: Commit,
    /// Process, all its bytes, its data.
    owners: Vec<(Tgid, u64, u64)>,
    data_bytes: u64,
    flows: Vec<u64>,
    served: u64,
}

#[derive(Debug, Default)]
struct Journal {
    held: VecDeque<Held>,
    has_track: bool,
    has_fast_track: bool,
    /// Until when its full and its fast commits are written.
    written_ns: [u64; 2],
    /// When the last full commit had closed its transaction, and the next one began to fill.
    closed_ns: u64,
}

/// A process' work for a journal.
#[derive(Debug)]
struct Work {
    track: u64,
    written_ns: u64,
}

#[derive(Debug, Default)]
pub(super) struct Journals {
    journals: HashMap<Dev, Journal>,
    places: HashMap<Dev, String>,
    work: HashMap<(Tgid, Dev), Work>,
}

impl Journals {
    pub(super) fn file_system(&mut self, row: &FileSystem) {
        self.places.insert(row.dev, row.mount_point.clone());
    }

    /// Ties a call to a commit; false if it is not known any more.
    pub(super) fn tie(
        &mut self,
        dev: Dev,
        transaction: Transaction,
        (enter_ns, exit_ns): (u64, u64),
        flow: u64,
    ) -> bool {
        let held = self
            .journals
            .get_mut(&dev)
            .into_iter()
            .flat_map(|journal| journal.held.iter_mut().rev())
            .find(|held| {
                held.row.transaction == transaction
                    && held.row.start_ns <= exit_ns
                    && held.row.end_ns >= enter_ns
            });
        match held {
            Some(held) if held.flows.len() < MAX_FLOWS => {
                held.flows.push(flow);
                true
            }
            _ => false,
        }
    }

    /// An fsync's own commit.
    pub(super) fn served(&mut self, own: &Commit) {
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

    /// Takes in a commit, and writes those that are old enough.
    pub(super) fn commit<W: Write>(
        &mut self,
        packets: &mut Packets<W>,
        threads: &mut Threads,
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
        let mut owners: Vec<(Tgid, u64, u64)> = by_process
            .into_iter()
            .map(|(process, (bytes, data_bytes))| (process, bytes, data_bytes))
            .collect();
        owners.sort_by_key(|&(process, bytes, _)| (std::cmp::Reverse(bytes), process));
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
            if journal.held.len() <= HELD_COMMITS && age_ns <= HELD_NS {
                break;
            }
            if let Some(oldest) = journal.held.pop_front() {
                let place = self.places.get(&row.dev).map_or("", String::as_str);
                journal.write(packets, place, (threads, &mut self.work, next_flow), oldest);
            }
        }
    }

    /// Writes what was kept back.
    pub(super) fn finish<W: Write>(
        &mut self,
        packets: &mut Packets<W>,
        threads: &mut Threads,
        next_flow: &mut u64,
    ) {
        for (dev, journal) in &mut self.journals {
            let place = self.places.get(dev).map_or("", String::as_str);
            for held in std::mem::take(&mut journal.held) {
                journal.write(packets, place, (threads, &mut self.work, next_flow), held);
            }
        }
    }
}

impl Journal {
    fn write<W: Write>(
        &mut self,
        packets: &mut Packets<W>,
        place: &str,
        (threads, work, next_flow): (&mut Threads, &mut HashMap<(Tgid, Dev), Work>, &mut u64),
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
            for &(process, bytes, data_bytes) in &held.owners {
                let flow = *next_flow;
                *next_flow += 1;
                held.flows.push(flow);
                let parent = threads.process(packets, process);
                let track = Track::Work.uuid(work.len() as u32 + 1);
                let found = work.entry((process, dev)).or_insert_with(|| {
                    let name = &format!("work for commits of {place}");
                    let parent = Some(parent);
                    packets.describe(track, Kind::Named { parent, name });
                    Work { track, written_ns: 0 }
                });
                let from_ns = since_ns.max(found.written_ns);
                found.written_ns = start_ns.max(from_ns);
                let begin = Begin {
                    name: &format!("for commit {}", row.transaction),
                    category: "work",
                    flows: &[flow],
                    numbers: &[("bytes in the commit", bytes), ("of that data", data_bytes)],
                    ..Begin::default()
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
            if is_fast { Track::FastCommits.uuid(dev.0) } else { Track::Journal.uuid(dev.0) };
        let begin = Begin {
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
            ..Begin::default()
        };
        packets.begin(track, start_ns, &begin);
        if !is_fast {
            phases(packets, track, row, (start_ns, end_ns));
        }
        packets.end(track, end_ns);
        if !is_fast {
            packets.count(Track::Served.uuid(dev.0), end_ns, held.served);
            packets.count(Track::Data.uuid(dev.0), end_ns, held.data_bytes);
        }
    }

    fn describe<W: Write>(
        &mut self,
        packets: &mut Packets<W>,
        dev: Dev,
        kind: CommitKind,
        place: &str,
    ) {
        let journal = Track::Journal.uuid(dev.0);
        if !self.has_track {
            self.has_track = true;
            let name = &format!("journal of {place}");
            packets.describe(journal, Kind::Named { parent: None, name });
            let parent = journal;
            for (track, name) in [
                (Track::Served, "fsyncs served by the commit"),
                (Track::Data, "bytes of data written around the commit"),
            ] {
                packets.describe(track.uuid(dev.0), Kind::Counter { parent, name });
            }
        }
        if kind == CommitKind::Fast && !self.has_fast_track {
            self.has_fast_track = true;
            let (parent, name) = (Some(journal), "fast commits");
            let track = Track::FastCommits.uuid(dev.0);
            packets.describe(track, Kind::Named { parent, name });
        }
    }
}

/// The commit's phases, inside it.
fn phases<W: Write>(
    packets: &mut Packets<W>,
    track: u64,
    row: &Commit,
    (start_ns, end_ns): (u64, u64),
) {
    let flushing_ns = row.flushing_ns.clamp(start_ns, end_ns);
    let logging_ns = row.logging_ns.clamp(flushing_ns, end_ns);
    for (part, from_ns, until_ns) in [
        (Part::Locking, start_ns, flushing_ns),
        (Part::Flushing, flushing_ns, logging_ns),
        (Part::Logging, logging_ns, end_ns),
    ] {
        if from_ns < until_ns {
            let begin = Begin { name: part.name(), category: "phase", ..Begin::default() };
            packets.begin(track, from_ns, &begin);
            packets.end(track, until_ns);
        }
    }
}
