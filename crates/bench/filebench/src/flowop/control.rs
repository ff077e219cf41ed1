//! Flowops that control others: semaphores, limits, ends, and printing.

use crate::client_waits::WaitFailure;
use crate::flowop_worker::{FlowopWorker, WorkerStop};
use crate::plan::{FlowopKind, FlowopTarget, PlannedFlowop};
use crate::setup_actions::say;

impl FlowopWorker<'_> {
    /// Performs `semblock`, `sempost`, `block`, `wakeup`.
    pub(crate) fn meet(&mut self, flowop: &PlannedFlowop) -> Result<(), WorkerStop> {
        let own = flowop.point + self.member.rank;
        let points = match &flowop.target {
            FlowopTarget::Points(points) => &points[..],
            _ => &[],
        };
        let count = self.draw(&flowop.value);
        let waits = &self.shared.waits;
        let outcome = match flowop.task {
            FlowopKind::SemaphoreBlock => waits.take(self.client, own, count),
            FlowopKind::SemaphorePost => waits.post(self.client, points, count, flowop.blocking),
            FlowopKind::Block => waits.block(self.client, own),
            _ => {
                waits.wake(points);
                Ok(())
            }
        };
        outcome.map_err(|broken| match broken {
            WaitFailure::Over => WorkerStop::Over,
            WaitFailure::Deadlock => self
                .fail(flowop, "every thread waits for another here; let one post or wake up first"),
        })
    }

    /// Performs `eventlimit`, `iopslimit`, `opslimit`, `bwlimit`: free if there is no rate.
    pub(crate) fn limit(&mut self, flowop: &PlannedFlowop) -> Result<(), WorkerStop> {
        let Some(rate) = &self.shared.rate else {
            return Ok(());
        };
        let tokens = if flowop.task == FlowopKind::EventLimit {
            1
        } else {
            let done = self.done(flowop);
            let done = match flowop.task {
                FlowopKind::TransferLimit => done.transfers,
                FlowopKind::OperationLimit => done.operations,
                _ => done.bytes >> 20,
            };
            let before = self.memories[flowop.memory].replace(done);
            before.map_or(0, |before| done.saturating_sub(before))
        };
        if rate.take(self.client, tokens) { Ok(()) } else { Err(WorkerStop::Over) }
    }

    pub(crate) fn finish(&mut self, flowop: &PlannedFlowop) -> Result<(), WorkerStop> {
        let goal = match self.memories[flowop.memory] {
            Some(goal) => goal,
            None => {
                let goal = self.draw(&flowop.value);
                self.memories[flowop.memory] = Some(goal);
                goal
            }
        };
        let done = self.done(flowop);
        let reached = if flowop.task == FlowopKind::FinishOnCount {
            done.operations >= goal
        } else {
            done.bytes > goal
        };
        if reached { Err(WorkerStop::Done) } else { Ok(()) }
    }

    pub(crate) fn print(&mut self, flowop: &PlannedFlowop) {
        let value = self.draw(&flowop.value);
        let name = &self.shared.plan.names[flowop.operation];
        say(format_args!("luc: {name}: {value}"));
    }
}
