//! Asynchronous writes of a client: a pool of threads that write in its place.
//!
//! The C library's `aio_write`, which Filebench calls, does the same. It is asynchronous for all file systems and
//! flags; the kernel's own interfaces are so only for some.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use rand::Rng;

use super::descriptor_table::TransferBuffer;
use luc_workload::workers::{ClientFault, WorkloadClient, now_ns};

/// Maximum number of threads of a client's pool, as in the C library.
const MAX_THREADS: usize = 20;
/// Maximum number of waiting writes. A client with more waits for its pool, so that a loop of writes does not fill the
/// memory.
const MAX_WAITING: usize = 4096;
/// The longest sleep without a look at the end of the run.
const MAX_SLEEP: Duration = Duration::from_millis(100);

/// Pool of threads that write for one client.
#[derive(Debug, Default)]
pub(super) struct AioPool {
    pool: Arc<Pool>,
    threads: Vec<JoinHandle<()>>,
    /// Writes that `aiowait` has not reaped.
    pending: u64,
    data: Arc<TransferBuffer>,
}

#[derive(Debug, Default)]
struct Pool {
    queue: Mutex<Queue>,
    /// Signals a new write, or the end.
    work: Condvar,
    /// Signals room for another write.
    room: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Write>,
    idle: usize,
    /// Writes done and not reaped.
    finished: u64,
    failed: Option<ClientFault>,
    closed: bool,
}

#[derive(Debug)]
struct Write {
    file: Arc<File>,
    offset: u64,
    size: usize,
    data: Arc<TransferBuffer>,
    operation: usize,
}

impl AioPool {
    /// Hands a write of `size` random bytes to the pool. Errors: those of an earlier write, or no thread.
    pub(super) fn submit(
        &mut self,
        client: &WorkloadClient<'_>,
        operation: usize,
        file: &Arc<File>,
        offset: u64,
        size: usize,
        random: &mut impl Rng,
    ) -> Result<(), ClientFault> {
        if self.data.view(size).is_none() {
            let mut data = TransferBuffer::default();
            data.of(size, random);
            self.data = Arc::new(data);
        }
        let write =
            Write { file: Arc::clone(file), offset, size, data: Arc::clone(&self.data), operation };
        let mut queue = self.pool.lock();
        while queue.waiting.len() >= MAX_WAITING && client.running(now_ns()) {
            let woken = self.pool.room.wait_timeout(queue, MAX_SLEEP);
            queue = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        if let Some(fault) = queue.failed {
            return Err(fault);
        }
        queue.waiting.push_back(write);
        self.pending += 1;
        let short = queue.idle < queue.waiting.len() && self.threads.len() < MAX_THREADS;
        drop(queue);
        self.pool.work.notify_one();
        if short {
            let pool = Arc::clone(&self.pool);
            let thread = Builder::new().stack_size(256 * 1024);
            match thread.spawn(move || pool.serve()) {
                Ok(thread) => self.threads.push(thread),
                // Those that are there do the work.
                Err(_) if !self.threads.is_empty() => {}
                Err(error) => return Err(ClientFault::of(operation)(error)),
            }
        }
        Ok(())
    }

    /// Reaps writes that are done, at most half of the pending ones and at least one; waits for none.
    pub(super) fn reap(&mut self) -> Result<(), ClientFault> {
        let mut queue = self.pool.lock();
        if let Some(fault) = queue.failed {
            return Err(fault);
        }
        let reaped = queue.finished.min((self.pending / 2).max(1));
        queue.finished -= reaped;
        self.pending -= reaped;
        Ok(())
    }
}

impl Drop for AioPool {
    /// Drops waiting writes, since the run is over, and waits for those in progress.
    fn drop(&mut self) {
        let mut queue = self.pool.lock();
        queue.closed = true;
        queue.waiting.clear();
        drop(queue);
        self.pool.work.notify_all();
        for thread in self.threads.drain(..) {
            // A thread of the pool never panics, and there would be nobody to report it to.
            let _ = thread.join();
        }
    }
}

impl Pool {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes as a thread of the pool, until the end.
    fn serve(&self) {
        let mut queue = self.lock();
        loop {
            if let Some(write) = queue.waiting.pop_front() {
                drop(queue);
                self.room.notify_one();
                let outcome = write.perform();
                queue = self.lock();
                queue.finished += 1;
                if let Err(error) = outcome {
                    queue.failed.get_or_insert(ClientFault::of(write.operation)(error));
                }
            } else if queue.closed {
                return;
            } else {
                queue.idle += 1;
                queue = self.work.wait(queue).unwrap_or_else(PoisonError::into_inner);
                queue.idle -= 1;
            }
        }
    }
}

impl Write {
    fn perform(&self) -> io::Result<()> {
        let data = self.data.view(self.size).ok_or(io::ErrorKind::InvalidInput)?;
        self.file.write_all_at(data, self.offset)
    }
}
