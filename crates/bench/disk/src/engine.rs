//! The emulated disk: takes requests, asks the model for their completion times, and completes them at those times.
//!
//! One lock guards everything. Data is copied on arrival, since the caller's buffer may go. It becomes durable at
//! completion. The reply leaves at the model's time: from the caller's thread if that is near, otherwise from the timer
//! thread. A request that fails on purpose takes its normal time and has no effect.

use std::collections::BinaryHeap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use luc_host::kernel_clocks::now_ns;

use crate::block_errno::BlockErrno;
use crate::disk_image::PageKind;
use crate::disk_spec::DiskStats;
use crate::injected_fault::{ActiveFault, FaultSpec, FaultStatus};
use crate::model::{DiskRequest, DiskRequestKind, FixedModel, LatencyModel};
use crate::timer::TimerFd;
use crate::volatile_cache::{CutReport, VolatileCache};

/// A completion this near is waited for in place: cheaper than waking the timer thread.
const MAX_IN_PLACE_WAIT_NS: u64 = 5_000;
/// The timer thread never spins longer than this for a completion.
const MAX_SPIN_NS: u64 = 16_000;

/// The receiver of a request's outcome. Sending must not call back into the engine.
pub(crate) trait RequestReply: Send {
    fn data(self, bytes: &[u8]);
    /// Replies that a write of `len` bytes, a flush or a discard is done.
    fn done(self, len: u32);
    fn failed(self, errno: BlockErrno);
}

/// The rest of a request's work, done when its time comes.
#[derive(Debug, Clone, Copy)]
enum Action {
    Read { offset: usize, len: usize },
    Write { len: u32 },
    Flush { mark: u64 },
    Discard,
    Fail { errno: BlockErrno },
}

#[derive(Debug)]
struct Pending<R> {
    due_ns: u64,
    sequence: u64,
    action: Action,
    reply: R,
}

impl<R> PartialEq for Pending<R> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl<R> Eq for Pending<R> {}
impl<R> PartialOrd for Pending<R> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<R> Ord for Pending<R> {
    /// Earliest due first, then earliest arrived: `BinaryHeap` is a max-heap.
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (other.due_ns, other.sequence).cmp(&(self.due_ns, self.sequence))
    }
}

#[derive(Debug)]
struct Inner<R> {
    model: Box<dyn LatencyModel>,
    store: VolatileCache,
    stats: DiskStats,
    cut: bool,
    fault: Option<ActiveFault>,
    pending: BinaryHeap<Pending<R>>,
    sequence: u64,
}

/// An emulated disk, replying through `R`.
#[derive(Debug)]
pub(crate) struct DiskEngine<R> {
    inner: Mutex<Inner<R>>,
    timer: TimerFd,
}

impl<R: RequestReply> DiskEngine<R> {
    /// Creates a zeroed disk in these pages that takes no time until [`DiskEngine::begin`]. From then on
    /// [`DiskEngine::run_timer`] must run in some thread.
    ///
    /// # Errors
    /// No memory for the image, or no timer descriptor.
    pub(crate) fn new(size_bytes: u64, cache_bytes: u64, pages: PageKind) -> io::Result<Arc<Self>> {
        let as_len = |bytes| usize::try_from(bytes).map_err(io::Error::other);
        Ok(Arc::new(Self {
            inner: Mutex::new(Inner {
                model: Box::new(FixedModel::default()),
                store: VolatileCache::new(as_len(size_bytes)?, as_len(cache_bytes)?, pages)?,
                stats: DiskStats::default(),
                cut: false,
                fault: None,
                pending: BinaryHeap::with_capacity(1024),
                sequence: 0,
            }),
            timer: TimerFd::new()?,
        }))
    }

    pub(crate) fn read(&self, offset: u64, len: u32, reply: R) {
        self.submit(DiskRequestKind::Read, offset, u64::from(len), reply, |_, offset, len| {
            Action::Read { offset, len }
        });
    }

    pub(crate) fn write(&self, offset: u64, data: &[u8], reply: R) {
        self.submit(
            DiskRequestKind::Write,
            offset,
            data.len() as u64,
            reply,
            |store, offset, len| {
                store.write(offset, &data[..len]);
                Action::Write { len: len as u32 }
            },
        );
    }

    /// Makes everything written before it durable on completion.
    pub(crate) fn flush(&self, reply: R) {
        self.submit(DiskRequestKind::Flush, 0, 0, reply, |store, _, _| Action::Flush {
            mark: store.mark(),
        });
    }

    /// Discards a range, which then reads as zeroes.
    pub(crate) fn discard(&self, offset: u64, len: u64, reply: R) {
        self.submit(DiskRequestKind::Discard, offset, len, reply, |store, offset, len| {
            store.discard(offset, len);
            Action::Discard
        });
    }

    pub(crate) fn stats(&self) -> DiskStats {
        let inner = self.lock();
        DiskStats { unflushed_bytes: inner.store.unflushed_bytes(), ..inner.stats }
    }

    pub(crate) fn is_cut(&self) -> bool {
        self.lock().cut
    }

    /// Makes requests fail by `spec` from now on. Replaces an earlier fault.
    pub(crate) fn fail(&self, spec: FaultSpec) -> FaultStatus {
        let now_ns = now_ns();
        let fault = ActiveFault::new(spec, now_ns);
        let status = fault.status(now_ns);
        self.lock().fault = Some(fault);
        status
    }

    /// Ends the fault of [`DiskEngine::fail`], and returns its counters; `None` if there was none.
    pub(crate) fn clear_fault(&self) -> Option<FaultStatus> {
        let fault = self.lock().fault.take()?;
        Some(fault.status(now_ns()))
    }

    pub(crate) fn fault(&self) -> Option<FaultStatus> {
        let inner = self.lock();
        Some(inner.fault.as_ref()?.status(now_ns()))
    }

    /// Cuts the power. Requests in progress fail, unflushed writes are lost as in `VolatileCache::cut`, and later
    /// requests fail until [`DiskEngine::restore`]. Returns `None` if it is cut already.
    pub(crate) fn cut(&self, seed: Option<u64>) -> Option<CutReport> {
        let mut inner = self.lock();
        if inner.cut {
            return None;
        }
        inner.cut = true;
        while let Some(pending) = inner.pending.pop() {
            inner.stats.refused += 1;
            pending.reply.failed(BlockErrno::EIO);
        }
        Some(inner.store.cut(seed))
    }

    /// Gives the power back, to a disk that starts afresh with `model`. Whether it was cut.
    pub(crate) fn restore(&self, model: Box<dyn LatencyModel>) -> bool {
        let mut inner = self.lock();
        let was_cut = std::mem::take(&mut inner.cut);
        if was_cut {
            inner.model = model;
        }
        was_cut
    }

    /// Ends the preparation: everything written is durable, counters start at 0, and `model` takes over.
    pub(crate) fn begin(&self, model: Box<dyn LatencyModel>) {
        let mut inner = self.lock();
        let mark = inner.store.mark();
        inner.store.flush(mark);
        inner.stats = DiskStats::default();
        inner.model = model;
    }

    /// Makes requests take no time and never fail from now on: the disk is about to be removed.
    pub(crate) fn hurry(&self) {
        let mut inner = self.lock();
        inner.fault = None;
        inner.model = Box::new(FixedModel::default());
        while let Some(pending) = inner.pending.pop() {
            inner.complete(pending);
        }
    }

    /// Completes requests that are due, forever. Runs in a thread of its own.
    ///
    /// # Errors
    /// The timer descriptor cannot be read.
    pub(crate) fn run_timer(&self) -> io::Result<()> {
        loop {
            self.timer.wait()?;
            loop {
                let mut inner = self.lock();
                while let Some(pending) = inner.pop_due(now_ns()) {
                    inner.complete(pending);
                }
                let Some(next) = inner.pending.peek().map(|next| next.due_ns) else {
                    break;
                };
                let now = now_ns();
                if next > now + MAX_IN_PLACE_WAIT_NS {
                    self.timer.arm(wake_at_ns(now, next))?;
                    break;
                }
                drop(inner);
                spin_until(next);
            }
        }
    }

    fn submit(
        &self,
        kind: DiskRequestKind,
        offset_bytes: u64,
        len_bytes: u64,
        reply: R,
        act: impl FnOnce(&mut VolatileCache, usize, usize) -> Action,
    ) {
        let mut inner = self.lock();
        let size_bytes = inner.store.bytes().len() as u64;
        if inner.cut || offset_bytes.saturating_add(len_bytes) > size_bytes {
            inner.stats.refused += 1;
            drop(inner);
            reply.failed(BlockErrno::EIO);
            return;
        }
        let now = now_ns();
        let due_ns = inner.model.complete_at_ns(now, DiskRequest { kind, offset_bytes, len_bytes });
        let struck = match &mut inner.fault {
            Some(fault) => fault.strikes(now, kind, offset_bytes, len_bytes),
            None => None,
        };
        let action = if let Some(errno) = struck {
            inner.stats.failed += 1;
            Action::Fail { errno }
        } else {
            inner.count(kind, len_bytes, due_ns - now);
            // Both fit: they lie inside the image, which is in memory.
            act(&mut inner.store, offset_bytes as usize, len_bytes as usize)
        };
        inner.sequence += 1;
        let pending = Pending { due_ns, sequence: inner.sequence, action, reply };
        if due_ns <= now_ns() + MAX_IN_PLACE_WAIT_NS {
            spin_until(due_ns);
            inner.complete(pending);
            return;
        }
        let is_first = inner.pending.peek().is_none_or(|first| due_ns < first.due_ns);
        inner.pending.push(pending);
        if is_first && self.timer.arm(wake_at_ns(now, due_ns)).is_err() {
            // Without a timer the request would never complete; late is better.
            while let Some(pending) = inner.pending.pop() {
                inner.complete(pending);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner<R>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<R: RequestReply> Inner<R> {
    fn pop_due(&mut self, now_ns: u64) -> Option<Pending<R>> {
        let due = self.pending.peek().is_some_and(|first| first.due_ns <= now_ns);
        due.then(|| self.pending.pop()).flatten()
    }

    fn complete(&mut self, pending: Pending<R>) {
        self.stats.late_ns += now_ns().saturating_sub(pending.due_ns);
        match pending.action {
            Action::Read { offset, len } => {
                pending.reply.data(&self.store.bytes()[offset..offset + len]);
            }
            Action::Write { len } => pending.reply.done(len),
            Action::Flush { mark } => {
                self.store.flush(mark);
                pending.reply.done(0);
            }
            Action::Discard => pending.reply.done(0),
            Action::Fail { errno } => pending.reply.failed(errno),
        }
    }

    fn count(&mut self, kind: DiskRequestKind, len_bytes: u64, service_ns: u64) {
        let stats = &mut self.stats;
        match kind {
            DiskRequestKind::Read => {
                stats.reads += 1;
                stats.read_bytes += len_bytes;
                stats.read_ns += service_ns;
            }
            DiskRequestKind::Write => {
                stats.writes += 1;
                stats.written_bytes += len_bytes;
                stats.write_ns += service_ns;
            }
            DiskRequestKind::Flush => {
                stats.flushes += 1;
                stats.flush_ns += service_ns;
            }
            DiskRequestKind::Discard => stats.discards += 1,
        }
    }
}

/// Computes when to wake up for a completion. A sleeper wakes late, and the later the longer it slept (idle states;
/// measured on a virtual machine with a timerfd: 3.5 us after 20 us, 5 us after 100 us, 12 us after 500 us, 17 us after
/// 2.5 ms). So it wakes earlier by about that time and spins for the rest.
fn wake_at_ns(now_ns: u64, due_ns: u64) -> u64 {
    let sleep_ns = due_ns.saturating_sub(now_ns);
    due_ns - (4_000 + sleep_ns / 64).min(MAX_SPIN_NS).min(sleep_ns)
}

fn spin_until(due_ns: u64) {
    while now_ns() < due_ns {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests;
