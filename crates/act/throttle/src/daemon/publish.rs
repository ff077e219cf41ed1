//! Writes the status and the metrics, by a thread of its own: their files may be on the disk that is throttled, and who
//! waits for that disk cannot thaw anybody meanwhile.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use super::metrics;
use super::status::{self, Status};

/// The thread, ended with this value.
#[derive(Debug)]
pub(super) struct Publisher {
    /// `None` only while it is being ended.
    next: Option<SyncSender<Status>>,
    said: Receiver<String>,
    thread: Option<JoinHandle<()>>,
}

impl Publisher {
    /// `metrics` is the file for node_exporter, if there is to be one.
    pub(super) fn start(metrics: Option<PathBuf>) -> Self {
        // One that waits while another is written; older ones would be of no use.
        let (next, statuses) = sync_channel::<Status>(1);
        let (say, said) = sync_channel(16);
        let thread = thread::spawn(move || {
            for status in statuses {
                for line in write(&status, metrics.as_deref()) {
                    // Nobody listens any more, or too much was said.
                    let _ = say.try_send(line);
                }
            }
            status::remove();
        });
        Self { next: Some(next), said, thread: Some(thread) }
    }

    /// Has a status written, unless two are waiting to be.
    pub(super) fn publish(&self, status: Status) {
        if let Some(next) = &self.next {
            let _ = next.try_send(status);
        }
    }

    /// What could not be written since this was last asked, a line each.
    pub(super) fn said(&self) -> Vec<String> {
        self.said.try_iter().collect()
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        self.next = None;
        if let Some(thread) = self.thread.take() {
            // It does nothing that could panic.
            let _ = thread.join();
        }
    }
}

fn write(status: &Status, metrics: Option<&std::path::Path>) -> Vec<String> {
    let mut said = Vec::new();
    if let Err(error) = status.write() {
        said.push(format!("the status cannot be written: {error}"));
    }
    if let Some(path) = metrics
        && let Err(error) = metrics::write(path, status)
    {
        said.push(format!("{}: {error}", path.display()));
    }
    said
}
