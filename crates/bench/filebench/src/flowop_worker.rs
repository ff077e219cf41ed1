//! A client: loops over its flowops.

use std::io;
use std::sync::{Mutex, PoisonError};

use luc_stats::seeded_random;
use rand_chacha::ChaCha8Rng;

use super::aio::AioPool;
use super::ast::RunEndRule;
use super::client_totals::{DrawStatistics, OperationCounts, SharedOperationCounts};
use super::client_waits::ClientWaits;
use super::descriptor_table::{DescriptorTable, TransferBuffer};
use super::drawn_numbers::WorkloadNumber;
use super::event_generator::EventGenerator;
use super::fileset_tree::FilesetTree;
use super::plan::{ClientPlan, FlowopKind, FlowopTarget, LoopStep, PlannedFlowop, WorkloadPlan};
use luc_workload::workers::{ClientFault, WorkloadClient, now_ns};

/// State of a run that all its clients share.
#[derive(Debug)]
pub(super) struct SharedRunState<'a> {
    pub(super) plan: &'a WorkloadPlan,
    pub(super) trees: Vec<FilesetTree>,
    pub(super) compat: bool,
    pub(super) seed: u64,
    /// Seeds of the streams of [`WorkloadPlan::sources`].
    pub(super) seeds: Vec<u64>,
    /// Event generator; `None`: every limit is free.
    pub(super) rate: Option<EventGenerator>,
    pub(super) waits: ClientWaits,
    pub(super) totals: Vec<SharedOperationCounts>,
    pub(super) sums: Mutex<EndedClientSums>,
    /// Why the first client gave up, where no call failed.
    pub(super) failure: Mutex<Option<String>>,
}

/// Sums over the clients that have ended, per operation.
#[derive(Debug, Default)]
pub(super) struct EndedClientSums {
    pub(super) done: Vec<OperationCounts>,
    pub(super) draws: Vec<DrawStatistics>,
    pub(super) read_bytes: u64,
    pub(super) written_bytes: u64,
}

/// Reason why a client leaves its loop.
#[derive(Debug)]
pub(super) enum WorkerStop {
    /// A call failed, or the workload is impossible.
    Fault(ClientFault),
    Over,
    /// The client has done all that there is to do.
    Done,
}

impl From<ClientFault> for WorkerStop {
    fn from(fault: ClientFault) -> Self {
        Self::Fault(fault)
    }
}

/// Client of a run, with its open files and random streams.
pub(super) struct FlowopWorker<'a> {
    pub(super) shared: &'a SharedRunState<'a>,
    pub(super) client: &'a WorkloadClient<'a>,
    pub(super) member: &'a ClientPlan,
    pub(super) slots: DescriptorTable,
    pub(super) buffer: TransferBuffer,
    pub(super) random: ChaCha8Rng,
    pub(super) aio: AioPool,
    /// Numbers that limits and ends remember.
    pub(super) memories: Vec<Option<u64>>,
    sources: Vec<ChaCha8Rng>,
    done: Vec<OperationCounts>,
    draws: Vec<DrawStatistics>,
    read_bytes: u64,
    written_bytes: u64,
    /// The clock when it was read last, ns.
    now_ns: u64,
}

impl<'a> FlowopWorker<'a> {
    pub(super) fn new(shared: &'a SharedRunState<'a>, client: &'a WorkloadClient<'a>) -> Self {
        let plan = shared.plan;
        let index = client.index as u64;
        Self {
            shared,
            client,
            member: &plan.clients[client.index],
            slots: DescriptorTable::new(shared.trees.len(), shared.compat),
            buffer: TransferBuffer::default(),
            random: seeded_random::stream(shared.seed, index),
            aio: AioPool::default(),
            memories: vec![None; plan.memories],
            sources: shared.seeds.iter().map(|&seed| seeded_random::stream(seed, index)).collect(),
            done: vec![OperationCounts::default(); plan.names.len()],
            draws: vec![DrawStatistics::default(); plan.names.len()],
            read_bytes: 0,
            written_bytes: 0,
            now_ns: now_ns(),
        }
    }

    /// Loops until the end of the run, or its own.
    pub(super) fn work(mut self) -> Result<(), ClientFault> {
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
        if let WorkerStop::Fault(fault) = stop {
            return Err(fault);
        }
        if matches!(stop, WorkerStop::Done) && plan.mode != RunEndRule::AllDone {
            self.client.end_run(now_ns());
        }
        if self.shared.waits.leave() == 0 {
            self.client.end_run(now_ns());
        }
        Ok(())
    }

    fn add_up(&self) {
        let mut sums = self.shared.sums.lock().unwrap_or_else(PoisonError::into_inner);
        sums.done.resize(self.done.len(), OperationCounts::default());
        sums.draws.resize(self.draws.len(), DrawStatistics::default());
        for (sum, done) in sums.done.iter_mut().zip(&self.done) {
            *sum += *done;
        }
        for (sum, draws) in sums.draws.iter_mut().zip(&self.draws) {
            sum.merge(*draws);
        }
        sums.read_bytes += self.read_bytes;
        sums.written_bytes += self.written_bytes;
    }

    fn steps(&mut self, steps: &[LoopStep]) -> Result<(), WorkerStop> {
        for step in steps {
            match step {
                LoopStep::Flowop(flowop) => self.flowop(flowop)?,
                LoopStep::Body { iters, steps } => {
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
    fn check(&self) -> Result<(), WorkerStop> {
        if self.client.running(self.now_ns) { Ok(()) } else { Err(WorkerStop::Over) }
    }

    /// Runs a flowop with its repetitions.
    ///
    /// Each task has its own loop with the system call in it. Functions that returned after the call cost a third of
    /// the rate of short calls. That is more than the flowop's own work. The likely cause is that kernels guard their
    /// returns ("Safe RET"), which spoils the processor's predictions of the program's returns.
    fn flowop(&mut self, flowop: &PlannedFlowop) -> Result<(), WorkerStop> {
        match flowop.task {
            FlowopKind::Open => self.repeat(flowop, |worker| worker.open_flowop(flowop, false)),
            FlowopKind::Create => self.repeat(flowop, |worker| worker.open_flowop(flowop, true)),
            FlowopKind::Close => self.repeat(flowop, |worker| worker.close(flowop)),
            FlowopKind::Delete => self.repeat(flowop, |worker| worker.delete(flowop)),
            FlowopKind::Stat => self.repeat(flowop, |worker| worker.stat(flowop)),
            FlowopKind::Fsync => self.repeat(flowop, |worker| worker.fsync(flowop)),
            FlowopKind::FsyncSet => self.repeat(flowop, |worker| worker.fsync_set(flowop)),
            FlowopKind::Read => self.repeat(flowop, |worker| worker.read(flowop)),
            FlowopKind::ReadWhole => self.repeat(flowop, |worker| worker.read_whole(flowop)),
            FlowopKind::Write => self.repeat(flowop, |worker| worker.write(flowop)),
            FlowopKind::WriteWhole => self.repeat(flowop, |worker| worker.write_whole(flowop)),
            FlowopKind::Append | FlowopKind::AppendRandom => {
                self.repeat(flowop, |worker| worker.append(flowop))
            }
            FlowopKind::MakeDirectory => {
                self.repeat(flowop, |worker| worker.make_directory(flowop))
            }
            FlowopKind::RemoveDirectory => {
                self.repeat(flowop, |worker| worker.remove_directory(flowop))
            }
            FlowopKind::ListDirectory => {
                self.repeat(flowop, |worker| worker.list_directory(flowop))
            }
            FlowopKind::AioWrite => self.repeat(flowop, |worker| worker.aio_write(flowop)),
            FlowopKind::AioWait => self.repeat(flowop, |worker| worker.aio_wait(flowop)),
            _ => self.repeat(flowop, |worker| worker.control(flowop)),
        }
    }

    #[inline]
    fn repeat(
        &mut self,
        flowop: &PlannedFlowop,
        once: impl Fn(&mut Self) -> Result<(), WorkerStop>,
    ) -> Result<(), WorkerStop> {
        for _ in 0..self.draw(&flowop.iters) {
            self.check()?;
            once(self)?;
        }
        Ok(())
    }

    /// Performs a flowop that is no operation of the workload.
    fn control(&mut self, flowop: &PlannedFlowop) -> Result<(), WorkerStop> {
        // Filebench counts them in a process's total.
        if self.shared.compat {
            self.shared.totals[self.client.index]
                .add(OperationCounts { operations: 1, ..OperationCounts::default() });
        }
        match flowop.task {
            FlowopKind::Delay => {
                let seconds = self.draw(&flowop.value);
                self.client.think(seconds.saturating_mul(1_000_000_000).min(u64::MAX / 4));
            }
            FlowopKind::Think => {
                let pause_us = self.draw(&flowop.value);
                self.client.think(pause_us.saturating_mul(1000).min(u64::MAX / 4));
            }
            FlowopKind::Hog => {
                for round in 0..self.draw(&flowop.value) {
                    std::hint::black_box(round);
                }
            }
            FlowopKind::FinishOnCount | FlowopKind::FinishOnBytes => self.finish(flowop)?,
            FlowopKind::Print => self.print(flowop),
            FlowopKind::TestRandom => {
                let value = self.draw(&flowop.value);
                self.draws[flowop.operation].add(value as f64);
            }
            FlowopKind::EventLimit
            | FlowopKind::TransferLimit
            | FlowopKind::OperationLimit
            | FlowopKind::BandwidthLimit => self.limit(flowop)?,
            _ => self.meet(flowop)?,
        }
        self.now_ns = now_ns();
        Ok(())
    }

    /// Returns a number of the workload, drawn anew if it is random.
    #[inline]
    pub(super) fn draw(&mut self, number: &WorkloadNumber) -> u64 {
        match number {
            WorkloadNumber::Fixed(number) => *number,
            WorkloadNumber::Drawn(_) => match number.source() {
                Some(source) => number.next(&mut self.sources[source]),
                None => number.next(&mut self.random),
            },
        }
    }

    /// Times a call, which returns the bytes that it moved.
    #[inline]
    pub(super) fn timed(
        &mut self,
        flowop: &PlannedFlowop,
        call: impl FnOnce(&mut Self) -> io::Result<u64>,
    ) -> Result<u64, WorkerStop> {
        let start = now_ns();
        let bytes = call(self).map_err(ClientFault::of(flowop.operation))?;
        self.completed(flowop, start, bytes);
        Ok(bytes)
    }

    /// Counts an operation that began at `start_ns` and moved `bytes`.
    pub(super) fn completed(&mut self, flowop: &PlannedFlowop, start_ns: u64, bytes: u64) {
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
        let done = OperationCounts {
            operations: 1,
            transfers: u64::from(flowop.task.reads() || flowop.task.writes()),
            bytes,
        };
        self.done[flowop.operation] += done;
        self.shared.totals[self.client.index].add(done);
    }

    /// Returns the work done by a flowop's target, or by its process.
    pub(super) fn done(&self, flowop: &PlannedFlowop) -> OperationCounts {
        let FlowopTarget::Operations(operations) = &flowop.target else {
            return SharedOperationCounts::sum(&self.shared.totals, &self.member.process);
        };
        let mut sum = OperationCounts::default();
        for &operation in operations {
            sum += self.done[operation];
        }
        sum
    }

    /// Builds a failure that is no failed call.
    pub(super) fn fail(&self, flowop: &PlannedFlowop, why: &str) -> WorkerStop {
        let name = &self.shared.plan.names[flowop.operation];
        if let Ok(mut failure) = self.shared.failure.lock() {
            failure.get_or_insert_with(|| format!("flowop '{name}': {why}"));
        }
        WorkerStop::Fault(ClientFault { operation: flowop.operation, errno: 0 })
    }
}
