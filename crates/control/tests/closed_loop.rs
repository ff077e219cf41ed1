//! The controller against a discrete-event model of closed-loop clients and a journal that commits
//! one transaction at a time: simulated, exact, and only a check of the decisions, not of any speed.

use luc_control::auto::{Auto, Phase, Plan, Reason};
use luc_control::epoch::{Epoch, Others};
use proptest::prelude::*;

/// Clients that think, then fsync; a journal whose commit takes `commit_ns` whatever it serves.
struct World {
    commit_ns: u64,
    think_ns: u64,
    gap_ns: u64,
    clients: Vec<Client>,
    committing: Option<(u64, Vec<usize>, u32)>,
    auto: Auto,
    plan: Plan,
    completions: u64,
    epoch_ns: u64,
    arrivals_ns: Vec<u32>,
    now_ns: u64,
}

#[derive(Clone, Copy, PartialEq)]
enum Client {
    Thinks {
        until_ns: u64,
    },
    /// In the gate's round since then.
    Gathers {
        since_ns: u64,
    },
    /// In the running transaction.
    Requests {
        since_ns: u64,
        released: u32,
    },
    Commits {
        since_ns: u64,
    },
}

impl World {
    fn new(clients: usize, commit_ns: u64, think_ns: u64, gap_ns: u64) -> Self {
        Self {
            commit_ns,
            think_ns,
            gap_ns,
            clients: (0..clients)
                .map(|i| Client::Thinks {
                    until_ns: (i as u64 + 1) * (gap_ns + think_ns / 16),
                })
                .collect(),
            committing: None,
            auto: Auto::default(),
            plan: Plan::default(),
            completions: 0,
            epoch_ns: 0,
            arrivals_ns: Vec::new(),
            now_ns: 0,
        }
    }

    fn run(&mut self, for_ns: u64) -> f64 {
        let (start_ns, start) = (self.now_ns, self.completions);
        while self.now_ns < start_ns + for_ns {
            self.step();
        }
        (self.completions - start) as f64 * 1e9 / (self.now_ns - start_ns) as f64
    }

    /// When a round that is short of callers closes.
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
        let closes = if end.is_none() {
            self.round_closes_ns()
        } else {
            None
        };
        self.now_ns = wakes
            .chain(end)
            .chain(closes)
            .min()
            .expect("something happens")
            .max(self.now_ns);
        if end == Some(self.now_ns) {
            self.end_commit();
        }
        for client in &mut self.clients {
            if let Client::Thinks { until_ns } = *client
                && until_ns <= self.now_ns
            {
                self.arrivals_ns.push((self.now_ns - self.epoch_ns) as u32);
                *client = if self.plan.gated {
                    Client::Gathers {
                        since_ns: self.now_ns,
                    }
                } else {
                    Client::Requests {
                        since_ns: self.now_ns,
                        released: 0,
                    }
                };
            }
        }
        let gathered = self
            .clients
            .iter()
            .filter(|c| matches!(c, Client::Gathers { .. }))
            .count();
        let full = gathered >= self.plan.set_point as usize || !self.plan.gated;
        let overdue = self.round_closes_ns().is_some_and(|ns| ns <= self.now_ns);
        if gathered > 0 && self.committing.is_none() && (full || overdue) {
            for client in &mut self.clients {
                if matches!(client, Client::Gathers { .. }) {
                    *client = Client::Requests {
                        since_ns: self.now_ns,
                        released: gathered as u32,
                    };
                }
            }
        }
        self.start_commit();
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
            }
            let until_ns = self.now_ns + self.think_ns + (order as u64 + 1) * self.gap_ns;
            self.clients[member] = Client::Thinks { until_ns };
        }
        let waiting = self
            .clients
            .iter()
            .filter(|c| matches!(c, Client::Gathers { .. }))
            .count();
        self.arrivals_ns = vec![0; waiting];
        self.plan = self.auto.on_epoch(&Epoch {
            end_ns: self.now_ns,
            completions: self.completions,
            own_completions: self.completions,
            others: Others::default(),
            participants: self.clients.len() as u32,
            commit_ns: if released > 0 {
                self.commit_ns
            } else {
                latency_ns
            },
            released,
            exact: false,
            arrivals_ns: &arrivals,
        });
        self.epoch_ns = self.now_ns;
        self.completions += members.len() as u64;
    }
}

const MS: u64 = 1_000_000;

#[test]
fn alternating_groups_become_one_commit_for_all() {
    for clients in [2, 4, 16, 64] {
        let mut world = World::new(clients, 13 * MS, 0, 10_000);
        world.run(2_000 * MS);
        let rate = world.run(5_000 * MS);
        let limit = clients as f64 * 1e9 / (13 * MS) as f64;
        assert_eq!(world.auto.phase(), Phase::Engaged, "{clients} clients");
        assert!(
            rate > 0.9 * limit,
            "{clients} clients: {rate} of {limit} per second"
        );
    }
}

#[test]
fn a_lone_client_is_left_alone() {
    let mut world = World::new(1, 13 * MS, 0, 10_000);
    world.run(10_000 * MS);
    assert_eq!(world.auto.reason(), Reason::Alone);
    assert_eq!(world.auto.trials(), (0, 0));
}

#[test]
fn short_commits_and_long_thoughts_are_left_alone() {
    let mut world = World::new(16, MS / 5, 10 * MS, 10_000);
    let ungated = 16.0 * 1e9 / (10 * MS + MS / 5) as f64;
    let rate = world.run(20_000 * MS);
    assert!(rate > 0.97 * ungated, "{rate} of {ungated} per second");
}

#[test]
fn clients_that_leave_are_soon_not_waited_for() {
    let mut world = World::new(16, 13 * MS, 0, 10_000);
    world.run(3_000 * MS);
    world.clients.truncate(8);
    world.committing = None;
    for client in &mut world.clients {
        *client = Client::Thinks {
            until_ns: world.now_ns + 1,
        };
    }
    world.run(2_000 * MS);
    let rate = world.run(3_000 * MS);
    assert!(
        rate > 0.85 * 8.0 * 1e9 / (13 * MS) as f64,
        "{rate} per second"
    );
}

/// A controller that is fed commits as they come.
#[derive(Default)]
struct Feed {
    auto: Auto,
    plan: Plan,
    now_ns: u64,
    held_ns: u64,
    completions: u64,
    own_completions: u64,
}

impl Feed {
    /// A commit that took `commit_ns` ends, and `served` callers return, of eight.
    fn commit(&mut self, commit_ns: u64, served: u32, participants: u32, others: Others) {
        self.now_ns += commit_ns;
        self.held_ns += if self.plan.gated { commit_ns } else { 0 };
        let arrivals_ns: Vec<u32> = (1..=served).map(|order| order * 1_000_000).collect();
        self.plan = self.auto.on_epoch(&Epoch {
            end_ns: self.now_ns,
            completions: self.completions,
            own_completions: self.own_completions,
            others,
            participants,
            commit_ns,
            released: if self.plan.gated { served } else { 0 },
            exact: false,
            arrivals_ns: &arrivals_ns,
        });
        self.completions += u64::from(served);
        self.own_completions += u64::from(served);
    }
}

/// Callers whose threads change all the time, as those of Go do: their number is never the same, and held they wait for
/// threads that do not come again.
#[test]
fn trials_that_lose_are_short_and_rare_however_callers_seem_to_change() {
    let mut feed = Feed::default();
    for commit in 0.. {
        // Held, a commit takes three times as long and serves as many.
        let commit_ns = if feed.plan.gated { 60 * MS } else { 20 * MS };
        let participants = if commit / 20 % 2 == 0 { 8 } else { 16 };
        feed.commit(commit_ns, 6, participants, Others::default());
        if feed.now_ns > 60_000 * MS {
            break;
        }
    }
    assert_eq!(feed.auto.reason(), Reason::NoGainMeasured);
    assert!(feed.auto.trials().0 >= 2, "{:?}", feed.auto.trials());
    assert!(
        feed.held_ns < 1_000 * MS,
        "held for {} ns of 60 s",
        feed.held_ns
    );
}

/// Services that begin to be asked while a trial goes on.
#[test]
fn more_work_is_not_taken_for_a_gain() {
    let mut feed = Feed::default();
    while feed.now_ns < 6_000 * MS {
        let is_busy = feed.now_ns > 400 * MS;
        let (commit_ns, served) = match (feed.plan.gated, is_busy) {
            (_, false) => (20 * MS, 2),
            (true, true) => (30 * MS, 6),
            (false, true) => (24 * MS, 8),
        };
        feed.commit(commit_ns, served, 8, Others::default());
    }
    assert_eq!(feed.auto.phase(), Phase::Aside);
    assert_eq!(feed.auto.reason(), Reason::NoGainMeasured);
    assert_eq!(feed.auto.trials().1, 0);
    assert!(
        feed.held_ns < 600 * MS,
        "held for {} ns of 6 s",
        feed.held_ns
    );
}

/// Callers that need a flush are slow while those that need a commit are held for a trial, which says nothing about them.
#[test]
fn the_end_of_another_s_trial_is_not_taken_for_a_gain() {
    let mut feed = Feed::default();
    while feed.now_ns < 6_000 * MS {
        let is_trial = (1_000 * MS..4_000 * MS).contains(&feed.now_ns) && feed.auto.trials().0 == 0;
        let others = Others {
            gated: is_trial,
            trying: is_trial,
            lost: false,
        };
        let served = match (feed.plan.gated, is_trial) {
            (_, true) => 2,
            (true, false) => 5,
            (false, false) => 8,
        };
        // Until then they are too many to gain.
        let participants = if feed.now_ns < 1_000 * MS { 8 } else { 12 };
        feed.commit(24 * MS, served, participants, others);
    }
    assert_eq!(feed.auto.trials().1, 0, "{:?}", feed.auto.reason());
    assert!(
        feed.held_ns < 600 * MS,
        "held for {} ns of 6 s",
        feed.held_ns
    );
}

#[test]
fn no_trial_begins_during_another_s() {
    let mut feed = Feed::default();
    let others = Others {
        trying: true,
        ..Others::default()
    };
    while feed.now_ns < 3_000 * MS {
        feed.commit(24 * MS, 4, 8, others);
    }
    assert_eq!(feed.auto.trials(), (0, 0));
    while feed.now_ns < 4_000 * MS {
        feed.commit(24 * MS, 4, 8, Others::default());
    }
    assert_eq!(feed.auto.trials().0, 1);
}

#[test]
fn callers_that_are_few_among_others_are_left_alone() {
    let mut feed = Feed::default();
    while feed.now_ns < 6_000 * MS {
        feed.completions += 16;
        feed.commit(24 * MS, 4, 8, Others::default());
    }
    assert_eq!(feed.auto.reason(), Reason::Few);
    assert_eq!(feed.auto.trials(), (0, 0));
}

/// Held, callers are a little slower: not enough to see it at once.
#[test]
fn a_trial_that_finds_callers_slower_twice_is_over() {
    let mut feed = Feed::default();
    // Rates differ from sample to sample, so that a mean of few says little.
    let held_us = [26_000, 22_600, 26_500, 22_500];
    let (mut samples, mut was_gated) = (0, false);
    while feed.now_ns < 3_000 * MS {
        samples += usize::from(was_gated && !feed.plan.gated);
        was_gated = feed.plan.gated;
        let commit_ns = if was_gated {
            held_us[samples % 4] * 1_000
        } else {
            24 * MS
        };
        feed.commit(commit_ns, 5, 8, Others::default());
    }
    assert_eq!(feed.auto.reason(), Reason::NoGainMeasured);
    assert_eq!(feed.auto.trials(), (1, 0));
    assert!(
        feed.held_ns < 700 * MS,
        "held for {} ns of 3 s",
        feed.held_ns
    );
}

/// Less work after a trial that lost is no reason for another one.
#[test]
fn callers_that_slow_down_after_a_loss_are_left_alone() {
    let mut feed = Feed::default();
    while feed.now_ns < 3_000 * MS {
        let served = match (feed.plan.gated, feed.auto.trials().0 > 0) {
            (true, _) => 4,
            (false, false) => 6,
            (false, true) => 3,
        };
        feed.commit(24 * MS, served, 8, Others::default());
    }
    assert_eq!(feed.auto.trials(), (1, 0));
}

/// Callers that need a flush were held with those that need a commit, in vain.
#[test]
fn callers_that_were_taken_along_in_vain_make_no_trial() {
    let lost = Others {
        lost: true,
        ..Others::default()
    };
    let feed_for = |others_share: u64| {
        let mut feed = Feed::default();
        while feed.now_ns < 3_000 * MS {
            feed.completions += others_share;
            feed.commit(24 * MS, 3, 8, lost);
        }
        feed.auto
    };
    let mixed = feed_for(2);
    assert_eq!(mixed.reason(), Reason::TakenAlong);
    assert_eq!(mixed.trials(), (0, 0));
    // Where nearly nobody commits, that trial says nothing.
    assert!(feed_for(0).trials().0 > 0);
}

/// The work changes when the gate has just engaged.
#[test]
fn held_callers_that_are_slower_than_alone_are_soon_let_go() {
    let mut feed = Feed::default();
    while feed.auto.phase() != Phase::Engaged {
        feed.commit(
            24 * MS,
            if feed.plan.gated { 8 } else { 4 },
            8,
            Others::default(),
        );
        assert!(feed.now_ns < 10_000 * MS, "{:?}", feed.auto.reason());
    }
    let (begun_ns, begun_held_ns) = (feed.now_ns, feed.held_ns);
    while feed.now_ns < begun_ns + 6_000 * MS {
        feed.commit(
            24 * MS,
            if feed.plan.gated { 2 } else { 4 },
            8,
            Others::default(),
        );
    }
    assert_eq!(feed.auto.phase(), Phase::Aside);
    let held_ns = feed.held_ns - begun_held_ns;
    assert!(held_ns < 700 * MS, "held for {held_ns} ns of 6 s");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn it_never_costs_much(
        clients in 1usize..40, commit_us in 50u64..20_000, think_us in 0u64..20_000, gap_us in 1u64..300,
    ) {
        let shape = |world: &mut World| { world.run(4_000 * MS); world.run(8_000 * MS) };
        let mut gated = World::new(clients, commit_us * 1_000, think_us * 1_000, gap_us * 1_000);
        let with = shape(&mut gated);
        let mut stock = World::new(clients, commit_us * 1_000, think_us * 1_000, gap_us * 1_000);
        // Without a plan nothing is gated.
        let without = {
            let mut run = |for_ns: u64| {
                let (t, c) = (stock.now_ns, stock.completions);
                while stock.now_ns < t + for_ns {
                    stock.plan = Plan::default();
                    stock.step();
                    stock.plan = Plan::default();
                }
                (stock.completions - c) as f64 * 1e9 / (stock.now_ns - t) as f64
            };
            run(4_000 * MS);
            run(8_000 * MS)
        };
        prop_assert!(with > 0.96 * without, "{with} with, {without} without: {:?}", gated.auto.phase());
    }

    #[test]
    fn damaged_memory_is_harmless(
        words in proptest::collection::vec(any::<u64>(), size_of::<Auto>() / 8 + 1),
        feeds in proptest::collection::vec((any::<u64>(), any::<u64>(), any::<u32>(), 0u32..600), 1..20),
    ) {
        let mut auto = Auto::default();
        // SAFETY: Auto is made of integers and floats only, and `words` is at least as large.
        unsafe {
            std::ptr::copy_nonoverlapping(
                words.as_ptr().cast::<u8>(),
                std::ptr::from_mut(&mut auto).cast::<u8>(),
                size_of::<Auto>(),
            );
        }
        for (end_ns, completions, participants, released) in feeds {
            let plan = auto.on_epoch(&Epoch {
                end_ns, completions, own_completions: completions / 2,
                others: Others { gated: released % 3 == 0, trying: released % 5 == 0, lost: released % 7 == 0 },
                participants, commit_ns: end_ns / 2, released, exact: released % 2 == 0, arrivals_ns: &[1, 2, 3],
            });
            prop_assert!(plan.set_point >= 1);
        }
    }
}
