//! Tasks that somebody freezes.

use luc_events::Cause;

use super::actors::names;
use super::figures::evidence;
use super::{Finding, FindingKind, Unit};
use crate::actor::Actor;
use crate::report::{Account, Report};

/// A process counts from this share of its thread time on,
const MIN_SHARE: f64 = 0.1;
/// and from this long on.
const MIN_FROZEN_NS: u64 = 500_000_000;

/// Who is frozen for much of its time.
pub(super) fn frozen(report: &Report) -> Option<Finding> {
    let mut all: Vec<&Account> = frozen_processes(report).collect();
    all.sort_by_key(|account| std::cmp::Reverse(frozen_ns(account)));
    let actors: Vec<Actor> = all.iter().map(|account| actor(account)).collect();
    let worst = actors.first()?.clone();
    let names = names(&actors.iter().collect::<Vec<_>>());
    let (is, whose) = if all.len() == 1 {
        ("is", "its cgroup")
    } else {
        ("are", "their cgroups")
    };
    let sum = |of: fn(&Account) -> u64| {
        all.iter()
            .map(|account| of(account))
            .fold(0, u64::saturating_add)
    };
    let most = |of: fn(&Account) -> u64| all.iter().map(|account| of(account)).max().unwrap_or(0);
    Some(Finding {
        kind: FindingKind::Frozen,
        sentence: format!(
            "{names} {is} kept from running: somebody freezes {whose}; `luc throttle status` says whether it is LUC, \
             and why"
        ),
        dev: None,
        cost_ns: sum(frozen_ns),
        share: 0.0,
        victim: Some(worst),
        culprit: None,
        evidence: vec![
            evidence("thread time frozen", sum(frozen_ns) as f64, Unit::Ns),
            evidence(
                "all their thread time",
                sum(|account| account.wall_ns) as f64,
                Unit::Ns,
            ),
            evidence(
                "times that one was frozen, at most",
                most(|account| account.freezes) as f64,
                Unit::Count,
            ),
            evidence(
                "the longest of these",
                most(|account| account.longest_frozen_ns) as f64,
                Unit::Ns,
            ),
        ],
    })
}

/// All thread time of the processes that are frozen.
pub(super) fn thread_time_ns(report: &Report) -> u64 {
    frozen_processes(report)
        .map(|account| account.wall_ns)
        .fold(0, u64::saturating_add)
}

fn frozen_processes(report: &Report) -> impl Iterator<Item = &Account> {
    report.accounts.processes.iter().filter(|account| {
        let ns = frozen_ns(account);
        ns >= MIN_FROZEN_NS && ns as f64 >= MIN_SHARE * account.wall_ns as f64
    })
}

fn frozen_ns(account: &Account) -> u64 {
    account
        .blocked
        .get(Cause::Frozen.name())
        .copied()
        .unwrap_or(0)
}

fn actor(account: &Account) -> Actor {
    Actor {
        process: account.process.unwrap_or_default(),
        comm: account.comm.clone(),
        cgroup: account.cgroup,
    }
}
