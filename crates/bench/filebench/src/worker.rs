//! A client: loops over its flowops.

use std::io;
use std::sync::{Mutex, PoisonError};

use luc_stats::random;
use rand_chacha::ChaCha8Rng;

use super::aio::Aio;
use super::ast::Mode;
use super::plan::{Flowop, Member, Plan, Step, Target, Task};
use super::rate::Rate;
use super::slots::{Buffer, Slots};
use super::totals::{Done, Draws, Total};
use super::tree::Tree;
use super::variables::Number;
use super::waits::Waits;
use luc_workload::workers::{Client, Fault, now_ns};

#[derive(Debug)]
pub(super) struct Shared<'a> {
    pub(super) plan: &'a Plan,
    pub(super) trees: Vec<Tree>,
    pub(super) compat: bool,
    pub(super) seed: u64,
    /// Seeds of the streams of [`Plan::sources`].
    pub(super) seeds: Vec<u64>,
    /// Event generator; `None`: every limit is free.
    pub(super) rate: Option<Rate>,
    pub(super) waits: Waits,
    pub(super) totals: Vec<Total>,
    pub(super) sums: Mutex<Sums>,
    /// Why the first client gave up, where no call failed.
    pub(super) failure: Mutex<Option<String>>,
}

/// Sums over the clients that have ended, per operation.
#[derive(Debug, Default)]
pub(super) struct Sums {
    pub(super) done: Vec<Done>,
    pub(super) draws: Vec<Draws>,
    pub(super) read_bytes: u64,
    pub(super) written_bytes: u64,
}

#[derive(Debug)]
pub(super) enum Stop {
    /// A call failed, or the workload is impossible.
    Fault(Fault),
    Over,
    /// The client has done all that there is to do.
    Done,
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

pub(super) struct Worker<'a> {
    pub(super) shared: &'a Shared<'a>,
    pub(super) client: &'a Client<'a>,
    pub(super) member: &'a Member,
    pub(super) slots: Slots,
    pub(super) buffer: Buffer,
    pub(super) random: ChaCha8Rng,
    pub(super) aio: Aio,
    /// Numbers that limits and ends remember.
    pub(super) memories: Vec<Option<u64>>,
    sources: Vec<ChaCha8Rng>,
    done: Vec<Done>,
    draws: Vec<Draws>,
    read_bytes: u64,
    written_bytes: u64,
    /// The clock when it was read last, ns.
    now_ns: u64,
}

impl<'a> Worker<'a> {
    pub(super) fn new(shared: &'a Shared<'a>, client: &'a Client<'a>) -> Self {
        let plan = shared.plan;
        let index = client.index as u64;
        Self {
            shared,
            client,
            member: &plan.clients[client.index],
            slots: Slots::new(shared.trees.len(), shared.compat),
            buffer: Buffer::default(),
            random: random::stream(shared.seed, index),
            aio: Aio::default(),
            memories: vec![None; plan.memories],
            sources: shared.seeds.iter().map(|&seed| random::stream(seed, index)).collect(),
            done: vec![Done::default(); plan.names.len()],
            draws: vec![Draws::default(); plan.names.len()],
            read_bytes: 0,
            written_bytes: 0,
            now_ns: now_ns(),
        }
    }

    /// Loops until the end of the run, or its own.
    pub(super) fn work(mut self) -> Result<(), Fault> {
        let plan = self.shared.plan;
        let steps = &plan.loops[self.member.steps];
        let stop = loop {
            let round = self.steps(steps);
            // A loop of nothing but `iters=0` must end as well.
            self.now_ns = now_ns();
            if let Err(stop) = round.and_then(|()| self.check()) {
                break stop;
            }
        };
        self.add_up();
        if let Stop::Fault(fault) = stop {
            return Err(fault);
        }
        if matches!(stop, Stop::Done) && plan.mode != Mode::AllDone {
            self.client.end_run(now_ns());
        }
        if self.shared.waits.leave() == 0 {
            self.client.end_run(now_ns());
        }
        Ok(())
    }

    fn add_up(&self) {
        let mut sums = self.shared.sums.lock().unwrap_or_else(PoisonError::into_inner);
        sums.done.resize(self.done.len(), Done::default());
        sums.draws.resize(self.draws.len(), Draws::default());
        for (sum, done) in sums.done.iter_mut().zip(&self.done) {
            *sum += *done;
        }
        for (sum, draws) in sums.draws.iter_mut().zip(&self.draws) {
            sum.merge(*draws);
        }
        sums.read_bytes += self.read_bytes;
        sums.written_bytes += self.written_bytes;
    }

    fn steps(&mut self, steps: &[Step]) -> Result<(), Stop> {
        for step in steps {
            match step {
                Step::Flowop(flowop) => self.flowop(flowop)?,
                Step::Body { iters, steps } => {
                    for _ in 0..self.draw(iters) {
                        self.now_ns = now_ns();
                        self.check()?;
                        self.steps(steps)?;
                    }
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn check(&self) -> Result<(), Stop> {
        if self.client.running(self.now_ns) { Ok(()) } else { Err(Stop::Over) }
    }

    /// Runs a flowop with its repetitions.
    ///
    /// Each task has its own loop with the system call in it. Functions that returned after the call cost a third of
    /// the rate of short calls. That is more than the flowop's own work. The likely cause is that kernels guard their
    /// returns ("Safe RET"), which spoils the processor's predictions of the program's returns.
    fn flowop(&mut self, flowop: &Flowop) -> Result<(), Stop> {
        match flowop.task {
            Task::Open => self.repeat(flowop, |worker| worker.open_flowop(flowop, false)),
            Task::Create => self.repeat(flowop, |worker| worker.open_flowop(flowop, true)),
            Task::Close => self.repeat(flowop, |worker| worker.close(flowop)),
            Task::Delete => self.repeat(flowop, |worker| worker.delete(flowop)),
            Task::Stat => self.repeat(flowop, |worker| worker.stat(flowop)),
            Task::Fsync => self.repeat(flowop, |worker| worker.fsync(flowop)),
            Task::FsyncSet => self.repeat(flowop, |worker| worker.fsync_set(flowop)),
            Task::Read => self.repeat(flowop, |worker| worker.read(flowop)),
            Task::ReadWhole => self.repeat(flowop, |worker| worker.read_whole(flowop)),
            Task::Write => self.repeat(flowop, |worker| worker.write(flowop)),
            Task::WriteWhole => self.repeat(flowop, |worker| worker.write_whole(flowop)),
            Task::Append | Task::AppendRandom => {
                self.repeat(flowop, |worker| worker.append(flowop))
            }
            Task::MakeDirectory => self.repeat(flowop, |worker| worker.make_directory(flowop)),
            Task::RemoveDirectory => self.repeat(flowop, |worker| worker.remove_directory(flowop)),
            Task::ListDirectory => self.repeat(flowop, |worker| worker.list_directory(flowop)),
            Task::AioWrite => self.repeat(flowop, |worker| worker.aio_write(flowop)),
            Task::AioWait => self.repeat(flowop, |worker| worker.aio_wait(flowop)),
            _ => self.repeat(flowop, |worker| worker.control(flowop)),
        }
    }

    #[inline]
    fn repeat(
        &mut self,
        flowop: &Flowop,
        once: impl Fn(&mut Self) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        for _ in 0..self.draw(&flowop.iters) {
            self.check()?;
            once(self)?;
        }
        Ok(())
    }

    /// Performs a flowop that is no operation of the workload.
    fn control(&mut self, flowop: &Flowop) -> Result<(), Stop> {
        // Filebench counts them in a process's total.
        if self.shared.compat {
            self.shared.totals[self.client.index].add(Done { operations: 1, ..Done::default() });
        }
        match flowop.task {
            Task::Delay => {
                let seconds = self.draw(&flowop.value);
                self.client.think(seconds.saturating_mul(1_000_000_000).min(u64::MAX / 4));
            }
            Task::Think => {
                let pause_us = self.draw(&flowop.value);
                self.client.think(pause_us.saturating_mul(1000).min(u64::MAX / 4));
            }
            Task::Hog => {
                for round in 0..self.draw(&flowop.value) {
                    std::hint::black_box(round);
                }
            }
            Task::FinishOnCount | Task::FinishOnBytes => self.finish(flowop)?,
            Task::Print => self.print(flowop),
            Task::TestRandom => {
                let value = self.draw(&flowop.value);
                self.draws[flowop.operation].add(value as f64);
            }
            Task::EventLimit
            | Task::TransferLimit
            | Task::OperationLimit
            | Task::BandwidthLimit => self.limit(flowop)?,
            _ => self.meet(flowop)?,
        }
        self.now_ns = now_ns();
        Ok(())
    }

    /// Returns a number of the workload, drawn anew if it is random.
    #[inline]
    pub(super) fn draw(&mut self, number: &Number) -> u64 {
        match number {
            Number::Fixed(number) => *number,
            Number::Drawn(_) => match number.source() {
                Some(source) => number.next(&mut self.sources[source]),
                None => number.next(&mut self.random),
            },
        }
    }

    /// Times a call, which returns the bytes that it moved.
    #[inline]
    pub(super) fn timed(
        &mut self,
        flowop: &Flowop,
        call: impl FnOnce(&mut Self) -> io::Result<u64>,
    ) -> Result<u64, Stop> {
        let start = now_ns();
        let bytes = call(self).map_err(Fault::of(flowop.operation))?;
        self.completed(flowop, start, bytes);
        Ok(bytes)
    }

    /// Counts an operation that began at `start_ns` and moved `bytes`.
    pub(super) fn completed(&mut self, flowop: &Flowop, start_ns: u64, bytes: u64) {
        let end = now_ns();
        self.now_ns = end;
        if !self.client.counts(end) {
            return;
        }
        self.client.record(flowop.operation, end - start_ns);
        if flowop.task.writes() {
            self.written_bytes += bytes;
        } else {
            self.read_bytes += bytes;
        }
        let done = Done {
            operations: 1,
            transfers: u64::from(flowop.task.reads() || flowop.task.writes()),
            bytes,
        };
        self.done[flowop.operation] += done;
        self.shared.totals[self.client.index].add(done);
    }

    /// Returns the work done by a flowop's target, or by its process.
    pub(super) fn done(&self, flowop: &Flowop) -> Done {
        let Target::Operations(operations) = &flowop.target else {
            return Total::sum(&self.shared.totals, &self.member.process);
        };
        let mut sum = Done::default();
        for &operation in operations {
            sum += self.done[operation];
        }
        sum
    }

    /// Builds a failure that is no failed call.
    pub(super) fn fail(&self, flowop: &Flowop, why: &str) -> Stop {
        let name = &self.shared.plan.names[flowop.operation];
        if let Ok(mut failure) = self.shared.failure.lock() {
            failure.get_or_insert_with(|| format!("flowop '{name}': {why}"));
        }
        Stop::Fault(Fault { operation: flowop.operation, errno: 0 })
    }
}
