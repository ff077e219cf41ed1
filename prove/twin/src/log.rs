//! Rows of the truth, kept in memory while a process serves.
//!
//! Each thread has rows of its own, so no thread waits for another one to write. Their memory is touched before the
//! first request, because a page fault would be a wait of its own.

use std::net::TcpStream;
use std::sync::{Arc, Mutex};

use luc_twin_truth::{Answer, Message, Row, Work, WorkKind};

use crate::error::TwinError;
use crate::socket;
use crate::sync::locked;

/// Row that a thread's memory is filled with at the start.
const FILLING: Row =
    Row::Work(Work { request: 0, thread: 0, kind: WorkKind::Queue, from_ns: 0, to_ns: 0 });

#[derive(Debug, Default)]
struct Rows {
    rows: Vec<Row>,
    dropped: u64,
}

impl Rows {
    fn add(&mut self, row: Row) {
        if self.rows.len() < self.rows.capacity() {
            self.rows.push(row);
        } else {
            self.dropped += 1;
        }
    }
}

#[derive(Debug)]
pub(crate) struct Log {
    rows_per_thread: usize,
    threads: Mutex<Vec<Arc<Mutex<Rows>>>>,
    connections: Mutex<Vec<TcpStream>>,
}

impl Log {
    /// Makes a log with room for `rows_per_thread` rows of each thread.
    pub(crate) fn new(rows_per_thread: usize) -> Arc<Self> {
        Arc::new(Self { rows_per_thread, threads: Mutex::default(), connections: Mutex::default() })
    }

    /// Makes rows for the calling thread, in memory that is already touched.
    pub(crate) fn recorder(&self) -> Recorder {
        let mut rows = vec![FILLING; self.rows_per_thread];
        rows.clear();
        let rows = Arc::new(Mutex::new(Rows { rows, dropped: 0 }));
        locked(&self.threads).push(Arc::clone(&rows));
        Recorder { thread: thread_id(), rows }
    }

    /// Remembers a connection, whose counters the kernel is asked for at the end.
    pub(crate) fn watch(&self, stream: &TcpStream) -> Result<(), TwinError> {
        let stream = stream.try_clone().map_err(TwinError::system("duplicating a socket"))?;
        locked(&self.connections).push(stream);
        Ok(())
    }

    /// Returns all rows in no order, and the number of rows that found no room.
    pub(crate) fn take(&self) -> Result<(Vec<Row>, u64), TwinError> {
        let (mut all, mut dropped) = (Vec::new(), 0);
        for thread in locked(&self.threads).iter() {
            let rows = locked(thread);
            all.extend(&rows.rows);
            dropped += rows.dropped;
        }
        for stream in locked(&self.connections).iter() {
            all.push(Row::Connection(socket::counters(stream)?));
        }
        Ok((all, dropped))
    }
}

/// Writes the rows of one thread.
#[derive(Debug)]
pub(crate) struct Recorder {
    thread: u32,
    rows: Arc<Mutex<Rows>>,
}

impl Recorder {
    pub(crate) fn thread(&self) -> u32 {
        self.thread
    }

    pub(crate) fn message(&self, message: Message) {
        self.add(Row::Message(message));
    }

    pub(crate) fn answer(&self, answer: Answer) {
        self.add(Row::Answer(answer));
    }

    pub(crate) fn work(&self, request: u64, kind: WorkKind, [from_ns, to_ns]: [u64; 2]) {
        self.add(Row::Work(Work { request, thread: self.thread, kind, from_ns, to_ns }));
    }

    fn add(&self, row: Row) {
        locked(&self.rows).add(row);
    }
}

/// Returns the calling thread's id, as the kernel knows it.
pub(crate) fn thread_id() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_without_room_are_counted() {
        let log = Log::new(2);
        let recorder = log.recorder();
        for request in 0..5 {
            recorder.work(request, WorkKind::Search, [1, 2]);
        }
        let (rows, dropped) = log.take().expect("no connection");
        assert_eq!((rows.len(), dropped), (2, 3));
    }
}
