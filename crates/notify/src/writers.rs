//! Threads that write callers' data early, so that the event loop never waits for a disk.
//!
//! A write that has begun is waited for, however long it takes: of blocks that cannot be allocated only the early
//! write is told. One that has not begun in time is given up, and its call is made as without luc.

use std::collections::VecDeque;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::{io, mem, thread};

use luc_gate::overwrites::{Candidate, Extent};
use luc_gate::rounds::Needs;
use luc_gate::sys::{self, EarlyWrite};
use rustix::event::{EventfdFlags, eventfd};

use crate::who::Who;

/// Threads, at most: as many early writes go on at once. Each is started when a job would wait for the others.
const MOST_THREADS: usize = 32;

/// Wakes who looks at the bell.
#[derive(Debug)]
pub(crate) struct Ringer(OwnedFd);

impl Ringer {
    /// Rings.
    pub(crate) fn ring(&self) {
        // It cannot be full: it counts to 2^64.
        let _ = rustix::io::write(self.0.as_fd(), &1_u64.to_ne_bytes());
    }
}

/// What to do with a file.
#[derive(Debug)]
pub(crate) struct Job {
    /// The call that waits for it; `None` if none does.
    pub(crate) call: Option<u64>,
    /// Who makes that.
    pub(crate) who: Who,
    /// Its file, closed afterwards.
    pub(crate) file: OwnedFd,
    /// The file's size and blocks, for a call that may need a flush only.
    pub(crate) extent: Option<Extent>,
    /// Whether the data is written; else it is only asked what the last write needed.
    pub(crate) writes: bool,
    /// When it was ordered.
    pub(crate) ordered_ns: u64,
}

/// What came of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Done {
    pub(crate) call: Option<u64>,
    pub(crate) who: Who,
    pub(crate) written: Written,
    pub(crate) needs: Needs,
}

/// What came of an early write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// The data is on the disk.
    Done,
    /// Nobody asked for that.
    NotAsked,
    /// It could not be written early, or failed in a way that the program's own call reports.
    Refused,
    /// It is lost with this `errno`, which nobody else is told.
    Lost(i32),
}

#[derive(Debug)]
struct Queue {
    state: Mutex<State>,
    /// Woken for each job, and at the end.
    ordered: Condvar,
    /// Rung when something is done.
    bell: OwnedFd,
}

#[derive(Debug, Default)]
struct State {
    jobs: VecDeque<Job>,
    done: Vec<Done>,
    /// When each thread took the job that it is at; 0 when it is at none.
    taken_ns: Vec<u64>,
    /// Threads that wait for a job.
    idle: usize,
    /// No more threads can be started.
    is_full: bool,
    is_over: bool,
}

/// The threads. They end when this is dropped, each with the job that it is at.
#[derive(Debug)]
pub(crate) struct Writers(Arc<Queue>);

impl Writers {
    /// Starts the first thread.
    ///
    /// # Errors
    /// If the system has no thread or descriptor left.
    pub(crate) fn start() -> io::Result<Self> {
        let queue = Arc::new(Queue {
            state: Mutex::default(),
            ordered: Condvar::new(),
            bell: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
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

    /// Another handle to ring it by.
    ///
    /// # Errors
    /// If the process may have no further descriptor.
    pub(crate) fn ringer(&self) -> io::Result<Ringer> {
        Ok(Ringer(self.0.bell.try_clone()?))
    }

    /// Orders a job.
    pub(crate) fn order(&self, job: Job) {
        let mut state = self.0.lock();
        state.jobs.push_back(job);
        if state.idle < state.jobs.len() && !state.is_full {
            let is_started = self.start_thread(&mut state).is_ok();
            state.is_full = !is_started || state.taken_ns.len() == MOST_THREADS;
        }
        drop(state);
        self.0.ordered.notify_one();
    }

    /// Whether every thread has been at its job since before `before_ns`: nothing else gets done.
    pub(crate) fn are_stuck(&self, before_ns: u64) -> bool {
        let state = self.0.lock();
        let is_stuck = |&ns: &u64| ns != 0 && ns < before_ns;
        state.is_full && state.taken_ns.iter().all(is_stuck)
    }

    /// Whether nobody has begun anything that was ordered.
    pub(crate) fn has_orders(&self) -> bool {
        !self.0.lock().jobs.is_empty()
    }

    /// Takes back the jobs that were ordered before `before_ns` and that no thread has begun; their calls.
    pub(crate) fn take_back(&self, before_ns: u64) -> Vec<u64> {
        let mut state = self.0.lock();
        let is_late = |job: &Job| job.ordered_ns < before_ns;
        let (late, jobs): (VecDeque<Job>, _) =
            mem::take(&mut state.jobs).into_iter().partition(is_late);
        state.jobs = jobs;
        drop(state);
        late.iter().filter_map(|job| job.call).collect()
    }

    /// What is done; silences the bell.
    pub(crate) fn done(&self) -> Vec<Done> {
        let mut count = [0; 8];
        // Nothing to read means that it did not ring.
        let _ = rustix::io::read(&self.0.bell, &mut count);
        mem::take(&mut self.0.lock().done)
    }
}

impl Drop for Writers {
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
                state = self
                    .ordered
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            state.idle -= 1;
            state.taken_ns[index] = sys::now_ns();
            drop(state);
            let done = job.carry_out();
            state = self.lock();
            state.idle += 1;
            state.taken_ns[index] = 0;
            state.done.push(done);
            let _ = rustix::io::write(self.bell.as_fd(), &1_u64.to_ne_bytes());
        }
    }
}

impl Job {
    /// Closes the file before it tells: the call is not answered while this process has it open.
    fn carry_out(self) -> Done {
        let fd = self.file.as_raw_fd();
        let written = match self.writes.then(|| sys::write_early(fd)) {
            None => Written::NotAsked,
            Some(EarlyWrite::Done) => Written::Done,
            Some(EarlyWrite::Refused) => Written::Refused,
            Some(EarlyWrite::Failed(_)) if sys::has_recorded_error(fd) => Written::Refused,
            Some(EarlyWrite::Failed(errno)) => Written::Lost(errno),
        };
        let candidate = self.extent.and_then(|extent| extent.candidate(fd));
        let needs = candidate.map_or(Needs::Commit, Candidate::needs);
        if let Some(extent) = self.extent {
            extent.remember();
        }
        Done {
            call: self.call,
            who: self.who,
            written,
            needs,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::time::{Duration, Instant};

    fn job(call: u64, ordered_ns: u64) -> Job {
        Job {
            call: Some(call),
            who: Who {
                thread: 1,
                process: 1,
                number: 0,
                fd: 0,
            },
            file: File::open("/dev/null").unwrap().into(),
            extent: None,
            writes: true,
            ordered_ns,
        }
    }

    #[test]
    fn what_cannot_be_written_early_is_told() {
        let writers = Writers::start().unwrap();
        for call in 0..20 {
            writers.order(job(call, 0));
        }
        let begun = Instant::now();
        let mut calls = Vec::new();
        while calls.len() < 20 && begun.elapsed() < Duration::from_secs(60) {
            let done = writers.done();
            assert!(done.iter().all(|done| done.written == Written::Refused));
            calls.extend(done.iter().filter_map(|done| done.call));
            thread::yield_now();
        }
        calls.sort_unstable();
        assert_eq!(calls, (0..20).collect::<Vec<_>>());
    }

    #[test]
    fn no_job_waits_for_another_one_until_there_are_too_many() {
        let writers = Writers::start().unwrap();
        for call in 0..10 * MOST_THREADS as u64 {
            writers.order(job(call, 0));
            let state = writers.0.lock();
            assert!(state.idle >= state.jobs.len() || state.is_full);
            assert!(state.taken_ns.len() <= MOST_THREADS);
        }
    }

    #[test]
    fn what_nobody_has_begun_is_taken_back() {
        // Two threads that do nothing.
        let state = State {
            taken_ns: vec![0; 2],
            is_full: true,
            ..State::default()
        };
        let writers = Writers(Arc::new(Queue {
            state: Mutex::new(state),
            ordered: Condvar::new(),
            bell: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap(),
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
}
