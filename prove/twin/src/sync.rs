//! Waiting of threads of one process for each other.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::wire::Frame;

/// A place for one frame, which one thread brings and another waits for.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    frame: Mutex<Option<Option<Frame>>>,
    filled: Condvar,
}

impl Slot {
    /// Wakes the waiting thread; `None` says that no frame will come.
    pub(crate) fn fill(&self, frame: Option<Frame>) {
        *locked(&self.frame) = Some(frame);
        self.filled.notify_one();
    }

    pub(crate) fn wait(&self) -> Option<Frame> {
        let mut frame = locked(&self.frame);
        loop {
            if let Some(frame) = frame.take() {
                return frame;
            }
            frame = self.filled.wait(frame).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
