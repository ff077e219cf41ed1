//! Destinations of recorded rows.

use std::path::Path;

use luc_events::TraceEvent;
use luc_events::store::TraceWriter;
use luc_events::tables::{ConnectionMessage, OffCpuWait, TraceDescription};

use crate::ProbeError;

/// Receiver of rows, on the recorder's thread. It must be fast: meanwhile the ring buffer fills.
pub trait RowSink: Send {
    /// Takes a row.
    ///
    /// # Errors
    /// Whatever ends the recording.
    fn take(&mut self, event: TraceEvent) -> Result<(), ProbeError>;

    /// Takes a message: the most frequent row.
    ///
    /// # Errors
    /// Whatever ends the recording.
    fn take_message(&mut self, row: ConnectionMessage) -> Result<(), ProbeError> {
        self.take(row.into())
    }

    /// Takes a wait, another frequent row.
    ///
    /// # Errors
    /// Whatever ends the recording.
    fn take_wait(&mut self, row: OffCpuWait) -> Result<(), ProbeError> {
        self.take(row.into())
    }

    /// Called some 50 times a second, with or without rows.
    ///
    /// # Errors
    /// Whatever ends the recording.
    fn tick(&mut self) -> Result<(), ProbeError>;

    /// Returns whether the next rows must be separate from those before.
    fn cut_is_due(&self) -> bool {
        false
    }

    /// Called before a [`cut`](Self::cut): all present threads and connections have a row again from now on.
    fn visit_begins(&mut self, _at_ns: u64) {}

    /// Called when a cut is due: `trace` begins now. Rows of earlier times may still arrive.
    ///
    /// # Errors
    /// Whatever ends the recording.
    fn cut(&mut self, _trace: TraceDescription) -> Result<(), ProbeError> {
        Ok(())
    }

    /// Called once, after the last row.
    ///
    /// # Errors
    /// Whatever makes the recording incomplete.
    fn finish(self: Box<Self>, trace: TraceDescription) -> Result<(), ProbeError>;
}

/// Writes rows into a trace on disk.
#[derive(Debug)]
pub struct StoreSink(TraceWriter);

impl StoreSink {
    /// Creates the trace in `directory`.
    ///
    /// # Errors
    /// As [`TraceWriter::create`].
    pub fn create(directory: &Path, trace: TraceDescription) -> Result<Self, ProbeError> {
        Ok(Self(TraceWriter::create(directory, trace)?))
    }
}

impl RowSink for StoreSink {
    fn take(&mut self, event: TraceEvent) -> Result<(), ProbeError> {
        Ok(self.0.add(event)?)
    }

    fn take_message(&mut self, row: ConnectionMessage) -> Result<(), ProbeError> {
        Ok(self.0.add_message(row)?)
    }

    fn take_wait(&mut self, row: OffCpuWait) -> Result<(), ProbeError> {
        Ok(self.0.add_wait(row)?)
    }

    fn tick(&mut self) -> Result<(), ProbeError> {
        Ok(self.0.tick()?)
    }

    fn finish(self: Box<Self>, trace: TraceDescription) -> Result<(), ProbeError> {
        let Self(writer) = *self;
        Ok(writer.finish(trace)?)
    }
}
