//! Work of disks for others while a thread waited for one.

use std::collections::{BTreeMap, HashMap, HashSet};

use luc_events::event_kinds::DataDirection;
use luc_events::tables::FileData;
use luc_events::{Dev, Inode};

use crate::read_hosts::RecordedHost;

/// Requests of one host's disks.
#[derive(Debug, Default)]
pub(crate) struct ServedDiskRequests {
    /// Requests in order of completion.
    served: Vec<ServedRequest>,
}

/// Completed request of a disk.
#[derive(Debug, Clone, Copy)]
struct ServedRequest {
    dev: Dev,
    begin_ns: u64,
    complete_ns: u64,
    bytes: u64,
    /// Id of the thread that queued it.
    issuer: u32,
    /// Owner of the data.
    owner: DiskOwner,
}

/// Ids of a thread and its process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DiskOwner {
    pub(crate) thread: u32,
    pub(crate) process: u32,
}

/// Bytes that disks moved during a wait, by owner.
pub(crate) type BytesByDiskOwner = BTreeMap<DiskOwner, u64>;

impl ServedDiskRequests {
    pub(crate) fn new(recorded: &RecordedHost) -> Self {
        let flushers = Flushers::new(&recorded.data);
        let mut served: Vec<ServedRequest> = recorded
            .requests
            .iter()
            .filter(|row| row.bytes > 0)
            .map(|row| {
                let begin_ns = if row.insert_ns > 0 { row.insert_ns } else { row.issue_ns };
                let issuer = DiskOwner { thread: row.issuer.0, process: row.issuer_process.0 };
                ServedRequest {
                    dev: row.dev,
                    begin_ns,
                    complete_ns: row.complete_ns,
                    bytes: row.bytes,
                    issuer: issuer.thread,
                    owner: flushers.owner(issuer.thread, begin_ns).unwrap_or(issuer),
                }
            })
            .collect();
        served.sort_by_key(|one| one.complete_ns);
        Self { served }
    }

    /// Bytes that disks with requests of a thread completed from one time to another; empty if it had none.
    pub(crate) fn moved(&self, thread: u32, begin_ns: u64, end_ns: u64) -> BytesByDiskOwner {
        let first = self.served.partition_point(|one| one.complete_ns < begin_ns);
        let during = self.served[first..].iter().take_while(|one| one.complete_ns <= end_ns);
        let own = during.clone().filter(|one| one.issuer == thread);
        let devs: HashSet<Dev> = own.map(|one| one.dev).collect();
        let mut moved = BytesByDiskOwner::new();
        for one in during.filter(|one| devs.contains(&one.dev) && one.begin_ns <= end_ns) {
            let bytes: &mut u64 = moved.entry(one.owner).or_default();
            *bytes = bytes.saturating_add(one.bytes);
        }
        moved
    }
}

/// Owners of the data that the kernel's flusher threads wrote.
#[derive(Debug, Default)]
struct Flushers {
    /// By the flusher's id, in order of time: the end of each write, and the owner of most of its data.
    wrote: HashMap<u32, Vec<(u64, DiskOwner)>>,
}

impl Flushers {
    /// Reads rows that are in order of time. A file's data belong to the thread that made it dirty last.
    fn new(rows: &[FileData]) -> Self {
        let mut dirtied: HashMap<(Dev, Inode), DiskOwner> = HashMap::new();
        // At one time a flusher has a row for each file.
        let mut written: BTreeMap<(u64, u32), (u64, DiskOwner)> = BTreeMap::new();
        for at_once in rows.chunk_by(|a, b| a.at_ns == b.at_ns) {
            for row in at_once {
                if row.direction == DataDirection::Dirtied {
                    let owner = DiskOwner { thread: row.thread.0, process: row.process.0 };
                    dirtied.insert((row.dev, row.inode), owner);
                }
            }
            for row in at_once {
                let by_flusher = row.direction == DataDirection::WrittenByFlusher;
                let owner = dirtied.get(&(row.dev, row.inode)).filter(|_| by_flusher);
                if let Some(&owner) = owner {
                    let most = written.entry((row.at_ns, row.thread.0)).or_insert((0, owner));
                    if row.bytes > most.0 {
                        *most = (row.bytes, owner);
                    }
                }
            }
        }
        let mut flushers = Self::default();
        for ((at_ns, flusher), (_, owner)) in written {
            flushers.wrote.entry(flusher).or_default().push((at_ns, owner));
        }
        flushers
    }

    /// Owner of the data of a request that a flusher queued at a time; `None`: the thread is no flusher, or it is
    /// unknown.
    fn owner(&self, thread: u32, at_ns: u64) -> Option<DiskOwner> {
        let wrote = self.wrote.get(&thread)?;
        let next = wrote.partition_point(|(until_ns, _)| *until_ns < at_ns);
        wrote.get(next).map(|(_, owner)| *owner)
    }
}
