//! Simulates the events of a disk and its tasks in virtual time.

use super::super::policy_input::{
    DiskSample, TaskClass, TaskId, TaskSample, ThrottlePolicy, ThrottleSample,
};
use super::simulated_task::{MS, RequestInService, SimulatedTask};
use super::{AccessDistance, DiskModel, ForecastOutcome, TaskWork};

/// A disk and tasks at work.
struct Simulation {
    disk: DiskModel,
    processors: f64,
    tasks: Vec<SimulatedTask>,
    in_service: Vec<RequestInService>,
    /// Positions of the disk's heads: the ends of their last requests.
    heads: Vec<u64>,
    last_dispatched: usize,
    sums: DiskSample,
    now_ns: u64,
    look_at_ns: u64,
    /// Since when the disk is idle while all batch tasks are frozen, ns.
    stalled_since_ns: Option<u64>,
    outcome: ForecastOutcome,
}

/// Like [`run`](super::run), for tasks that share `processors` while they think.
pub fn run_beside(
    disk: &DiskModel,
    processors: f64,
    specs: &[TaskWork],
    policy: &mut dyn ThrottlePolicy,
    limit_ns: u64,
) -> ForecastOutcome {
    let mut simulation = Simulation {
        disk: *disk,
        processors,
        tasks: (0..).zip(specs).map(|(id, spec)| SimulatedTask::new(TaskId(id), *spec)).collect(),
        in_service: Vec::new(),
        heads: vec![u64::MAX; disk.slots.max(1)],
        last_dispatched: 0,
        sums: DiskSample::default(),
        now_ns: MS,
        look_at_ns: MS,
        stalled_since_ns: None,
        outcome: ForecastOutcome::default(),
    };
    let until_ns = simulation.now_ns.saturating_add(limit_ns);
    while simulation.now_ns < until_ns && simulation.tasks.iter().any(SimulatedTask::will_end) {
        simulation.step(policy);
    }
    simulation.finish()
}

impl Simulation {
    fn step(&mut self, policy: &mut dyn ThrottlePolicy) {
        let is_waiting = self.is_protected_waiting();
        let users = self.users();
        self.complete();
        for task in &mut self.tasks {
            task.submit(self.now_ns);
        }
        self.dispatch();
        self.note_stall();
        // As on a real disk, activity of a protected task and each task's first request are notified at once.
        let is_notified = users != self.users() || is_waiting != self.is_protected_waiting();
        if self.now_ns >= self.look_at_ns || is_notified {
            self.look(policy);
            for task in &mut self.tasks {
                task.submit(self.now_ns);
            }
            self.dispatch();
            self.note_stall();
        }
        let share = self.processor_share();
        let next_ns = self.next_event_ns(share);
        if !self.in_service.is_empty() {
            self.sums.busy_ns += next_ns - self.now_ns;
        }
        for task in &mut self.tasks {
            task.think(self.now_ns, next_ns - self.now_ns, share);
        }
        self.now_ns = next_ns;
    }

    /// Part of each processor that a thinking task gets of those that it asks for: 0 to 1.
    fn processor_share(&self) -> f64 {
        let wanted: f64 = self.tasks.iter().map(|task| task.processors(self.now_ns)).sum();
        (self.processors / wanted.max(f64::MIN_POSITIVE)).min(1.0)
    }

    /// Number of tasks that have used the disk.
    fn users(&self) -> usize {
        self.tasks.iter().filter(|task| task.sample.last_submit_ns > 0).count()
    }

    fn is_protected_waiting(&self) -> Vec<bool> {
        let protected = self.tasks.iter().filter(|task| task.spec.class == TaskClass::Protected);
        protected.map(|task| task.sample.outstanding > 0).collect()
    }

    fn complete(&mut self) {
        let now_ns = self.now_ns;
        let (done, rest): (Vec<RequestInService>, Vec<RequestInService>) =
            self.in_service.iter().partition(|service| service.ends_ns <= now_ns);
        self.in_service = rest;
        for service in done {
            let device_ns = now_ns - service.issued_ns.max(self.sums.last_complete_ns);
            self.tasks[service.task].complete(&service, device_ns, now_ns);
            self.sums.last_complete_ns = now_ns;
            self.sums.bytes += service.request.bytes;
            self.sums.requests += 1;
        }
        self.sums.in_flight = self.in_service.len() as u32;
    }

    /// Gives requests to the disk, one of each task in turn.
    fn dispatch(&mut self) {
        while self.in_service.len() < self.heads.len() {
            let n = self.tasks.len();
            let turns = (1..=n).map(|i| (self.last_dispatched + i) % n);
            let mut turns =
                turns.filter_map(|task| Some((task, self.tasks[task].queue.pop_front()?)));
            let Some((task, request)) = turns.next() else {
                return;
            };
            self.last_dispatched = task;
            let head = self.heads.iter().position(|head| *head == request.position);
            let is_free =
                |slot: &usize| self.in_service.iter().all(|service| service.slot != *slot);
            let is_near = |slot: &usize| self.tasks[task].owns(self.heads[*slot]);
            let mut free = (0..self.heads.len()).filter(is_free);
            let slot =
                head.or_else(|| free.clone().find(is_near)).or_else(|| free.next()).unwrap_or(0);
            let access = if head.is_some() || request.is_written_back {
                AccessDistance::Next
            } else if is_near(&slot) {
                AccessDistance::Near
            } else {
                AccessDistance::Far
            };
            if !request.is_written_back {
                self.heads[slot] = request.position + request.bytes;
            }
            let disk = DiskModel {
                bytes_per_s: self.tasks[task].spec.bytes_per_s.unwrap_or(self.disk.bytes_per_s),
                ..self.disk
            };
            self.in_service.push(RequestInService {
                task,
                slot,
                request,
                issued_ns: self.now_ns,
                ends_ns: self.now_ns + disk.service_ns(request.bytes, access),
                is_sequential: head.is_some(),
            });
        }
        self.sums.in_flight = self.in_service.len() as u32;
    }

    fn note_stall(&mut self) {
        let mut batch = self
            .tasks
            .iter()
            .filter(|task| task.is_there(self.now_ns) && task.is_batch())
            .peekable();
        let is_stalled = self.in_service.is_empty()
            && batch.peek().is_some()
            && batch.all(|task| task.sample.frozen);
        if is_stalled {
            let since_ns = *self.stalled_since_ns.get_or_insert(self.now_ns);
            self.outcome.idle_frozen_ns = self.outcome.idle_frozen_ns.max(self.now_ns - since_ns);
        } else {
            self.stalled_since_ns = None;
        }
    }

    fn look(&mut self, policy: &mut dyn ThrottlePolicy) {
        let there: Vec<TaskSample> = self
            .tasks
            .iter()
            .filter(|task| task.is_there(self.now_ns))
            .map(SimulatedTask::sample)
            .collect();
        let decision =
            policy.decide(&ThrottleSample { now_ns: self.now_ns, disk: self.sums, tasks: &there });
        self.outcome.orders += decision.orders.len();
        for order in &decision.orders {
            if let Some(task) = self.tasks.iter_mut().find(|task| task.sample.task == order.task) {
                task.order(order.action, self.now_ns);
            }
        }
        self.look_at_ns = decision.look_again_ns.max(self.now_ns + 100_000);
    }

    fn next_event_ns(&self, share: f64) -> u64 {
        let now_ns = self.now_ns;
        let ends = self.in_service.iter().map(|service| service.ends_ns);
        let begin = self.tasks.iter().filter_map(|task| task.begins_ns(now_ns));
        let thought = self.tasks.iter().filter_map(|task| task.thought_ns(now_ns, share));
        let all = ends.chain(begin).chain(thought).chain([self.look_at_ns]);
        all.filter(|at_ns| *at_ns > now_ns).min().unwrap_or(now_ns + MS)
    }

    fn finish(mut self) -> ForecastOutcome {
        let now_ns = self.now_ns;
        for task in &mut self.tasks {
            task.note_frozen(now_ns);
            self.outcome.finish_ns.push(task.finish_ns.saturating_sub(MS));
            self.outcome.took_ns.push(task.finish_ns.saturating_sub(MS + task.spec.start_ns));
            self.outcome.longest_frozen_ns.push(task.longest_frozen_ns);
            self.outcome.latencies_ns.push(std::mem::take(&mut task.latencies_ns));
            self.outcome.bytes.push(task.sample.bytes);
        }
        self.outcome.end_ns = now_ns - MS;
        self.outcome
    }
}
