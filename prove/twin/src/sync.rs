//! How threads of one process wait for each other.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::wire::Frame;

/// Where a thread waits for one frame that another thread brings.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    frame: Mutex<Option<Option<Frame>>>,
    filled: Condvar,
}

impl Slot {
    /// Wakes who waits; `None` says that nothing will come.
    pub(crate) fn fill(&self, frame: Option<Frame>) {
        *locked(&self.frame) = Some(frame);
        self.filled.notify_one();
    }

    /// What the other thread has brought.
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
