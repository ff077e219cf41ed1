//! A sink that hands events over to another thread, in batches.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use luc_events::TraceEvent;
use luc_events::tables::TraceDescription;

use crate::{ProbeError, RowSink};

/// Maximum number of batches on their way from the recorder's thread. If nobody takes them, for instance because the
/// terminal is stopped, the recorder waits. The kernel then counts the events that it cannot keep.
const MAX_BATCHES: usize = 256;

/// Hands events over, in batches.
#[derive(Debug)]
pub struct ForwardingSink {
    sender: SyncSender<Vec<TraceEvent>>,
    batch: Vec<TraceEvent>,
}

impl ForwardingSink {
    /// Makes the sink and the receiver of its batches, which ends with the recording.
    #[must_use]
    pub fn new() -> (Self, Receiver<Vec<TraceEvent>>) {
        let (sender, batches) = sync_channel(MAX_BATCHES);
        let batch = Vec::new();
        (Self { sender, batch }, batches)
    }

    /// Sends the batch. If the receiver has ended, nobody takes it.
    fn hand_over(&mut self) {
        if !self.batch.is_empty() {
            let _ = self.sender.send(std::mem::take(&mut self.batch));
        }
    }
}

impl RowSink for ForwardingSink {
    fn take(&mut self, event: TraceEvent) -> Result<(), ProbeError> {
        // The analysis has no use for stacks.
        if !matches!(event, TraceEvent::KernelStack(_)) {
            self.batch.push(event);
        }
        Ok(())
    }

    fn tick(&mut self) -> Result<(), ProbeError> {
        self.hand_over();
        Ok(())
    }

    fn finish(mut self: Box<Self>, _trace: TraceDescription) -> Result<(), ProbeError> {
        self.hand_over();
        Ok(())
    }
}
