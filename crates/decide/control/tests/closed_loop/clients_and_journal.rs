//! A discrete-event model of closed-loop clients, and of a journal that commits one transaction at a time.

use luc_control::auto_gate::{AutoGate, GatePhase, GatePlan, GateReason};
use luc_control::commit_end::{CommitEnd, OtherController};
use luc_stats::seeded_random::{self, gamma};
use proptest::prelude::*;

use crate::MS;

/// Clients that think, then fsync, and a journal whose commit takes `commit_ns`, however many it serves.
pub(crate) struct ClientsAndJournal {
    commit_ns: u64,
    think_ns: Box<dyn FnMut() -> u64>,
    gap_ns: u64,
    clients: Vec<Client>,
    committing: Option<(u64, Vec<usize>, u32)>,
    pub(crate) auto: AutoGate,
    plan: GatePlan,
    completions: u64,
    epoch_ns: u64,
    arrivals_ns: Vec<u32>,
    now_ns: u64,
    /// Whether commits and arrivals are seen exactly, as in the kernel.
    is_exact: bool,
    /// Whether each call comes from a new process.
    is_passing: bool,
    /// Whether the controller's plans are ignored, so that nothing is gated.
    is_stock: bool,
    latencies_ns: u64,
    /// Largest number of calls under way in this half second and the one before.
    most_at_once: [u32; 2],
    span_ns: u64,
}

#[derive(Clone, Copy, PartialEq)]
enum Client {
    Thinks {
        until_ns: u64,
    },
    /// Waits in the gate's round since `since_ns`.
    Gathers {
        since_ns: u64,
    },
    /// Waits in the running transaction since `since_ns`.
    Requests {
        since_ns: u64,
        released: u32,
    },
    Commits {
        since_ns: u64,
    },
}

impl ClientsAndJournal {
    fn new(clients: usize, commit_ns: u64, think_ns: u64, gap_ns: u64) -> Self {
        Self {
            commit_ns,
            think_ns: Box::new(move || think_ns),
            gap_ns,
            clients: (0..clients)
                .map(|i| Client::Thinks { until_ns: (i as u64 + 1) * (gap_ns + think_ns / 16) })
                .collect(),
            committing: None,
            auto: AutoGate::default(),
            plan: GatePlan::default(),
            completions: 0,
            epoch_ns: 0,
            arrivals_ns: Vec::new(),
            now_ns: 0,
            is_exact: false,
            is_passing: false,
            is_stock: false,
            latencies_ns: 0,
            most_at_once: [0; 2],
            span_ns: 0,
        }
    }

    /// Makes each call come from a new process.
    pub(crate) fn passing(self) -> Self {
        Self { is_passing: true, ..self }
    }

    /// Makes commits and arrivals be seen exactly.
    pub(crate) fn seen_exactly(self) -> Self {
        Self { is_exact: true, ..self }
    }

    /// Clients whose think times are drawn from an exponential distribution with this mean.
    pub(crate) fn drawn(
        clients: usize,
        commit_ns: u64,
        mean_think_ns: u64,
        gap_ns: u64,
        seed: u64,
    ) -> Self {
        let mut random = seeded_random::stream(seed, 0);
        Self {
            think_ns: Box::new(move || gamma(&mut random, mean_think_ns as f64, 1.0) as u64),
            ..Self::new(clients, commit_ns, mean_think_ns, gap_ns)
        }
    }

    /// Time that `requests` take, with the controller or without it.
    pub(crate) fn time_of(&mut self, requests: u64, is_gated: bool) -> u64 {
        self.is_stock = !is_gated;
        while self.completions < requests {
            self.step();
        }
        self.now_ns
    }

    fn run(&mut self, for_ns: u64) -> f64 {
        let (start_ns, start) = (self.now_ns, self.completions);
        while self.now_ns < start_ns + for_ns {
            self.step();
        }
        (self.completions - start) as f64 * 1e9 / (self.now_ns - start_ns) as f64
    }

    /// Time at which a round that is short of callers closes.
    fn round_closes_ns(&self) -> Option<u64> {
        let first = self.clients.iter().filter_map(|c| match c {
            Client::Gathers { since_ns } => Some(*since_ns),
            _ => None,
        });
        let first = first.min()?;
        Some(first.max(self.epoch_ns + self.plan.return_ns) + self.plan.patience_ns)
    }

    fn step(&mut self) {
        let wakes = self.clients.iter().filter_map(|c| match c {
            Client::Thinks { until_ns } => Some(*until_ns),
            _ => None,
        });
        let end = self.committing.as_ref().map(|c| c.0);
        let closes = if end.is_none() { self.round_closes_ns() } else { None };
        self.now_ns =
            wakes.chain(end).chain(closes).min().expect("something happens").max(self.now_ns);
        if end == Some(self.now_ns) {
            self.end_commit();
        }
        for client in &mut self.clients {
            if let Client::Thinks { until_ns } = *client
                && until_ns <= self.now_ns
            {
                self.arrivals_ns.push((self.now_ns - self.epoch_ns) as u32);
                *client = if self.plan.gated {
                    Client::Gathers { since_ns: self.now_ns }
                } else {
                    Client::Requests { since_ns: self.now_ns, released: 0 }
                };
            }
        }
        let gathered = self.clients.iter().filter(|c| matches!(c, Client::Gathers { .. })).count();
        let full = gathered >= self.plan.set_point as usize || !self.plan.gated;
        let overdue = self.round_closes_ns().is_some_and(|ns| ns <= self.now_ns);
        if gathered > 0 && self.committing.is_none() && (full || overdue) {
            for client in &mut self.clients {
                if matches!(client, Client::Gathers { .. }) {
                    *client = Client::Requests { since_ns: self.now_ns, released: gathered as u32 };
                }
            }
        }
        self.count_at_once();
        self.start_commit();
        if self.is_stock {
            self.plan = GatePlan::default();
        }
    }

    fn count_at_once(&mut self) {
        let is_under_way = |client: &&Client| !matches!(client, Client::Thinks { .. });
        let at_once = self.clients.iter().filter(is_under_way).count() as u32;
        if self.now_ns - self.span_ns > 500 * MS {
            self.most_at_once = [0, self.most_at_once[0]];
            self.span_ns = self.now_ns;
        }
        self.most_at_once[0] = self.most_at_once[0].max(at_once);
    }

    fn start_commit(&mut self) {
        if self.committing.is_some() {
            return;
        }
        let mut members = Vec::new();
        let mut round = 0;
        for (index, client) in self.clients.iter_mut().enumerate() {
            if let Client::Requests { since_ns, released } = *client {
                members.push(index);
                round = round.max(released);
                *client = Client::Commits { since_ns };
            }
        }
        if !members.is_empty() {
            self.committing = Some((self.now_ns + self.commit_ns, members, round));
        }
    }

    fn end_commit(&mut self) {
        let Some((_, members, released)) = self.committing.take() else {
            return;
        };
        let arrivals = std::mem::take(&mut self.arrivals_ns);
        let mut latency_ns = u64::MAX;
        for (order, &member) in members.iter().enumerate() {
            if let Client::Commits { since_ns } = self.clients[member] {
                latency_ns = latency_ns.min(self.now_ns - since_ns);
                self.latencies_ns += self.now_ns - since_ns;
            }
            let until_ns = self.now_ns + (self.think_ns)() + (order as u64 + 1) * self.gap_ns;
            self.clients[member] = Client::Thinks { until_ns };
        }
        let waiting = self
            .clients
            .iter()
            .filter(|c| matches!(c, Client::Gathers { .. } | Client::Requests { .. }))
            .count();
        self.arrivals_ns = vec![0; waiting];
        self.plan = self.auto.on_epoch(&CommitEnd {
            end_ns: self.now_ns,
            completions: self.completions,
            own_completions: self.completions,
            others: OtherController::default(),
            newcomers: if self.is_passing { self.completions } else { self.clients.len() as u64 },
            most_at_once: self.most_at_once[0].max(self.most_at_once[1]),
            latencies_ns: self.latencies_ns,
            participants: self.clients.len() as u32,
            commit_ns: if released > 0 || self.is_exact { self.commit_ns } else { latency_ns },
            released,
            exact: self.is_exact,
            arrivals_ns: &arrivals,
        });
        self.epoch_ns = self.now_ns;
        self.completions += members.len() as u64;
    }
}

#[test]
fn alternating_groups_become_one_commit_for_all() {
    for clients in [2, 4, 16, 64] {
        let mut world = ClientsAndJournal::new(clients, 13 * MS, 0, 10_000);
        world.run(2_000 * MS);
        let rate = world.run(5_000 * MS);
        let limit = clients as f64 * 1e9 / (13 * MS) as f64;
        assert_eq!(world.auto.phase(), GatePhase::Engaged, "{clients} clients");
        assert!(rate > 0.9 * limit, "{clients} clients: {rate} of {limit} per second");
    }
}

#[test]
fn a_lone_client_is_left_alone() {
    let mut world = ClientsAndJournal::new(1, 13 * MS, 0, 10_000);
    world.run(10_000 * MS);
    assert_eq!(world.auto.reason(), GateReason::Alone);
    assert_eq!(world.auto.trials(), (0, 0));
}

#[test]
fn short_commits_and_long_thoughts_are_left_alone() {
    let mut world = ClientsAndJournal::new(16, MS / 5, 10 * MS, 10_000);
    let ungated = 16.0 * 1e9 / (10 * MS + MS / 5) as f64;
    let rate = world.run(20_000 * MS);
    assert!(rate > 0.97 * ungated, "{rate} of {ungated} per second");
}

#[test]
fn clients_that_leave_are_soon_not_waited_for() {
    let mut world = ClientsAndJournal::new(16, 13 * MS, 0, 10_000);
    world.run(3_000 * MS);
    world.clients.truncate(8);
    world.committing = None;
    for client in &mut world.clients {
        *client = Client::Thinks { until_ns: world.now_ns + 1 };
    }
    world.run(2_000 * MS);
    let rate = world.run(3_000 * MS);
    assert!(rate > 0.85 * 8.0 * 1e9 / (13 * MS) as f64, "{rate} per second");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn it_never_costs_much(
        clients in 1usize..40, commit_us in 50u64..20_000, think_us in 0u64..20_000, gap_us in 1u64..300,
    ) {
        let world = || ClientsAndJournal::new(clients, commit_us * 1_000, think_us * 1_000, gap_us * 1_000);
        let shape = |mut world: ClientsAndJournal| {
            world.run(4_000 * MS);
            (world.run(8_000 * MS), world.auto.phase())
        };
        let (with, phase) = shape(world());
        let (without, _) = shape(ClientsAndJournal { is_stock: true, ..world() });
        prop_assert!(with > 0.96 * without, "{with} with, {without} without: {:?}", phase);
    }
}
