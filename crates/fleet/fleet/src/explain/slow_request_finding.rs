//! Puts into words what the slowest requests' time went into.

use std::collections::BTreeMap;

use luc_fleet_requests::{EndAddress, Requests, SlowRequestCost, ThreadId};
use luc_units::number_formats::FormattedShare;
use luc_waits::{RootKind, WaitRoot, thread_class};
use serde::Serialize;

use super::fleet_requests::FleetRequests;
use super::forest_nodes::ProcessKey;
use super::root_evidence::{RootEvidence, find_most};
use super::root_words::{is_message, words};
use crate::joined_traces::JoinedTraces;

/// Minimum share of others in a disk's bytes at which a finding mentions them.
const MIN_OTHERS_SHARE: f64 = 0.1;

/// Share of the slowest requests' time, and what it went into.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SlowRequestFinding {
    pub text: String,
    /// Kind of the root at the end of the chain of waits: `computes`, `no_processor`, `timer`, `fsync`,
    /// `journal`, `device`, `memory`, `stopped`, `throttled`, `frozen`, `network`, `held_back`, `busy_with_others`,
    /// `input`, `outside` or `unknown`.
    pub kind: &'static str,
    /// Service of the threads: program, script and ports; the address of a server that no trace has.
    pub service: String,
    /// Threads at the end of the chain. Of several processes and hosts, those with the most time.
    pub who: ThreadParty,
    /// Cause of most of the wait time, as the table `wait` names it.
    pub cause: Option<&'static str>,
    /// Threads of the same process that wait for these.
    pub waiter: Option<WaitingThreads>,
    /// Threads that sent the messages, or let stopped threads go on.
    pub holder: Option<ThreadParty>,
    /// Other work of the disk that was waited for, if any.
    pub beside: Option<OthersDiskWork>,
    /// Time in which others waited for processors that these threads had, ns.
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
    /// Number of slowest requests with time of this root.
    pub requests: u64,
    /// Number of slowest requests of whose time it is the largest part.
    pub largest_in: u64,
    /// Time within the usual requests, ns.
    pub usual_time_ns: u64,
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
    /// Host of the process; empty: unknown.
    pub host: String,
    /// Name of the process; the address of a server that no trace has.
    pub process: String,
    pub process_id: Option<u32>,
    /// Address at which the process answers most requests, if any.
    pub service: Option<String>,
    /// Name of the threads without the numbers of a pool; empty: unknown.
    pub name: String,
    /// Id of the thread with the most time; `None`: unknown.
    pub thread: Option<u32>,
    /// Number of threads with this name, of all processes of the service.
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
    let of_process = |(process, counts): (ProcessKey, BTreeMap<EndAddress, u64>)| {
        Some((process, find_most(&counts)?))
    };
    counts.into_iter().filter_map(of_process).collect()
}

/// Makes findings of accounts.
pub(super) struct FindingWriter<'a> {
    found: &'a FleetRequests<'a>,
    services: &'a BTreeMap<ProcessKey, EndAddress>,
}

impl<'a> FindingWriter<'a> {
    pub(super) fn new(
        found: &'a FleetRequests<'a>,
        services: &'a BTreeMap<ProcessKey, EndAddress>,
    ) -> Self {
        Self { found, services }
    }

    /// Turns an account into a finding.
    pub(super) fn describe(
        &self,
        account: &SlowRequestCost<WaitRoot>,
        evidence: &RootEvidence,
    ) -> SlowRequestFinding {
        let root = &account.key;
        let joined = self.found.joined;
        let [service, name] = self.found.graph.names_of(root).map(luc_units::plain);
        let who = match find_most(&evidence.threads) {
            Some(thread) => ThreadParty {
                threads: evidence.threads.len() as u64,
                thread: Some(thread.thread.id),
                ..self.party(thread)
            },
            None => ThreadParty {
                host: String::new(),
                process: service.clone(),
                process_id: None,
                service: None,
                name,
                thread: None,
                threads: 0,
            },
        };
        let waiter = find_most(&evidence.waiters)
            .map(|waiter| WaitingThreads { name: waiter.name, cause: waiter.cause });
        let finding = SlowRequestFinding {
            text: String::new(),
            kind: root.kind.name(),
            service,
            cause: find_most(&evidence.causes),
            waiter,
            holder: find_most(&evidence.others).map(|thread| self.party(thread)),
            beside: find_most(&evidence.threads).and_then(|who| self.beside(who, evidence)),
            who,
            kept_others_ns: evidence.kept_others_ns,
            retransmits: sum(evidence.ends.iter().map(|end| joined.sent_again_to(*end))),
            time_ns: account.slow_ns,
            share: account.share.value,
            share_low: account.share.low,
            share_high: account.share.high,
            requests: account.requests as u64,
            largest_in: account.largest_in as u64,
            usual_time_ns: account.usual_ns,
        };
        let text = write_sentence(&finding, root.kind, joined.hosts.len() > 1);
        SlowRequestFinding { text, ..finding }
    }

    /// Names a thread and its process.
    fn party(&self, thread: ThreadId) -> ThreadParty {
        let joined = self.found.joined;
        let host = joined.host(thread.host);
        let process_id = host.process_of(thread.thread);
        let service =
            process_id.and_then(|id| self.services.get(&ProcessKey { host: thread.host, id }));
        ThreadParty {
            host: host.name.clone(),
            process: host.any_process_name(process_id),
            process_id,
            service: service.map(|&address| joined.address(address)),
            name: thread_class(&host.thread_name(thread.thread)).to_owned(),
            thread: None,
            threads: 0,
        }
    }

    /// Finds the other process with the most bytes of what the disk moved.
    fn beside(&self, who: ThreadId, evidence: &RootEvidence) -> Option<OthersDiskWork> {
        let process = |thread: ThreadId| {
            (thread.host, self.found.joined.host(thread.host).process_of(thread.thread))
        };
        let all = sum(evidence.moved.values().copied());
        let others = || evidence.moved.iter().filter(|(owner, _)| process(**owner) != process(who));
        let (owner, most) = others().max_by_key(|(_, bytes)| **bytes)?;
        let share = |bytes: u64| bytes as f64 / all as f64;
        Some(OthersDiskWork {
            share: share(sum(others().map(|(_, bytes)| *bytes))),
            who: self.party(*owner),
            share_of_who: share(*most),
        })
    }
}

/// Words of a finding, without its figures.
fn write_sentence(found: &SlowRequestFinding, kind: RootKind, several_hosts: bool) -> String {
    let who = &found.who;
    let whose = match label(who, several_hosts) {
        label if label.is_empty() => "somebody".to_owned(),
        label => label,
    };
    let mut text = match who.name.as_str() {
        "" => format!("{whose} {}", words(kind)),
        name => format!("{whose}: {name} {}", words(kind)),
    };
    if let Some(holder) = &found.holder {
        let by = if is_message(kind) { "from" } else { "until woken by" };
        text += &format!(", {by} {}", label(holder, several_hosts));
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
    if several_hosts && !party.host.is_empty() {
        text += &format!(" on {}", party.host);
    }
    text
}

/// Sums without overflow: damaged rows have times of any length.
pub(super) fn sum(times_ns: impl Iterator<Item = u64>) -> u64 {
    times_ns.fold(0, u64::saturating_add)
}
