//! What a trace has of file operations.

use std::collections::HashMap;
use std::path::Path;

use luc_events::codes::{CallKind, SyncKind};
use luc_events::store::{Reader, StoreError};
use luc_events::tables::{Call, Handle, Sync, Task};

/// The type of ext4's handles that allocate blocks for data when it is written back (`EXT4_HT_WRITE_PAGE`).
const WRITE_PAGE: u32 = 2;

/// A call that succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Operation {
    pub(super) thread: u32,
    pub(super) enter_ns: u64,
    pub(super) exit_ns: u64,
    pub(super) what: What,
    /// 0: not known.
    pub(super) inode: u64,
    pub(super) bytes: u64,
}

/// What it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Create,
    Remove,
    Write,
    Read,
    Sync,
    /// Nothing that a personality has.
    Other,
}

/// A trace's operations.
#[derive(Debug, Default)]
pub(super) struct Traced {
    /// By thread, then by time.
    pub(super) operations: Vec<Operation>,
    /// A thread's name, without the number at its end.
    pub(super) names: HashMap<u32, String>,
    /// Handles of each thread that allocated blocks when data was written back.
    pub(super) allocations: HashMap<u32, u64>,
    /// Operations on other file systems than the one with the most.
    pub(super) elsewhere: u64,
    /// The command that was recorded.
    pub(super) command: String,
}

pub(super) fn read(directory: &Path) -> Result<Traced, StoreError> {
    let reader = Reader::open(directory)?;
    let mut found: Vec<(u32, Operation)> = Vec::new();
    for call in reader.rows::<Call>()? {
        let call = call?;
        if call.errno != 0 {
            continue;
        }
        let what = match call.kind {
            CallKind::Create => What::Create,
            CallKind::Unlink => What::Remove,
            CallKind::Write => What::Write,
            CallKind::Read => What::Read,
            CallKind::Open | CallKind::Close => continue,
            _ => What::Other,
        };
        found.push((
            call.dev.0,
            Operation {
                thread: call.thread.0,
                enter_ns: call.enter_ns,
                exit_ns: call.exit_ns,
                what,
                inode: call.inode.0,
                bytes: call.bytes,
            },
        ));
    }
    for sync in reader.rows::<Sync>()? {
        let sync = sync?;
        // It starts to write, and promises nothing.
        if sync.errno != 0 || sync.kind == SyncKind::SyncFileRange {
            continue;
        }
        found.push((
            sync.dev.0,
            Operation {
                thread: sync.thread.0,
                enter_ns: sync.enter_ns,
                exit_ns: sync.exit_ns,
                what: What::Sync,
                inode: sync.inode.0,
                bytes: 0,
            },
        ));
    }
    let mut traced = Traced {
        command: reader.trace().command.clone(),
        ..Traced::default()
    };
    for task in reader.rows::<Task>()? {
        let task = task?;
        let name = task
            .comm
            .trim_end_matches(|c: char| !c.is_ascii_alphabetic());
        traced.names.insert(task.thread.0, name.to_owned());
    }
    for handle in reader.rows::<Handle>()? {
        let handle = handle?;
        if handle.kind == WRITE_PAGE {
            *traced.allocations.entry(handle.thread.0).or_default() += u64::from(handle.count);
        }
    }
    let all = found.len();
    let main = busiest(&found);
    found.retain(|(dev, _)| *dev == 0 || *dev == main);
    traced.elsewhere = (all - found.len()) as u64;
    traced.operations = found.into_iter().map(|(_, operation)| operation).collect();
    traced
        .operations
        .sort_by_key(|operation| (operation.thread, operation.enter_ns));
    Ok(traced)
}

/// The file system with the most operations; one that is not known (0) is none.
fn busiest(found: &[(u32, Operation)]) -> u32 {
    let mut counts: HashMap<u32, usize> = HashMap::new();
    for (dev, _) in found.iter().filter(|(dev, _)| *dev != 0) {
        *counts.entry(*dev).or_default() += 1;
    }
    let most = counts.into_iter().max_by_key(|&(dev, count)| (count, dev));
    most.map_or(0, |(dev, _)| dev)
}
