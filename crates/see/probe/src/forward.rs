//! A sink that hands events over to another thread, in batches.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use luc_events::Event;
use luc_events::tables::Trace;

use crate::{ProbeError, Sink};

/// Batches of events on their way from the recorder's thread. If nobody takes them, for instance since the terminal is
/// stopped, the recorder waits, and the kernel counts what it cannot keep.
const BATCHES: usize = 256;

/// Hands events over, in batches.
#[derive(Debug)]
pub struct Forward {
    sender: SyncSender<Vec<Event>>,
    batch: Vec<Event>,
}

impl Forward {
    /// The sink, and where its batches come out: until the recording has ended.
    #[must_use]
    pub fn new() -> (Self, Receiver<Vec<Event>>) {
        let (sender, batches) = sync_channel(BATCHES);
        let batch = Vec::new();
        (Self { sender, batch }, batches)
    }

    /// Nobody takes them any more when the receiver has ended.
    fn hand_over(&mut self) {
        if !self.batch.is_empty() {
            let _ = self.sender.send(std::mem::take(&mut self.batch));
        }
    }
}

impl Sink for Forward {
    fn take(&mut self, event: Event) -> Result<(), ProbeError> {
        // The analysis has no use for stacks.
        if !matches!(event, Event::Stack(_)) {
            self.batch.push(event);
        }
        Ok(())
    }

    fn tick(&mut self) -> Result<(), ProbeError> {
        self.hand_over();
        Ok(())
    }

    fn finish(mut self: Box<Self>, _trace: Trace) -> Result<(), ProbeError> {
        self.hand_over();
        Ok(())
    }
}
