//! Rows on their way out: from the records of the ring buffer to the sink.

use libbpf_rs::Map;
use luc_events::tables::{ConnectionMessage, OffCpuWait, TableRow as _};
use luc_events::{StackId, TraceEvent, WaitCause};

use crate::kernel_stacks::Stacks;
use crate::ring_records::{self, Plain, kind};
use crate::thread_starts::ThreadStarts;
use crate::{ProbeError, RecordingOutcome, RowSink, decode, sleeping_threads};

/// Rows on their way out.
pub(super) struct RowOutput {
    pub(super) sink: Box<dyn RowSink>,
    pub(super) stacks: Stacks,
    /// Set if the functions of threads are wanted.
    pub(super) starts: Option<ThreadStarts>,
    /// Records of new threads, for `starts`.
    pub(super) new_tasks: Vec<ring_records::Task>,
    /// Threads of processes with awaited locks, while records are being taken.
    pub(super) numbers: sleeping_threads::ThreadNumbers,
    pub(super) outcome: RecordingOutcome,
    /// Table and number of the last rows, which are not counted in the outcome yet: finding a table's place there for
    /// each row costs more than most other work.
    pub(super) alike: (&'static str, u64),
    /// Counted events, in the order of records.
    pub(super) counted: Vec<decode::CountedEvent>,
    pub(super) failed: Option<ProbeError>,
}

impl RowOutput {
    pub(super) fn send(&mut self, event: impl Into<TraceEvent>) -> Result<(), ProbeError> {
        let event = event.into();
        self.count(event.table());
        self.sink.take(event)
    }

    fn count(&mut self, table: &'static str) {
        if table != self.alike.0 {
            self.count_alike();
            self.alike.0 = table;
        }
        self.alike.1 += 1;
    }

    pub(super) fn count_alike(&mut self) {
        let (table, rows) = std::mem::take(&mut self.alike);
        if rows > 0 {
            self.outcome.count(table, rows);
        }
    }

    /// Sends a record as [`record`](Self::record) does, with a result for libbpf: a negative number ends the reading.
    pub(super) fn record_or_fail(&mut self, stacks: &Map<'_>, bytes: &[u8]) -> i32 {
        match self.record(stacks, bytes) {
            Ok(()) => 0,
            Err(error) => {
                self.failed = Some(error);
                -libc::ECANCELED
            }
        }
    }

    /// Sends the rows of a record. A record that is too short or of an unknown kind is not from these programs.
    pub(super) fn record(&mut self, stacks: &Map<'_>, bytes: &[u8]) -> Result<(), ProbeError> {
        let Some(kind) = bytes.first_chunk().map(|first| u32::from_ne_bytes(*first)) else {
            return Ok(());
        };
        match kind {
            kind::SYNC => self.send_as(bytes, decode::sync),
            kind::COMMIT => self.send_as(bytes, decode::commit),
            kind::CALL => self.send_as(bytes, decode::call),
            kind::REQUEST => self.send_as(bytes, decode::request),
            kind::TASK => match ring_records::Task::read(bytes) {
                Some(raw) => {
                    self.send(decode::task(&raw))?;
                    if self.starts.is_some() {
                        self.new_tasks.push(raw);
                    }
                    Ok(())
                }
                None => Ok(()),
            },
            kind::CONNECTION => self.send_as(bytes, decode::connection),
            kind::LOCAL => self.send_as(bytes, decode::local),
            kind::MESSAGE => {
                ring_records::read_rows(bytes).try_for_each(|raw: ring_records::Message| {
                    self.count(ConnectionMessage::TABLE);
                    self.sink.take_message(decode::message(&raw))
                })
            }
            kind::TOKEN => self.send_as(bytes, decode::token),
            kind::PACKET => self.send_as(bytes, decode::packet),
            kind::WAIT => ring_records::read_rows(bytes).try_for_each(|raw: ring_records::Wait| {
                let (stack, cause) = self.resolve(stacks, raw.stack, raw.brief, raw.on_ns)?;
                self.count(OffCpuWait::TABLE);
                self.sink.take_wait(decode::wait(&raw, stack, cause))
            }),
            kind::ASLEEP => match ring_records::Asleep::read(bytes) {
                Some(raw) => {
                    let (id, cause, new) = self.stacks.resolve_addresses(&raw.stack, raw.at_ns);
                    if let Some(row) = new {
                        self.send(row)?;
                    }
                    let row = sleeping_threads::row(&raw, id, cause, &mut self.numbers);
                    self.send(row)
                }
                None => Ok(()),
            },
            kind::COUNTS => decode::counters(bytes, &self.counted)
                .into_iter()
                .try_for_each(|row| self.send(row)),
            kind::BRIEF => {
                for row in ring_records::Brief::read(bytes).iter().flat_map(decode::brief) {
                    self.send(row)?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Sends the functions of the last records' threads. This is separate from the records because reading files takes
    /// a while.
    pub(super) fn send_starts(&mut self) -> Result<(), ProbeError> {
        let Some(starts) = &mut self.starts else {
            return Ok(());
        };
        let tasks = std::mem::take(&mut self.new_tasks);
        let rows: Vec<TraceEvent> = tasks.iter().flat_map(|raw| starts.rows(raw)).collect();
        rows.into_iter().try_for_each(|row| self.send(row))
    }

    /// Sends a record as a row, if it is complete.
    fn send_as<R: Plain, E: Into<TraceEvent>>(
        &mut self,
        bytes: &[u8],
        decode: impl FnOnce(&R) -> E,
    ) -> Result<(), ProbeError> {
        R::read(bytes).map_or(Ok(()), |raw| self.send(decode(&raw)))
    }

    /// Returns the stack and the cause of a wait. Sends the stack's row if it is new.
    pub(super) fn resolve(
        &mut self,
        map: &Map<'_>,
        index: u32,
        brief: u32,
        at_ns: u64,
    ) -> Result<(StackId, WaitCause), ProbeError> {
        if index == 0 {
            return Ok((StackId(0), decode::cause(brief, None)));
        }
        let (id, cause, new) = self.stacks.resolve(map, index, at_ns);
        if let Some(row) = new {
            self.send(row)?;
        }
        Ok((id, cause))
    }
}
