//! Threads that write callers' data early, and do all else that may wait, so that the event loop never waits.
//!
//! A write that has begun is waited for, however long it takes: only the early write is told of blocks that cannot be
//! allocated. One that has not begun in time is given up, and its call is made as without luc.

use std::collections::VecDeque;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd, RawFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::{io, mem, thread};

use luc_gate::figures::GatedCallKind;
use luc_gate::overwrite_detection::{FileExtent, OverwriteCandidate};
use luc_gate::rounds::DurabilityNeed;
use luc_gate::writeback_errors::{self, EarlyWrite};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;

use crate::call_ledger::MappedLedger;
use crate::call_maker::CallMaker;
use crate::deferred_close::FilesToClose;
use crate::fetch_file::FileInode;
use crate::kept_file::{KeptFile, synchronize};
use crate::overlay_devices::device_of;

/// Maximum number of threads, and so of early writes at a time. Each is started when a job would wait for the others.
const MAX_THREADS: usize = 32;

/// Wakes the thread that sleeps on the bell.
#[derive(Debug)]
pub(crate) struct SupervisorBell(OwnedFd);

impl SupervisorBell {
    pub(crate) fn ring(&self) {
        // It cannot be full: it counts to 2^64.
        let _ = rustix::io::write(self.0.as_fd(), &1_u64.to_ne_bytes());
    }
}

/// Work on a file.
#[derive(Debug)]
pub(crate) struct FileJob {
    /// Maker of the call that the work is for.
    pub(crate) who: CallMaker,
    pub(crate) task: FileWork,
    pub(crate) ordered_ns: u64,
}

/// Work on a file that may wait.
#[derive(Debug)]
pub(crate) enum FileWork {
    /// Write a file's data early, for a call that waits, and find out what the call needs.
    Write {
        call: u64,
        file: Arc<KeptFile>,
        inode: FileInode,
        /// The file's size and blocks, for a call that may need a flush only.
        extent: Option<FileExtent>,
        /// Whether the data is written; else only the need of the last write is found out.
        writes: bool,
    },
    /// Synchronize a file in place of a call that waits.
    Synchronize { call: u64, file: Arc<KeptFile>, inode: FileInode, kind: GatedCallKind },
    /// Close a file that may be a server's.
    Close(OwnedFd),
    /// Find the device that a path leads to.
    Find(String),
}

/// Result of work on a file.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FinishedWork {
    Written {
        call: u64,
        who: CallMaker,
        written: EarlyWriteResult,
        needs: DurabilityNeed,
    },
    /// Result of a synchronization: an `errno`, or 0. The file is closed.
    Synchronized {
        call: u64,
        errno: i32,
    },
    /// The call was answered before.
    NotNeeded,
    Closed,
    /// A path leads to this device.
    Found(Option<u64>),
}

/// Result of an early write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EarlyWriteResult {
    /// The data is on the disk.
    Done,
    /// Nobody asked for a write.
    NotAsked,
    /// The data could not be written early, or the write failed in a way that the program's own call reports.
    Refused,
    /// Data is lost with this `errno`, which nobody else is told.
    Lost(i32),
}

#[derive(Debug)]
struct Queue {
    state: Mutex<State>,
    /// Woken for each job, and at the end.
    ordered: Condvar,
    /// Rung when something is done.
    bell: OwnedFd,
    /// Keeps errors until a caller has been told.
    ledger: Arc<MappedLedger>,
    closing: FilesToClose,
}

#[derive(Debug, Default)]
struct State {
    jobs: VecDeque<FileJob>,
    done: Vec<FinishedWork>,
    /// Time at which each thread took its current job; 0 while it has none.
    taken_ns: Vec<u64>,
    /// Threads that wait for a job.
    idle: usize,
    /// No more threads can be started.
    is_full: bool,
    is_over: bool,
}

/// The threads. They end when this is dropped, each after its current job.
#[derive(Debug)]
pub(crate) struct EarlyWriters(Arc<Queue>);

impl EarlyWriters {
    /// Starts the first thread.
    ///
    /// # Errors
    /// If the system has no thread or descriptor left.
    pub(crate) fn start(ledger: Arc<MappedLedger>) -> io::Result<Self> {
        let queue = Arc::new(Queue {
            state: Mutex::default(),
            ordered: Condvar::new(),
            bell: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            ledger,
            closing: FilesToClose::default(),
        });
        let writers = Self(queue);
        writers.start_thread(&mut writers.0.lock())?;
        Ok(writers)
    }

    fn start_thread(&self, state: &mut State) -> io::Result<()> {
        let index = state.taken_ns.len();
        let queue = Arc::clone(&self.0);
        thread::Builder::new()
            .name(format!("early-write-{index}"))
            .spawn(move || queue.work(index))?;
        state.taken_ns.push(0);
        state.idle += 1;
        Ok(())
    }

    /// Readable when something is done.
    pub(crate) fn bell(&self) -> &OwnedFd {
        &self.0.bell
    }

    /// Opens another handle that rings the bell.
    ///
    /// # Errors
    /// The process may have no further descriptor.
    pub(crate) fn ringer(&self) -> io::Result<SupervisorBell> {
        Ok(SupervisorBell(self.0.bell.try_clone()?))
    }

    pub(crate) fn order(&self, job: FileJob) {
        let closes = usize::from(matches!(job.task, FileWork::Close(_)));
        self.0.closing.add(closes);
        let mut state = self.0.lock();
        state.jobs.push_back(job);
        if state.idle < state.jobs.len() && !state.is_full {
            let is_started = self.start_thread(&mut state).is_ok();
            state.is_full = !is_started || state.taken_ns.len() == MAX_THREADS;
        }
        drop(state);
        self.0.ordered.notify_one();
    }

    /// Whether every thread began its job before `before_ns`, so that nothing else gets done.
    pub(crate) fn are_stuck(&self, before_ns: u64) -> bool {
        let state = self.0.lock();
        let is_stuck = |&ns: &u64| ns != 0 && ns < before_ns;
        state.is_full && state.taken_ns.iter().all(is_stuck)
    }

    /// The files that wait to be closed.
    pub(crate) fn closing(&self) -> FilesToClose {
        self.0.closing.clone()
    }

    /// Whether a job waits for a thread.
    pub(crate) fn has_orders(&self) -> bool {
        !self.0.lock().jobs.is_empty()
    }

    /// Takes back the early writes that were ordered before `before_ns` and not begun. Returns their calls.
    pub(crate) fn take_back(&self, before_ns: u64) -> Vec<u64> {
        let mut late = Vec::new();
        self.0.lock().jobs.retain(|job| match job.task {
            FileWork::Write { call, .. } if job.ordered_ns < before_ns => {
                late.push(call);
                false
            }
            _ => true,
        });
        late
    }

    /// Takes the results, and silences the bell.
    pub(crate) fn done(&self) -> Vec<FinishedWork> {
        let mut count = [0; 8];
        // Nothing to read means that it did not ring.
        let _ = rustix::io::read(&self.0.bell, &mut count);
        mem::take(&mut self.0.lock().done)
    }
}

impl Drop for EarlyWriters {
    fn drop(&mut self) {
        self.0.lock().is_over = true;
        self.0.ordered.notify_all();
    }
}

impl Queue {
    /// A thread that panics leaves nothing half-done here.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self, index: usize) {
        let mut state = self.lock();
        loop {
            if state.is_over {
                return;
            }
            let Some(job) = state.jobs.pop_front() else {
                state = self.ordered.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            state.idle -= 1;
            state.taken_ns[index] = writeback_errors::now_ns();
            drop(state);
            let done = job.carry_out(&self.ledger);
            state = self.lock();
            state.idle += 1;
            state.taken_ns[index] = 0;
            let closed = usize::from(matches!(done, FinishedWork::Closed));
            self.closing.remove(closed);
            state.done.push(done);
            let _ = rustix::io::write(self.bell.as_fd(), &1_u64.to_ne_bytes());
        }
    }
}

impl FileJob {
    fn carry_out(self, ledger: &MappedLedger) -> FinishedWork {
        match self.task {
            FileWork::Write { call, file, inode, extent, writes } => {
                // It is not there any more if its call was answered meanwhile.
                let (written, needs) = match file.take() {
                    None => (EarlyWriteResult::Refused, DurabilityNeed::Commit),
                    Some(open) => {
                        let done = write(open.as_raw_fd(), extent, writes);
                        if let EarlyWriteResult::Lost(errno) = done.0 {
                            ledger.lose(call, inode, errno);
                        }
                        file.keep(open);
                        done
                    }
                };
                FinishedWork::Written { call, who: self.who, written, needs }
            }
            FileWork::Synchronize { call, file, inode, kind } => {
                let Some(open) = file.take() else {
                    return FinishedWork::NotNeeded;
                };
                let result = synchronize(open.as_fd(), kind);
                drop(open);
                let errno = result.err().map_or(0, Errno::raw_os_error);
                if errno != 0 {
                    ledger.lose(call, inode, errno);
                }
                FinishedWork::Synchronized { call, errno }
            }
            FileWork::Close(file) => {
                drop(file);
                FinishedWork::Closed
            }
            FileWork::Find(path) => FinishedWork::Found(device_of(&path)),
        }
    }
}

/// Writes a file's data early, and finds out what its call needs.
fn write(
    fd: RawFd,
    extent: Option<FileExtent>,
    writes: bool,
) -> (EarlyWriteResult, DurabilityNeed) {
    let written = match writes.then(|| writeback_errors::write_early(fd)) {
        None => EarlyWriteResult::NotAsked,
        Some(EarlyWrite::Done) => EarlyWriteResult::Done,
        Some(EarlyWrite::Refused) => EarlyWriteResult::Refused,
        Some(EarlyWrite::Failed(_)) if writeback_errors::has_recorded_error(fd) => {
            EarlyWriteResult::Refused
        }
        Some(EarlyWrite::Failed(errno)) => EarlyWriteResult::Lost(errno),
    };
    let candidate = extent.and_then(|extent| extent.candidate(fd));
    let needs = candidate.map_or(DurabilityNeed::Commit, OverwriteCandidate::needs);
    if let Some(extent) = extent {
        extent.remember();
    }
    (written, needs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deferred_close::MAX_CLOSING_FILES;
    use std::fs::File;
    use std::time::{Duration, Instant};

    const WHO: CallMaker = CallMaker { thread: 1, process: 1, number: 0, fd: 0 };

    fn job(call: u64, ordered_ns: u64) -> FileJob {
        let file = File::open("/dev/null").unwrap().into();
        let task = FileWork::Write {
            call,
            file: Arc::new(KeptFile::new(file, WHO)),
            inode: FileInode::default(),
            extent: None,
            writes: true,
        };
        FileJob { who: WHO, task, ordered_ns }
    }

    fn writers() -> EarlyWriters {
        EarlyWriters::start(Arc::new(MappedLedger::new().unwrap())).unwrap()
    }

    /// Waits for results, a minute at most.
    fn done(writers: &EarlyWriters) -> Vec<FinishedWork> {
        let begun = Instant::now();
        loop {
            let done = writers.done();
            if !done.is_empty() || begun.elapsed() > Duration::from_secs(60) {
                return done;
            }
            thread::yield_now();
        }
    }

    #[test]
    fn what_cannot_be_written_early_is_told() {
        let writers = writers();
        for call in 0..20 {
            writers.order(job(call, 0));
        }
        let mut calls = Vec::new();
        while calls.len() < 20 {
            for done in done(&writers) {
                let FinishedWork::Written { call, written, .. } = done else {
                    panic!("{done:?}");
                };
                assert_eq!(written, EarlyWriteResult::Refused);
                calls.push(call);
            }
        }
        calls.sort_unstable();
        assert_eq!(calls, (0..20).collect::<Vec<_>>());
    }

    #[test]
    fn no_job_waits_for_another_one_until_there_are_too_many() {
        let writers = writers();
        for call in 0..10 * MAX_THREADS as u64 {
            writers.order(job(call, 0));
            let state = writers.0.lock();
            assert!(state.idle >= state.jobs.len() || state.is_full);
            assert!(state.taken_ns.len() <= MAX_THREADS);
        }
    }

    #[test]
    fn what_nobody_has_begun_is_taken_back() {
        // Two threads that do nothing.
        let state = State { taken_ns: vec![0; 2], is_full: true, ..State::default() };
        let writers = EarlyWriters(Arc::new(Queue {
            state: Mutex::new(state),
            ordered: Condvar::new(),
            bell: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap(),
            ledger: Arc::new(MappedLedger::new().unwrap()),
            closing: FilesToClose::default(),
        }));
        for (call, ordered_ns) in [(1, 10), (2, 20), (3, 30)] {
            writers.order(job(call, ordered_ns));
        }
        assert_eq!(writers.take_back(25), [1, 2]);
        assert!(writers.has_orders());
        assert_eq!(writers.take_back(u64::MAX), [3]);
        assert!(!writers.has_orders());
        assert!(!writers.are_stuck(u64::MAX));
        writers.0.lock().taken_ns = vec![5; 2];
        assert!(writers.are_stuck(6) && !writers.are_stuck(5));
        writers.0.lock().is_full = false;
        assert!(!writers.are_stuck(6), "another thread can be started");
    }

    #[test]
    fn a_synchronized_file_s_result_is_told_and_an_error_kept() {
        let writers = writers();
        let folder = tempfile::tempdir().unwrap();
        let regular = File::create(folder.path().join("a")).unwrap();
        // fsync of a pipe fails.
        let (pipe, _writer) = io::pipe().unwrap();
        for (call, file, expected) in [(7, regular.into(), 0), (8, pipe.into(), libc::EINVAL)] {
            let task = FileWork::Synchronize {
                call,
                file: Arc::new(KeptFile::new(file, WHO)),
                inode: FileInode::default(),
                kind: GatedCallKind::Fsync,
            };
            writers.order(FileJob { who: WHO, task, ordered_ns: 0 });
            let done = done(&writers);
            let is_expected = matches!(done[..], [FinishedWork::Synchronized { call: of, errno }] if of == call && errno == expected);
            assert!(is_expected, "{done:?}");
        }
        // The answer does not arrive.
        writers.0.ledger.answer(-1, 8);
        assert!(writers.0.ledger.has_lost());
    }

    #[test]
    fn files_that_cannot_be_closed_are_counted() {
        let writers = writers();
        writers.0.lock().is_full = true;
        let closing = writers.closing();
        closing.add(MAX_CLOSING_FILES - 1);
        assert!(closing.are_some() && !closing.are_many());
        let file = File::open("/dev/null").unwrap().into();
        writers.order(FileJob { who: WHO, task: FileWork::Close(file), ordered_ns: 0 });
        assert!(matches!(done(&writers)[..], [FinishedWork::Closed]));
        assert!(closing.are_some() && !closing.are_many());
    }
}
