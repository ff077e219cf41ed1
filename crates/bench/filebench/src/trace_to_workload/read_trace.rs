//! The file operations in a trace.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use luc_events::event_kinds::{DataDirection, FileCallKind, SyncKind};
use luc_events::store::{StoreError, TraceReader};
use luc_events::tables::{FileCall, FileData, FsyncCall, JournalHandle, ThreadInfo};

/// The type of ext4's handles that allocate blocks for data when it is written back (`EXT4_HT_WRITE_PAGE`).
const WRITE_PAGE: u32 = 2;

/// Data that becomes dirty is summed over intervals of this length.
const INTERVAL_NS: u64 = 10_000_000;
/// Data becomes dirty by pages.
const PAGE_BYTES: u64 = 4096;
/// A longer write is made in pieces of this size.
const MAX_WRITE_BYTES: u64 = 1 << 20;

/// A call that succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TracedOperation {
    pub(super) thread: u32,
    pub(super) enter_ns: u64,
    pub(super) exit_ns: u64,
    pub(super) what: TracedOperationKind,
    pub(super) inode: u64,
    pub(super) bytes: u64,
}

/// Kind of a file operation in a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TracedOperationKind {
    Create,
    Remove,
    Write,
    Read,
    Sync,
    /// An operation that no personality has.
    Other,
}

/// File operations of a trace, with the names of its threads.
#[derive(Debug, Default)]
pub(super) struct TracedOperations {
    /// Operations by thread, then by time.
    pub(super) operations: Vec<TracedOperation>,
    /// A thread's name, without the number at its end.
    pub(super) names: HashMap<u32, String>,
    /// Handles of each thread that allocated blocks when data was written back.
    pub(super) allocations: HashMap<u32, u64>,
    /// Operations on other file systems than the one with the most.
    pub(super) elsewhere: u64,
    /// The command that was recorded.
    pub(super) command: String,
}

pub(super) fn read(directory: &Path) -> Result<TracedOperations, StoreError> {
    // 1. Calls and syncs that succeeded, with their devices.
    let reader = TraceReader::open(directory)?;
    let mut found: Vec<(u32, TracedOperation)> = Vec::new();
    for call in reader.rows::<FileCall>()? {
        let call = call?;
        if call.errno != 0 {
            continue;
        }
        let what = match call.kind {
            FileCallKind::Create => TracedOperationKind::Create,
            FileCallKind::Unlink => TracedOperationKind::Remove,
            FileCallKind::Write => TracedOperationKind::Write,
            FileCallKind::Read => TracedOperationKind::Read,
            FileCallKind::Open | FileCallKind::Close => continue,
            _ => TracedOperationKind::Other,
        };
        found.push((
            call.dev.0,
            TracedOperation {
                thread: call.thread.0,
                enter_ns: call.enter_ns,
                exit_ns: call.exit_ns,
                what,
                inode: call.inode.0,
                bytes: call.bytes,
            },
        ));
    }
    for sync in reader.rows::<FsyncCall>()? {
        let sync = sync?;
        // It starts to write, and promises nothing.
        if sync.errno != 0 || sync.kind == SyncKind::SyncFileRange {
            continue;
        }
        found.push((
            sync.dev.0,
            TracedOperation {
                thread: sync.thread.0,
                enter_ns: sync.enter_ns,
                exit_ns: sync.exit_ns,
                what: TracedOperationKind::Sync,
                inode: sync.inode.0,
                bytes: 0,
            },
        ));
    }
    // 2. Names of threads, and blocks that they allocated.
    let mut traced =
        TracedOperations { command: reader.trace().command.clone(), ..TracedOperations::default() };
    for task in reader.rows::<ThreadInfo>()? {
        let task = task?;
        let name = task.comm.trim_end_matches(|c: char| !c.is_ascii_alphabetic());
        traced.names.insert(task.thread.0, name.to_owned());
    }
    for handle in reader.rows::<JournalHandle>()? {
        let handle = handle?;
        if handle.kind == WRITE_PAGE {
            *traced.allocations.entry(handle.thread.0).or_default() += u64::from(handle.count);
        }
    }
    // 3. Operations on the file system with the most, and the writes that left no row.
    let all = found.len();
    let main = busiest(&found);
    found.retain(|(dev, _)| *dev == 0 || *dev == main);
    traced.elsewhere = (all - found.len()) as u64;
    traced.operations = found.into_iter().map(|(_, operation)| operation).collect();
    let in_order = |operation: &TracedOperation| (operation.thread, operation.enter_ns);
    traced.operations.sort_by_key(in_order);
    let unseen = unseen_writes(&reader, main, &traced.operations)?;
    traced.operations.extend(unseen);
    traced.operations.sort_by_key(in_order);
    Ok(traced)
}

/// Infers writes without a row in the trace, because they neither touched the journal nor slept. They are known by the
/// data that they made dirty. One write stands for the data that a thread made dirty in a file in one interval. It
/// comes before the sync that followed, if there was one.
fn unseen_writes(
    reader: &TraceReader,
    main: u32,
    operations: &[TracedOperation],
) -> Result<Vec<TracedOperation>, StoreError> {
    let mut by_file: HashMap<(u32, u64), Vec<&TracedOperation>> = HashMap::new();
    for operation in operations.iter().filter(|operation| operation.inode != 0) {
        let key = (operation.thread, operation.inode);
        by_file.entry(key).or_default().push(operation);
    }
    // In an order of its own: the same trace is always the same workload.
    let mut dirtied: BTreeMap<(u32, u64), Vec<(u64, u64)>> = BTreeMap::new();
    for data in reader.rows::<FileData>()? {
        let data = data?;
        if data.direction == DataDirection::Dirtied && data.dev.0 == main {
            let key = (data.thread.0, data.inode.0);
            dirtied.entry(key).or_default().push((data.at_ns, data.bytes));
        }
    }
    let mut unseen = Vec::new();
    for ((thread, inode), slots) in dirtied {
        let seen = by_file.get(&(thread, inode)).map(Vec::as_slice).unwrap_or_default();
        let written: u64 = seen.iter().map(|one| one.bytes.next_multiple_of(PAGE_BYTES)).sum();
        let all: u64 = slots.iter().map(|slot| slot.1).sum();
        let missing = all.saturating_sub(written) as f64 / all.max(1) as f64;
        for (at_ns, bytes) in slots {
            let mut left = (bytes as f64 * missing) as u64;
            let when_ns = place(seen, at_ns);
            // Less than a page is the rounding of those that were seen.
            while left >= PAGE_BYTES {
                let piece = left.min(MAX_WRITE_BYTES);
                left -= piece;
                unseen.push(TracedOperation {
                    thread,
                    enter_ns: when_ns,
                    exit_ns: when_ns,
                    what: TracedOperationKind::Write,
                    inode,
                    bytes: piece,
                });
            }
        }
    }
    Ok(unseen)
}

/// Returns a plausible time for a write that ended in the interval before `at_ns`: just before the first sync that can
/// be for it, else just after the file's previous operation.
fn place(seen: &[&TracedOperation], at_ns: u64) -> u64 {
    let from_ns = at_ns.saturating_sub(INTERVAL_NS);
    let is_later =
        |one: &&&TracedOperation| one.what == TracedOperationKind::Sync && one.exit_ns >= from_ns;
    if let Some(sync) = seen.iter().find(is_later) {
        return sync.enter_ns.saturating_sub(1);
    }
    let before = seen.iter().rev().find(|one| one.enter_ns <= at_ns);
    before.map_or(at_ns, |one| one.exit_ns + 1)
}

/// Returns the file system with the most operations; 0 is an unknown one and does not count.
fn busiest(found: &[(u32, TracedOperation)]) -> u32 {
    let mut counts: HashMap<u32, usize> = HashMap::new();
    for (dev, _) in found.iter().filter(|(dev, _)| *dev != 0) {
        *counts.entry(*dev).or_default() += 1;
    }
    let most = counts.into_iter().max_by_key(|&(dev, count)| (count, dev));
    most.map_or(0, |(dev, _)| dev)
}
