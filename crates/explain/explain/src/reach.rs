//! Which synchronizations `luc run` gets to: system calls that ask for nothing but that.

use luc_events::codes::SyncKind;
use serde::Serialize;

/// How the kernel begins the names of io_uring's threads: workers (`iou-wrk-`) and pollers (`iou-sqp-`).
const OF_IO_URING: &str = "iou-";

/// The way by which data was asked to be made durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// By fsync, fdatasync or msync.
    Call,
    /// By a write to a file that is opened with `O_SYNC` or `O_DSYNC`, or with `RWF_SYNC`.
    SyncWrite,
    /// By a request to io_uring, which a thread of the kernel carries out.
    IoUring,
    /// By sync_file_range, syncfs or sync.
    Other,
}

impl Way {
    /// The way of a call of this kind by a thread of this name.
    #[must_use]
    pub fn of(kind: SyncKind, comm: &str) -> Self {
        match kind {
            _ if comm.starts_with(OF_IO_URING) => Self::IoUring,
            SyncKind::Fsync | SyncKind::Fdatasync | SyncKind::Msync => Self::Call,
            SyncKind::SyncWrite => Self::SyncWrite,
            SyncKind::SyncFileRange | SyncKind::Syncfs => Self::Other,
        }
    }
}

/// Synchronizations by their ways.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Ways {
    /// Calls of fsync, fdatasync and msync, which `luc run` gets to.
    pub calls: u64,
    /// Writes that are made durable by themselves, which pass by it.
    pub sync_writes: u64,
    /// Requests to io_uring, which pass by it.
    pub io_uring: u64,
    /// Calls of sync_file_range, syncfs and sync, which pass by it.
    pub others: u64,
}

impl Ways {
    pub fn add(&mut self, way: Way) {
        *match way {
            Way::Call => &mut self.calls,
            Way::SyncWrite => &mut self.sync_writes,
            Way::IoUring => &mut self.io_uring,
            Way::Other => &mut self.others,
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

    /// The part of all that `luc run` gets to; all of it where nothing is known.
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
        let mut ways = Ways::default();
        for (kind, comm) in [
            (SyncKind::Fsync, "postgres"),
            (SyncKind::SyncWrite, "tarantool"),
            (SyncKind::SyncWrite, "tarantool"),
            (SyncKind::Fsync, "iou-wrk-4711"),
            (SyncKind::Syncfs, "sync"),
        ] {
            ways.add(Way::of(kind, comm));
        }
        let text = ways.passing_by();
        assert_eq!(
            text.as_deref(),
            Some("2 sync writes, 1 io_uring call and 1 sync_file_range or syncfs call")
        );
        assert_eq!(ways.calls, 1);
        assert_eq!(Ways::default().passing_by(), None);
    }
}
