//! A simulated disk with tasks, to try policies on: exact, in virtual time. Tests only.

mod figures;
mod properties;
mod tasks;

use super::sample::{Action, Class, Decision, DiskSample, Policy, Sample, TaskId, TaskSample};
pub(super) use tasks::Spec;
use tasks::{MS, Request, State};

/// A disk.
#[derive(Clone, Copy, Debug)]
pub(super) enum Disk {
    /// 105 MB/s, and 12 ms before a request that does not continue the last one. One at a time.
    Arm,
    /// As the arm, but striped over two: two requests at a time, each with an arm of its own.
    Pair,
    /// Eight requests at a time, each 60 us and 250 MB/s.
    Flash,
    /// A volume with a cap of 200 MB/s, one at a time.
    Cloud,
}

impl Disk {
    fn slots(self) -> usize {
        match self {
            Self::Arm | Self::Cloud => 1,
            Self::Pair => 2,
            Self::Flash => 8,
        }
    }

    fn service_ns(self, bytes: u64, is_sequential: bool) -> u64 {
        match self {
            Self::Arm | Self::Pair => bytes * 1_000 / 105 + if is_sequential { 0 } else { 12 * MS },
            Self::Flash => bytes * 1_000 / 250 + 60_000,
            Self::Cloud => bytes * 1_000 / 200,
        }
    }
}

/// A request that the disk works on.
#[derive(Clone, Copy, Debug)]
struct InService {
    task: usize,
    slot: usize,
    request: Request,
    issued_ns: u64,
    ends_ns: u64,
    is_sequential: bool,
}

/// What came of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcome {
    /// When each task ended, ns; 0: not within the time.
    pub(super) finish_ns: Vec<u64>,
    /// How long each took, ns.
    pub(super) took_ns: Vec<u64>,
    /// The longest that each was frozen, ns.
    pub(super) longest_frozen_ns: Vec<u64>,
    /// Latencies of each, ns.
    pub(super) latencies_ns: Vec<Vec<u64>>,
    /// Bytes of each.
    pub(super) bytes: Vec<u64>,
    /// The longest time in which the disk did nothing and all batch tasks that were there were frozen, ns.
    pub(super) idle_frozen_ns: u64,
    /// Orders given.
    pub(super) orders: usize,
    /// Rules that were broken.
    pub(super) violations: Vec<String>,
    /// When it ended, ns.
    pub(super) end_ns: u64,
}

impl Outcome {
    /// When the last task was done, ns.
    pub(super) fn makespan_ns(&self) -> u64 {
        self.finish_ns.iter().copied().max().unwrap_or(0)
    }

    /// Weighted speed-up against times alone.
    pub(super) fn weighted_speedup(&self, alone_ns: &[u64]) -> f64 {
        let ratios = alone_ns.iter().zip(&self.took_ns);
        ratios
            .map(|(alone, took)| *alone as f64 / *took as f64)
            .sum()
    }

    /// Mean latency of a task, ns.
    pub(super) fn mean_latency_ns(&self, task: usize) -> f64 {
        let all = &self.latencies_ns[task];
        all.iter().sum::<u64>() as f64 / all.len() as f64
    }
}

/// Does nothing.
#[derive(Debug)]
pub(super) struct Nothing;

impl Policy for Nothing {
    fn decide(&mut self, sample: &Sample<'_>) -> Decision {
        Decision {
            orders: Vec::new(),
            look_again_ns: sample.now_ns + 1_000 * MS,
        }
    }
}

/// A disk and tasks at work.
struct Simulation {
    disk: Disk,
    tasks: Vec<State>,
    in_service: Vec<InService>,
    /// Where the disk's arms stand: the end of their last requests.
    heads: Vec<u64>,
    last_dispatched: usize,
    sums: DiskSample,
    now_ns: u64,
    look_at_ns: u64,
    /// Since when the disk does nothing while all are frozen.
    stalled_since_ns: Option<u64>,
    outcome: Outcome,
}

/// Runs tasks on a disk under a policy until all that end have ended, or for `limit_ns`.
pub(super) fn run(disk: Disk, specs: &[Spec], policy: &mut dyn Policy, limit_ns: u64) -> Outcome {
    let mut simulation = Simulation {
        disk,
        tasks: specs
            .iter()
            .enumerate()
            .map(|(i, spec)| State::new(i, *spec))
            .collect(),
        in_service: Vec::new(),
        heads: vec![u64::MAX; disk.slots()],
        last_dispatched: 0,
        sums: DiskSample::default(),
        now_ns: MS,
        look_at_ns: MS,
        stalled_since_ns: None,
        outcome: Outcome::default(),
    };
    let until_ns = simulation.now_ns + limit_ns;
    while simulation.now_ns < until_ns && simulation.tasks.iter().any(State::will_end) {
        simulation.step(policy);
    }
    simulation.finish()
}

/// How long each task takes alone, ns.
pub(super) fn alone_ns(disk: Disk, specs: &[Spec]) -> Vec<u64> {
    let alone = |spec: &Spec| run(disk, &[*spec], &mut Nothing, u64::MAX / 2).took_ns[0];
    specs.iter().map(alone).collect()
}

impl Simulation {
    fn step(&mut self, policy: &mut dyn Policy) {
        let is_waiting = self.is_protected_waiting();
        self.complete();
        for task in &mut self.tasks {
            task.submit(self.now_ns);
        }
        self.dispatch();
        self.note_stall();
        if self.now_ns >= self.look_at_ns || is_waiting != self.is_protected_waiting() {
            self.look(policy);
            for task in &mut self.tasks {
                task.submit(self.now_ns);
            }
            self.dispatch();
            self.note_stall();
        }
        let next_ns = self.next_event_ns();
        if !self.in_service.is_empty() {
            self.sums.busy_ns += next_ns - self.now_ns;
        }
        self.now_ns = next_ns;
    }

    fn is_protected_waiting(&self) -> Vec<bool> {
        let protected = self
            .tasks
            .iter()
            .filter(|task| task.spec.class == Class::Protected);
        protected.map(|task| task.sample.outstanding > 0).collect()
    }

    fn complete(&mut self) {
        let now_ns = self.now_ns;
        let (done, rest): (Vec<InService>, Vec<InService>) = self
            .in_service
            .iter()
            .partition(|service| service.ends_ns <= now_ns);
        self.in_service = rest;
        for service in done {
            let device_ns = now_ns - service.issued_ns.max(self.sums.last_complete_ns);
            self.tasks[service.task].complete(
                service.request,
                service.issued_ns,
                device_ns,
                service.is_sequential,
                now_ns,
            );
            self.sums.last_complete_ns = now_ns;
            self.sums.bytes += service.request.bytes;
            self.sums.requests += 1;
        }
        self.sums.in_flight = self.in_service.len() as u32;
    }

    /// Gives requests to the disk, one of each task in turn.
    fn dispatch(&mut self) {
        while self.in_service.len() < self.disk.slots() {
            let n = self.tasks.len();
            let turns = (1..=n).map(|i| (self.last_dispatched + i) % n);
            let Some(task) = turns.into_iter().find(|i| !self.tasks[*i].queue.is_empty()) else {
                return;
            };
            let Some(request) = self.tasks[task].queue.pop_front() else {
                return;
            };
            self.last_dispatched = task;
            let head = self.heads.iter().position(|head| *head == request.position);
            let is_free =
                |slot: &usize| self.in_service.iter().all(|service| service.slot != *slot);
            let slot = head.or((0..self.heads.len()).find(is_free)).unwrap_or(0);
            self.heads[slot] = request.position + request.bytes;
            self.in_service.push(InService {
                task,
                slot,
                request,
                issued_ns: self.now_ns,
                ends_ns: self.now_ns + self.disk.service_ns(request.bytes, head.is_some()),
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

    fn look(&mut self, policy: &mut dyn Policy) {
        let there: Vec<TaskSample> = self
            .tasks
            .iter()
            .filter(|task| task.is_there(self.now_ns))
            .map(State::sample)
            .collect();
        let decision = policy.decide(&Sample {
            now_ns: self.now_ns,
            disk: self.sums,
            tasks: &there,
        });
        self.check(&decision, &there);
        self.outcome.orders += decision.orders.len();
        for order in &decision.orders {
            if let Some(task) = self
                .tasks
                .iter_mut()
                .find(|task| task.sample.task == order.task)
            {
                task.order(order.action, self.now_ns);
            }
        }
        self.look_at_ns = decision.look_again_ns.max(self.now_ns + 100_000);
    }

    fn check(&mut self, decision: &Decision, there: &[TaskSample]) {
        let mut broken = |what: &str| {
            self.outcome
                .violations
                .push(format!("{what} at {} ns", self.now_ns))
        };
        if !decision.orders.is_sorted_by_key(|order| order.action) {
            broken("a freeze before a thaw");
        }
        if decision.look_again_ns <= self.now_ns
            || decision.look_again_ns > self.now_ns + 1_000 * MS
        {
            broken("a next look at no sensible time");
        }
        let mut ordered: Vec<TaskId> = Vec::new();
        for order in &decision.orders {
            match there.iter().find(|task| task.task == order.task) {
                None => broken("an order for a task that does not exist"),
                Some(task) if task.class != Class::Batch => {
                    broken("an order for a task that is not batch")
                }
                Some(task) if task.frozen == (order.action == Action::Freeze) => {
                    broken("an order that changes nothing")
                }
                Some(_) if ordered.contains(&order.task) => broken("two orders for one task"),
                Some(_) => ordered.push(order.task),
            }
        }
    }

    fn next_event_ns(&self) -> u64 {
        let ends = self.in_service.iter().map(|service| service.ends_ns);
        let ready = self
            .tasks
            .iter()
            .filter_map(|task| task.next_ns(self.now_ns));
        ends.chain(ready)
            .chain([self.look_at_ns])
            .filter(|at_ns| *at_ns > self.now_ns)
            .min()
            .unwrap_or(self.now_ns + MS)
    }

    fn finish(mut self) -> Outcome {
        let now_ns = self.now_ns;
        for task in &mut self.tasks {
            task.note_frozen(now_ns);
            self.outcome
                .finish_ns
                .push(task.finish_ns.saturating_sub(MS));
            self.outcome
                .took_ns
                .push(task.finish_ns.saturating_sub(MS + task.spec.start_ns));
            self.outcome.longest_frozen_ns.push(task.longest_frozen_ns);
            self.outcome
                .latencies_ns
                .push(std::mem::take(&mut task.latencies_ns));
            self.outcome.bytes.push(task.sample.bytes);
        }
        self.outcome.end_ns = now_ns - MS;
        self.outcome
    }
}
