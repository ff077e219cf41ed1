//! What disks did for others while a thread waited for one.

use std::collections::{BTreeMap, HashMap, HashSet};

use luc_events::codes::Direction;
use luc_events::tables::Data;
use luc_events::{Dev, Inode};

use crate::read::Recorded;

/// The requests of one host's disks.
#[derive(Debug, Default)]
pub(crate) struct Disks {
    /// In the order in which they were complete.
    served: Vec<Served>,
}

/// A request that a disk has completed.
#[derive(Debug, Clone, Copy)]
struct Served {
    dev: Dev,
    begin_ns: u64,
    complete_ns: u64,
    bytes: u64,
    /// The thread that queued it.
    issuer: u32,
    /// Whose data it was for.
    owner: Owner,
}

/// A thread and its process, by their ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Owner {
    pub(crate) thread: u32,
    pub(crate) process: u32,
}

/// Bytes that disks moved during a wait, by whose they were.
pub(crate) type Moved = BTreeMap<Owner, u64>;

impl Disks {
    pub(crate) fn new(recorded: &Recorded) -> Self {
        let flushers = Flushers::new(&recorded.data);
        let mut served: Vec<Served> = recorded
            .requests
            .iter()
            .filter(|row| row.bytes > 0)
            .map(|row| {
                let begin_ns = if row.insert_ns > 0 { row.insert_ns } else { row.issue_ns };
                let issuer = Owner { thread: row.issuer.0, process: row.issuer_process.0 };
                Served {
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

    /// What the disks that a thread had requests at completed from one time to another; empty if it had none.
    pub(crate) fn moved(&self, thread: u32, begin_ns: u64, end_ns: u64) -> Moved {
        let first = self.served.partition_point(|one| one.complete_ns < begin_ns);
        let during = self.served[first..].iter().take_while(|one| one.complete_ns <= end_ns);
        let own = during.clone().filter(|one| one.issuer == thread);
        let devs: HashSet<Dev> = own.map(|one| one.dev).collect();
        let mut moved = Moved::new();
        for one in during.filter(|one| devs.contains(&one.dev) && one.begin_ns <= end_ns) {
            let bytes: &mut u64 = moved.entry(one.owner).or_default();
            *bytes = bytes.saturating_add(one.bytes);
        }
        moved
    }
}

/// Whose data the kernel's flusher threads wrote.
#[derive(Debug, Default)]
struct Flushers {
    /// By the flusher's id, in the order of time: until when it wrote, and whose data most of that was.
    wrote: HashMap<u32, Vec<(u64, Owner)>>,
}

impl Flushers {
    /// Of rows in the order of their times. A file's data is taken for that of the thread that made it dirty last.
    fn new(rows: &[Data]) -> Self {
        let mut dirtied: HashMap<(Dev, Inode), Owner> = HashMap::new();
        // At one time a flusher has a row for each file.
        let mut written: BTreeMap<(u64, u32), (u64, Owner)> = BTreeMap::new();
        for at_once in rows.chunk_by(|a, b| a.at_ns == b.at_ns) {
            for row in at_once {
                if row.direction == Direction::Dirtied {
                    let owner = Owner { thread: row.thread.0, process: row.process.0 };
                    dirtied.insert((row.dev, row.inode), owner);
                }
            }
            for row in at_once {
                let by_flusher = row.direction == Direction::WrittenByFlusher;
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
            let wrote = flushers.wrote.entry(flusher).or_default();
            wrote.push((at_ns, owner));
        }
        flushers
    }

    /// Whose data a flusher wrote with a request that it queued at a time; `None`: it is none, or that is not known.
    fn owner(&self, thread: u32, at_ns: u64) -> Option<Owner> {
        let wrote = self.wrote.get(&thread)?;
        let next = wrote.partition_point(|(until_ns, _)| *until_ns < at_ns);
        wrote.get(next).map(|(_, owner)| *owner)
    }
}
