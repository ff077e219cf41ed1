//! Synchronizations that `luc run` reaches: system calls that do nothing else.

use luc_events::event_kinds::SyncKind;
use serde::Serialize;

/// Prefix of the names of io_uring's threads: workers (`iou-wrk-`) and pollers (`iou-sqp-`).
const IO_URING_PREFIX: &str = "iou-";

/// The way by which a program asked for durability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncWay {
    /// fsync, fdatasync or msync.
    Call,
    /// A write to a file that is opened with `O_SYNC` or `O_DSYNC`, or with `RWF_SYNC`.
    SyncWrite,
    /// A request to io_uring, which a kernel thread carries out.
    IoUring,
    /// sync_file_range, syncfs or sync.
    Other,
}

impl SyncWay {
    /// Returns the way of a call by its kind and its thread's name.
    #[must_use]
    pub fn of(kind: SyncKind, comm: &str) -> Self {
        match kind {
            _ if comm.starts_with(IO_URING_PREFIX) => Self::IoUring,
            SyncKind::Fsync | SyncKind::Fdatasync | SyncKind::Msync => Self::Call,
            SyncKind::SyncWrite => Self::SyncWrite,
            SyncKind::SyncFileRange | SyncKind::Syncfs => Self::Other,
        }
    }
}

/// Number of synchronizations by way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SyncWayCounts {
    /// Calls of fsync, fdatasync and msync, which `luc run` reaches.
    pub calls: u64,
    /// Synchronous writes, which it does not reach.
    pub sync_writes: u64,
    /// Requests to io_uring, which it does not reach.
    pub io_uring: u64,
    /// Calls of sync_file_range, syncfs and sync, which it does not reach.
    pub others: u64,
}

impl SyncWayCounts {
    pub fn add(&mut self, way: SyncWay) {
        *match way {
            SyncWay::Call => &mut self.calls,
            SyncWay::SyncWrite => &mut self.sync_writes,
            SyncWay::IoUring => &mut self.io_uring,
            SyncWay::Other => &mut self.others,
        } += 1;
    }

    /// Names the calls that `luc run` does not reach: `628 sync writes and 12 io_uring calls`.
    /// `None` if there are none.
    #[must_use]
    pub fn passing_by(&self) -> Option<String> {
        let words: Vec<String> = [
            (self.sync_writes, "sync write"),
            (self.io_uring, "io_uring call"),
            (self.others, "sync_file_range or syncfs call"),
        ]
        .into_iter()
        .filter(|&(count, _)| count > 0)
        .map(|(count, name)| format!("{count} {name}{}", if count == 1 { "" } else { "s" }))
        .collect();
        let (last, before) = words.split_last()?;
        Some(if before.is_empty() {
            last.clone()
        } else {
            format!("{} and {last}", before.join(", "))
        })
    }

    /// Returns the share that `luc run` reaches; 1 without any.
    pub(crate) fn share(&self) -> f64 {
        let all = self.calls + self.sync_writes + self.io_uring + self.others;
        if all == 0 { 1.0 } else { self.calls as f64 / all as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_by_is_counted_by_its_way() {
        let mut ways = SyncWayCounts::default();
        for (kind, comm) in [
            (SyncKind::Fsync, "postgres"),
            (SyncKind::SyncWrite, "tarantool"),
            (SyncKind::SyncWrite, "tarantool"),
            (SyncKind::Fsync, "iou-wrk-4711"),
            (SyncKind::Syncfs, "sync"),
        ] {
            ways.add(SyncWay::of(kind, comm));
        }
        let text = ways.passing_by();
        assert_eq!(
            text.as_deref(),
            Some("2 sync writes, 1 io_uring call and 1 sync_file_range or syncfs call")
        );
        assert_eq!(ways.calls, 1);
        assert_eq!(SyncWayCounts::default().passing_by(), None);
    }
}
