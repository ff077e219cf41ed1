//! A client: loops over its flowops.

use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::plan::{Flowop, Plan, Task};
use super::slots::{Buffer, Slots};
use super::tree::Tree;
use crate::fileset::Wanted;
use crate::random;
use crate::workers::{Client, Fault, now_ns};

/// What all clients share.
#[derive(Debug)]
pub(super) struct Shared<'a> {
    pub(super) plan: &'a Plan,
    pub(super) trees: Vec<Tree>,
    /// Keep Filebench's quirks.
    pub(super) compat: bool,
    pub(super) read_bytes: AtomicU64,
    pub(super) written_bytes: AtomicU64,
    /// Why the first client gave up, where no call failed.
    pub(super) failure: Mutex<Option<String>>,
}

/// A client at work.
pub(super) struct Worker<'a> {
    pub(super) shared: &'a Shared<'a>,
    pub(super) client: &'a Client<'a>,
    pub(super) slots: Slots,
    pub(super) buffer: Buffer,
    pub(super) random: ChaCha8Rng,
    read_bytes: u64,
    written_bytes: u64,
}

impl<'a> Worker<'a> {
    pub(super) fn new(shared: &'a Shared<'a>, client: &'a Client<'a>, seed: u64) -> Self {
        Self {
            shared,
            client,
            slots: Slots::new(shared.trees.len(), shared.compat),
            buffer: Buffer::default(),
            random: random::stream(seed, client.index as u64),
            read_bytes: 0,
            written_bytes: 0,
        }
    }

    /// Loops until the end of the run.
    pub(super) fn work(mut self) -> Result<(), Fault> {
        let plan = self.shared.plan;
        let flowops = &plan.loops[plan.clients[self.client.index]];
        let outcome = self.rounds(flowops);
        self.shared
            .read_bytes
            .fetch_add(self.read_bytes, Ordering::Relaxed);
        self.shared
            .written_bytes
            .fetch_add(self.written_bytes, Ordering::Relaxed);
        outcome
    }

    fn rounds(&mut self, flowops: &[Flowop]) -> Result<(), Fault> {
        loop {
            for flowop in flowops {
                for _ in 0..flowop.iters.next(&mut self.random) {
                    if !self.client.running(now_ns()) {
                        return Ok(());
                    }
                    self.once(flowop)?;
                }
            }
            // A loop of nothing but `iters=0` must end as well.
            if !self.client.running(now_ns()) {
                return Ok(());
            }
        }
    }

    fn once(&mut self, flowop: &Flowop) -> Result<(), Fault> {
        match flowop.task {
            Task::Open => self.open_flowop(flowop, false),
            Task::Create => self.open_flowop(flowop, true),
            Task::Close => self.close(flowop),
            Task::Delete => self.delete(flowop),
            Task::Stat => self.stat(flowop),
            Task::Fsync => self.fsync(flowop),
            Task::Read => self.read(flowop),
            Task::ReadWhole => self.read_whole(flowop),
            Task::Write => self.write(flowop),
            Task::WriteWhole => self.write_whole(flowop),
            Task::Append | Task::AppendRandom => self.append(flowop),
            Task::Delay => {
                let seconds = flowop.value.next(&mut self.random);
                self.client
                    .think(seconds.saturating_mul(1_000_000_000).min(u64::MAX / 4));
                Ok(())
            }
            Task::Hog => {
                for round in 0..flowop.value.next(&mut self.random) {
                    std::hint::black_box(round);
                }
                Ok(())
            }
            Task::Free => Ok(()),
        }
    }

    /// Times a call, which returns the bytes that it moved.
    pub(super) fn timed(
        &mut self,
        flowop: &Flowop,
        call: impl FnOnce(&mut Self) -> io::Result<u64>,
    ) -> Result<u64, Fault> {
        let start = now_ns();
        let bytes = call(self).map_err(Fault::of(flowop.operation))?;
        let end = now_ns();
        if self.client.counts(end) {
            self.client.record(flowop.operation, end - start);
            match flowop.task {
                Task::Read | Task::ReadWhole => self.read_bytes += bytes,
                _ => self.written_bytes += bytes,
            }
        }
        Ok(bytes)
    }

    /// A file of the flowop's fileset, made busy: in turn as Filebench does, or at random.
    pub(super) fn pick(
        &mut self,
        flowop: &Flowop,
        wanted: Wanted,
    ) -> Result<(usize, usize), Fault> {
        let Some(files) = flowop.files else {
            return Err(self.fail(
                flowop,
                "it has neither an open file nor a fileset; add filesetname=NAME",
            ));
        };
        let state = &self.shared.trees[files].state;
        let count = self.shared.trees[files].paths.len();
        let index = if self.shared.compat {
            state.pick(wanted)
        } else if count > 0 {
            state.pick_from(wanted, self.random.random_range(0..count))
        } else {
            None
        };
        index.map(|index| (files, index)).ok_or_else(|| {
            let kind = if wanted == Wanted::Missing {
                "name left to create"
            } else {
                "file left to use"
            };
            let name = &self.shared.plan.filesets[files].name;
            self.fail(
                flowop,
                &format!("fileset '{name}' has no {kind}; change its entries or prealloc"),
            )
        })
    }

    /// A failure that is no failed call.
    pub(super) fn fail(&self, flowop: &Flowop, why: &str) -> Fault {
        let name = &self.shared.plan.names[flowop.operation];
        if let Ok(mut failure) = self.shared.failure.lock() {
            failure.get_or_insert_with(|| format!("flowop '{name}': {why}"));
        }
        Fault {
            operation: flowop.operation,
            errno: 0,
        }
    }
}
