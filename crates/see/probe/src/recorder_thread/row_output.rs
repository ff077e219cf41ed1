//! Rows on their way out: from the records of the ring buffer to the sink.

use libbpf_rs::Map;
use luc_events::tables::{Message, Row as _, Wait};
use luc_events::{Cause, Event, StackId};

use crate::record::{self, Plain, kind};
use crate::stacks::Stacks;
use crate::starts::Starts;
use crate::{Outcome, ProbeError, Sink, asleep, decode};

/// Rows on their way out.
pub(super) struct Output {
    pub(super) sink: Box<dyn Sink>,
    pub(super) stacks: Stacks,
    /// Set if the functions of threads are wanted.
    pub(super) starts: Option<Starts>,
    /// Records of new threads, for `starts`.
    pub(super) new_tasks: Vec<record::Task>,
    /// Threads of processes with awaited locks, while records are being taken.
    pub(super) numbers: asleep::Numbers,
    pub(super) outcome: Outcome,
    /// Table and number of the last rows, which are not counted in the outcome yet: finding a table's place there for
    /// each row costs more than most other work.
    pub(super) alike: (&'static str, u64),
    /// Counted events, in the order of records.
    pub(super) counted: Vec<decode::Counted>,
    pub(super) failed: Option<ProbeError>,
}

impl Output {
    pub(super) fn send(&mut self, event: impl Into<Event>) -> Result<(), ProbeError> {
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
            kind::TASK => match record::Task::read(bytes) {
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
            kind::MESSAGE => record::read_rows(bytes).try_for_each(|raw: record::Message| {
                self.count(Message::TABLE);
                self.sink.take_message(decode::message(&raw))
            }),
            kind::TOKEN => self.send_as(bytes, decode::token),
            kind::PACKET => self.send_as(bytes, decode::packet),
            kind::WAIT => record::read_rows(bytes).try_for_each(|raw: record::Wait| {
                let (stack, cause) = self.resolve(stacks, raw.stack, raw.brief, raw.on_ns)?;
                self.count(Wait::TABLE);
                self.sink.take_wait(decode::wait(&raw, stack, cause))
            }),
            kind::ASLEEP => match record::Asleep::read(bytes) {
                Some(raw) => {
                    let (id, cause, new) = self.stacks.resolve_addresses(&raw.stack, raw.at_ns);
                    if let Some(row) = new {
                        self.send(row)?;
                    }
                    let row = asleep::row(&raw, id, cause, &mut self.numbers);
                    self.send(row)
                }
                None => Ok(()),
            },
            kind::COUNTS => decode::counters(bytes, &self.counted)
                .into_iter()
                .try_for_each(|row| self.send(row)),
            kind::BRIEF => {
                for row in record::Brief::read(bytes).iter().flat_map(decode::brief) {
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
        let rows: Vec<Event> = tasks.iter().flat_map(|raw| starts.rows(raw)).collect();
        rows.into_iter().try_for_each(|row| self.send(row))
    }

    /// Sends a record as a row, if it is complete.
    fn send_as<R: Plain, E: Into<Event>>(
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
    ) -> Result<(StackId, Cause), ProbeError> {
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
