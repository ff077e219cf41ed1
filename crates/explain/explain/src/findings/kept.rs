//! Tasks that somebody keeps from running: by freezing them, or by a quota of processor time.

use luc_events::Cause;

use super::actors::names;
use super::figures::evidence;
use super::{Evidence, Finding, FindingKind, Unit};
use crate::actor::Actor;
use crate::report::{Account, Report};

/// Minimum share of a process' thread time for which it is kept from running.
const MIN_SHARE: f64 = 0.1;
/// Minimum time for which a process is kept from running.
const MIN_KEPT_NS: u64 = 500_000_000;

/// Finds processes that are frozen for much of their time.
pub(super) fn frozen(report: &Report) -> Option<Finding> {
    let most =
        |of: fn(&Account) -> u64| kept_processes(report, Cause::Frozen).map(of).max().unwrap_or(0);
    let times = [
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
    ];
    finding(
        report,
        Cause::Frozen,
        FindingKind::Frozen,
        "thread time frozen",
        |whose| {
            format!(
                "somebody freezes {whose}; `luc throttle status` says whether it is LUC, and why"
            )
        },
        &times,
    )
}

/// Finds processes whose cgroup has used up its quota for much of the time.
pub(super) fn throttled(report: &Report) -> Option<Finding> {
    finding(
        report,
        Cause::Throttled,
        FindingKind::Throttled,
        "thread time throttled",
        |whose| {
            format!(
                "{whose} used up the quota of processor time; `cpu.max` there says how much that is"
            )
        },
        &[],
    )
}

/// `why` gets the words for the cgroup, or several.
fn finding(
    report: &Report,
    cause: Cause,
    kind: FindingKind,
    thread_time: &'static str,
    why: impl Fn(&str) -> String,
    more: &[Evidence],
) -> Option<Finding> {
    let mut all: Vec<&Account> = kept_processes(report, cause).collect();
    all.sort_by_key(|account| std::cmp::Reverse(kept_ns(account, cause)));
    let actors: Vec<Actor> = all.iter().map(|account| actor(account)).collect();
    let worst = actors.first()?.clone();
    let names = names(&actors.iter().collect::<Vec<_>>());
    let (is, whose) = if all.len() == 1 { ("is", "its cgroup") } else { ("are", "their cgroups") };
    let cost_ns = all.iter().map(|account| kept_ns(account, cause)).fold(0, u64::saturating_add);
    let all_ns = thread_time_ns(report, cause);
    let mut rests_on = vec![
        evidence(thread_time, cost_ns as f64, Unit::Ns),
        evidence("all their thread time", all_ns as f64, Unit::Ns),
    ];
    rests_on.extend_from_slice(more);
    Some(Finding {
        kind,
        sentence: format!("{names} {is} kept from running: {}", why(whose)),
        dev: None,
        cost_ns,
        share: 0.0,
        victim: Some(worst),
        culprit: None,
        evidence: rests_on,
    })
}

/// Returns all thread time of the processes that are kept from running by a cause.
pub(super) fn thread_time_ns(report: &Report, cause: Cause) -> u64 {
    kept_processes(report, cause).map(|account| account.wall_ns).fold(0, u64::saturating_add)
}

fn kept_processes(report: &Report, cause: Cause) -> impl Iterator<Item = &Account> {
    report.accounts.processes.iter().filter(move |account| {
        let ns = kept_ns(account, cause);
        ns >= MIN_KEPT_NS && ns as f64 >= MIN_SHARE * account.wall_ns as f64
    })
}

fn kept_ns(account: &Account, cause: Cause) -> u64 {
    account.blocked.get(cause.name()).copied().unwrap_or(0)
}

fn actor(account: &Account) -> Actor {
    Actor {
        process: account.process.unwrap_or_default(),
        comm: account.comm.clone(),
        cgroup: account.cgroup,
    }
}
