//! Puts into words what the slowest requests' time went into.

use std::collections::{BTreeMap, BTreeSet};

use luc_fleet_requests::{EndAddress, EndId, Requests, SlowRequestCost};
use luc_units::number_formats::FormattedShare;
use serde::Serialize;

use super::forest_nodes::ProcessKey;
use super::path_charger::{ChargeKey, ChargedTime, HostProcess, NamedThreads};
use crate::joined_traces::JoinedTraces;
use crate::wait_kind::WaitKind;

/// Minimum share of others in a disk's bytes at which a finding mentions them.
const MIN_OTHERS_SHARE: f64 = 0.1;

/// Share of the slowest requests' time, and what it went into.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SlowRequestFinding {
    pub text: String,
    /// Kind of the time: `computes`, `queue`, `fsync`, `journal`, `storage`, `memory`, `lock`, `timer`, `input`,
    /// `frozen`, `stopped`, `throttled`, `network`, `no_processor`, `other` or `contradictory`.
    pub kind: &'static str,
    /// Threads that the time is charged to.
    pub who: ThreadParty,
    /// Cause of most of the wait time, as the table `wait` names it.
    pub cause: Option<&'static str>,
    /// Threads of the same process that wait for the charged ones.
    pub waiter: Option<WaitingThreads>,
    /// Threads that are waited for, or that sent messages.
    pub holder: Option<ThreadParty>,
    /// Other work of the disk that was waited for, if any.
    pub beside: Option<OthersDiskWork>,
    /// Time in which others waited for processors that the charged threads had, ns.
    pub kept_others_ns: u64,
    /// Retransmitted segments on connections whose messages were waited for.
    pub retransmits: u64,
    /// Time within the slowest requests, ns.
    pub time_ns: u64,
    /// Share of the slowest requests' time.
    pub share: f64,
    /// Lower end of the share's 95 % interval.
    pub share_low: f64,
    pub share_high: f64,
    /// Number of slowest requests with time of this kind.
    pub requests: u64,
    /// Time within the usual requests, ns.
    pub usual_time_ns: u64,
    /// Time that all slowest requests together would save at least without it, ns.
    pub saved_ns: u64,
}

/// Selects the first finding, and later ones with at least `min_share`; at most `max_count` in all.
pub(crate) fn worth_showing(
    findings: &[SlowRequestFinding],
    max_count: usize,
    min_share: f64,
) -> impl Iterator<Item = &SlowRequestFinding> {
    let is_shown =
        move |(at, one): &(usize, &SlowRequestFinding)| *at == 0 || one.share >= min_share;
    findings.iter().enumerate().filter(is_shown).map(|(_, one)| one).take(max_count)
}

/// Threads of one name of a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ThreadParty {
    pub host: String,
    pub process: String,
    pub process_id: Option<u32>,
    /// Address at which the process answers most requests, if any.
    pub service: Option<String>,
    /// Name of the threads without the numbers of a pool.
    pub name: String,
    /// Id of the thread with the most time; `None`: unknown.
    pub thread: Option<u32>,
    pub threads: u64,
}

/// Threads that wait for others of their process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WaitingThreads {
    /// Name of the threads without the numbers of a pool.
    pub name: String,
    /// Cause of the wait, as the table `wait` names it.
    pub cause: Option<&'static str>,
}

/// Work of a disk for other processes during a wait.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OthersDiskWork {
    /// Share of others in the bytes that the disk moved during the wait.
    pub share: f64,
    /// Owner of most of these bytes. What the kernel's flusher threads wrote belongs to whoever made it dirty.
    pub who: ThreadParty,
    /// Share of that owner.
    pub share_of_who: f64,
}

/// Evidence about the time that is charged to one account.
#[derive(Debug, Default)]
pub(super) struct ChargeEvidence {
    threads: BTreeMap<u32, u64>,
    causes: BTreeMap<&'static str, u64>,
    waiter_causes: BTreeMap<&'static str, u64>,
    kept_others_ns: u64,
    ends: BTreeSet<EndId>,
    moved: BTreeMap<NamedThreads, u64>,
}

impl ChargeEvidence {
    pub(super) fn add(&mut self, piece: &ChargedTime) {
        let more = |sum_ns: &mut u64| *sum_ns = sum_ns.saturating_add(piece.ns);
        more(self.threads.entry(piece.thread).or_default());
        if let Some(cause) = piece.cause {
            more(self.causes.entry(cause).or_default());
        }
        if let Some(cause) = piece.waiter_cause {
            more(self.waiter_causes.entry(cause).or_default());
        }
        if piece.kept_others {
            more(&mut self.kept_others_ns);
        }
        self.ends.extend(piece.end);
        for (owner, bytes) in &piece.moved {
            let all = self.moved.entry(owner.clone()).or_default();
            *all = all.saturating_add(*bytes);
        }
    }

    /// Finds the other with the most bytes of what the disk moved. Returns the share of all others, that other, and its
    /// share.
    fn beside(&self, process: HostProcess) -> Option<(f64, &NamedThreads, f64)> {
        let all = sum(self.moved.values().copied());
        let others = || self.moved.iter().filter(|(owner, _)| owner.process != process);
        let (who, most) = others().max_by_key(|(_, bytes)| **bytes)?;
        let share = |bytes: u64| bytes as f64 / all as f64;
        Some((share(sum(others().map(|(_, bytes)| *bytes))), who, share(*most)))
    }
}

/// Returns the key with the most time.
fn find_most<T: Copy>(times_ns: &BTreeMap<T, u64>) -> Option<T> {
    times_ns.iter().max_by_key(|(_, ns)| **ns).map(|(what, _)| *what)
}

/// Finds the address at which each process answers most of its requests.
pub(crate) fn find_services(
    joined: &JoinedTraces,
    requests: &Requests,
) -> BTreeMap<ProcessKey, EndAddress> {
    let mut counts: BTreeMap<ProcessKey, BTreeMap<EndAddress, u64>> = BTreeMap::new();
    for incoming in &requests.incoming {
        let exchange = &incoming.exchange;
        if let Some(end) = joined.ends.get(&exchange.end) {
            let addresses = counts.entry(ProcessKey::of(exchange)).or_default();
            *addresses.entry(end.local).or_default() += 1;
        }
    }
    counts
        .into_iter()
        .filter_map(|(process, counts)| Some((process, find_most(&counts)?)))
        .collect()
}

/// Turns an account into a finding.
pub(super) fn describe(
    joined: &JoinedTraces,
    services: &BTreeMap<ProcessKey, EndAddress>,
    account: &SlowRequestCost<ChargeKey>,
    evidence: &ChargeEvidence,
) -> SlowRequestFinding {
    let key = &account.key;
    let party = |process: HostProcess, name: &str, threads: &BTreeMap<u32, u64>| {
        let host = joined.host(process.host);
        let service =
            process.id.and_then(|id| services.get(&ProcessKey { host: process.host, id }));
        ThreadParty {
            host: host.name.clone(),
            process: host.any_process_name(process.id),
            process_id: process.id,
            service: service.map(|&address| joined.address(address)),
            name: name.to_owned(),
            thread: find_most(threads),
            threads: threads.len() as u64,
        }
    };
    let other_party =
        |threads: &NamedThreads| party(threads.process, &threads.name, &BTreeMap::new());
    let found = SlowRequestFinding {
        text: String::new(),
        kind: key.kind.name(),
        who: party(key.process, &key.who, &evidence.threads),
        cause: find_most(&evidence.causes),
        waiter: key.waiter.as_ref().map(|name| WaitingThreads {
            name: name.clone(),
            cause: find_most(&evidence.waiter_causes),
        }),
        holder: key.holder.as_ref().map(other_party),
        beside: evidence.beside(key.process).map(|(share, who, share_of_who)| OthersDiskWork {
            share,
            who: other_party(who),
            share_of_who,
        }),
        kept_others_ns: evidence.kept_others_ns,
        retransmits: sum(evidence.ends.iter().map(|end| joined.sent_again_to(*end))),
        time_ns: account.slow_ns,
        share: account.share.value,
        share_low: account.share.low,
        share_high: account.share.high,
        requests: account.requests as u64,
        usual_time_ns: account.usual_ns,
        saved_ns: account.saved_ns,
    };
    let several_hosts = joined.hosts.len() > 1;
    SlowRequestFinding { text: write_sentence(&found, key.kind, several_hosts), ..found }
}

/// Words of a finding, without its figures.
fn write_sentence(found: &SlowRequestFinding, kind: WaitKind, several_hosts: bool) -> String {
    let who = &found.who;
    let mut text = format!("{}: {} {}", label(who, several_hosts), who.name, kind.words());
    match &found.holder {
        Some(holder) if kind == WaitKind::Network => {
            text += &format!(" from {}", label(holder, several_hosts));
        }
        Some(holder) if (holder.process_id, &holder.host) == (who.process_id, &who.host) => {
            text += &format!(", for {}", holder.name);
        }
        Some(holder) => {
            text += &format!(", for {} of {}", holder.name, label(holder, several_hosts));
        }
        None => {}
    }
    if let Some(cause) = found.cause {
        text += &format!(" ({cause})");
    }
    if let Some(beside) = found.beside.as_ref().filter(|one| one.share >= MIN_OTHERS_SHARE) {
        let OthersDiskWork { share, who, .. } = beside;
        text += &format!(
            "; {} of what the disk moved meanwhile was others', most of it of {} ({})",
            FormattedShare(*share),
            label(who, several_hosts),
            who.name
        );
    }
    if let Some(waiter) = &found.waiter {
        text += &format!(", and {} waits for it", waiter.name);
        text += &waiter.cause.map_or_else(String::new, |cause| format!(" ({cause})"));
    }
    if found.kept_others_ns > 0 {
        text += ", also while others wait for processors that it has";
    }
    if found.retransmits > 0 {
        text += &format!("; {} segments were sent again on these connections", found.retransmits);
    }
    text
}

/// Names a process and the address at which it answers.
fn label(party: &ThreadParty, several_hosts: bool) -> String {
    let mut text = party.process.clone();
    if let Some(id) = party.process_id {
        text += &format!(" {id}");
    }
    if let Some(service) = &party.service {
        text += &format!(" at {service}");
    }
    if several_hosts {
        text += &format!(" on {}", party.host);
    }
    text
}

/// Sums without overflow: damaged rows have times of any length.
pub(super) fn sum(times_ns: impl Iterator<Item = u64>) -> u64 {
    times_ns.fold(0, u64::saturating_add)
}
