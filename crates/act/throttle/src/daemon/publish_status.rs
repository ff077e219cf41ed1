//! Writes the status and the metrics in a thread of its own. Their files may be on the throttled disk. A thread that
//! waits for that disk cannot thaw any task meanwhile.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use super::metrics;
use super::throttle_status::{self, ThrottleStatus};

/// The thread. It ends when this value is dropped.
#[derive(Debug)]
pub(super) struct StatusPublisher {
    /// `None` only while the thread ends.
    next: Option<SyncSender<ThrottleStatus>>,
    errors: Receiver<String>,
    thread: Option<JoinHandle<()>>,
}

impl StatusPublisher {
    /// Starts the thread. `metrics` is the file for node_exporter, if metrics are wanted.
    pub(super) fn start(metrics: Option<PathBuf>) -> Self {
        // One status may wait while another is written. A longer queue would hold old ones.
        let (next, statuses) = sync_channel::<ThrottleStatus>(1);
        let (say, errors) = sync_channel(16);
        let thread = thread::spawn(move || {
            for status in statuses {
                for line in write(&status, metrics.as_deref()) {
                    // The receiver is gone, or the queue is full.
                    let _ = say.try_send(line);
                }
            }
            throttle_status::remove();
        });
        Self { next: Some(next), errors, thread: Some(thread) }
    }

    /// Queues a status for writing, unless one is queued already.
    pub(super) fn publish(&self, status: ThrottleStatus) {
        if let Some(next) = &self.next {
            let _ = next.try_send(status);
        }
    }

    /// Takes the errors of writing since the last call, a line each.
    pub(super) fn take_errors(&self) -> Vec<String> {
        self.errors.try_iter().collect()
    }
}

impl Drop for StatusPublisher {
    fn drop(&mut self) {
        self.next = None;
        if let Some(thread) = self.thread.take() {
            // The thread does nothing that could panic.
            let _ = thread.join();
        }
    }
}

fn write(status: &ThrottleStatus, metrics: Option<&std::path::Path>) -> Vec<String> {
    let mut errors = Vec::new();
    if let Err(error) = status.write() {
        errors.push(format!("the status cannot be written: {error}"));
    }
    if let Some(path) = metrics
        && let Err(error) = metrics::write(path, status)
    {
        errors.push(format!("{}: {error}", path.display()));
    }
    errors
}
