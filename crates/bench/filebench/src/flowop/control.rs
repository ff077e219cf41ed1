//! Flowops that control others: semaphores, limits, ends, and printing.

use crate::before::say;
use crate::plan::{Flowop, Target, Task};
use crate::waits::Broken;
use crate::worker::{Stop, Worker};

impl Worker<'_> {
    /// Performs `semblock`, `sempost`, `block`, `wakeup`.
    pub(crate) fn meet(&mut self, flowop: &Flowop) -> Result<(), Stop> {
        let own = flowop.point + self.member.rank;
        let points = match &flowop.target {
            Target::Points(points) => &points[..],
            _ => &[],
        };
        let count = self.draw(&flowop.value);
        let waits = &self.shared.waits;
        let outcome = match flowop.task {
            Task::SemaphoreBlock => waits.take(self.client, own, count),
            Task::SemaphorePost => waits.post(self.client, points, count, flowop.blocking),
            Task::Block => waits.block(self.client, own),
            _ => {
                waits.wake(points);
                Ok(())
            }
        };
        outcome.map_err(|broken| match broken {
            Broken::Over => Stop::Over,
            Broken::Deadlock => self
                .fail(flowop, "every thread waits for another here; let one post or wake up first"),
        })
    }

    /// Performs `eventlimit`, `iopslimit`, `opslimit`, `bwlimit`: free if there is no rate.
    pub(crate) fn limit(&mut self, flowop: &Flowop) -> Result<(), Stop> {
        let Some(rate) = &self.shared.rate else {
            return Ok(());
        };
        let tokens = if flowop.task == Task::EventLimit {
            1
        } else {
            let done = self.done(flowop);
            let done = match flowop.task {
                Task::TransferLimit => done.transfers,
                Task::OperationLimit => done.operations,
                _ => done.bytes >> 20,
            };
            let before = self.memories[flowop.memory].replace(done);
            before.map_or(0, |before| done.saturating_sub(before))
        };
        if rate.take(self.client, tokens) { Ok(()) } else { Err(Stop::Over) }
    }

    pub(crate) fn finish(&mut self, flowop: &Flowop) -> Result<(), Stop> {
        let goal = match self.memories[flowop.memory] {
            Some(goal) => goal,
            None => {
                let goal = self.draw(&flowop.value);
                self.memories[flowop.memory] = Some(goal);
                goal
            }
        };
        let done = self.done(flowop);
        let reached = if flowop.task == Task::FinishOnCount {
            done.operations >= goal
        } else {
            done.bytes > goal
        };
        if reached { Err(Stop::Done) } else { Ok(()) }
    }

    pub(crate) fn print(&mut self, flowop: &Flowop) {
        let value = self.draw(&flowop.value);
        let name = &self.shared.plan.names[flowop.operation];
        say(format_args!("luc: {name}: {value}"));
    }
}
