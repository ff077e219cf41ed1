//! Counts frozen tasks, so that no task need be looked at to know whether any is frozen.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Counts that all tasks of an engine share.
#[derive(Clone, Debug, Default)]
pub(super) struct FrozenCount(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    now: AtomicU64,
    changes: AtomicU64,
}

impl FrozenCount {
    /// Whether a task is frozen.
    pub(super) fn any(&self) -> bool {
        self.0.now.load(Relaxed) > 0
    }

    /// Number of freezes and thaws so far.
    pub(super) fn changes(&self) -> u64 {
        self.0.changes.load(Relaxed)
    }

    pub(super) fn note_freeze(&self) {
        self.0.now.fetch_add(1, Relaxed);
        self.0.changes.fetch_add(1, Relaxed);
    }

    pub(super) fn note_thaw(&self) {
        self.0.now.fetch_sub(1, Relaxed);
        self.0.changes.fetch_add(1, Relaxed);
    }
}
