//! Files of servers that wait to be closed: some server may never let that happen.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Maximum number of servers' files that wait to be closed: beyond it no file is taken over. It leaves most threads
/// free.
pub(crate) const MAX_CLOSING_FILES: usize = 8;

/// Number of files that wait to be closed or are being closed.
#[derive(Clone, Debug, Default)]
pub(crate) struct FilesToClose(Arc<AtomicUsize>);

impl FilesToClose {
    pub(crate) fn add(&self, files: usize) {
        self.0.fetch_add(files, Ordering::AcqRel);
    }

    pub(crate) fn remove(&self, files: usize) {
        self.0.fetch_sub(files, Ordering::AcqRel);
    }

    pub(crate) fn are_some(&self) -> bool {
        self.0.load(Ordering::Acquire) > 0
    }

    pub(crate) fn are_many(&self) -> bool {
        self.0.load(Ordering::Acquire) >= MAX_CLOSING_FILES
    }
}
