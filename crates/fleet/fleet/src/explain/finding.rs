//! What a share of the slowest requests' time went into, in words.

use std::collections::{BTreeMap, BTreeSet};

use luc_fleet_clocks::HostId;
use luc_fleet_requests::{Account, Address, EndId, Requests};
use luc_units::figures::Share;
use serde::Serialize;

use super::charge::{Key, Piece, Process};
use crate::joined::Joined;
use crate::wait_kind::WaitKind;

/// The share of others in what a disk moved, from which on it is said.
const LEAST_BESIDE: f64 = 0.1;

/// What a share of the slowest requests' time went into.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    pub text: String,
    /// What it is: `computes`, `queue`, `fsync`, `journal`, `storage`, `memory`, `lock`, `timer`, `input`, `frozen`,
    /// `stopped`, `throttled`, `network`, `no_processor`, `other` or `contradictory`.
    pub kind: &'static str,
    /// Whose time it is.
    pub who: Party,
    /// Why that waits, as the table `wait` names it: what most of the time is.
    pub cause: Option<&'static str>,
    /// Threads of the same process that wait for it.
    pub waiter: Option<Waiter>,
    /// For whom it waits, or who sent it messages.
    pub holder: Option<Party>,
    /// For whom else the disk worked that it waited for, if for anybody.
    pub beside: Option<Beside>,
    /// How much of the time is that others waited for processors that it had, ns.
    pub kept_others_ns: u64,
    /// Segments that were sent again, on connections whose messages it waited for.
    pub retransmits: u64,
    /// Of the slowest requests' time, ns.
    pub time_ns: u64,
    /// The share of it, with its 95 % interval.
    pub share: f64,
    /// The interval's lower end.
    pub share_low: f64,
    pub share_high: f64,
    /// In how many of the slowest requests it is.
    pub requests: u64,
    /// Of the usual requests' time, ns.
    pub usual_time_ns: u64,
    /// By how much all slowest requests together would be shorter at least without it, ns.
    pub saved_ns: u64,
}

/// The first finding, and those after it that are at least this share; at most so many.
pub(crate) fn worth_showing(
    findings: &[Finding],
    most: usize,
    least_share: f64,
) -> impl Iterator<Item = &Finding> {
    let is_shown = move |(at, one): &(usize, &Finding)| *at == 0 || one.share >= least_share;
    let shown = findings.iter().enumerate().filter(is_shown);
    shown.map(|(_, one)| one).take(most)
}

/// Threads of one name of a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Party {
    pub host: String,
    pub process: String,
    /// The process' id; `None`: not known.
    pub process_id: Option<u32>,
    /// Where the process answers most requests, if it does.
    pub service: Option<String>,
    /// The threads' name, without numbers.
    pub name: String,
    /// The one that most of the time is of, by its id; `None`: not known.
    pub thread: Option<u32>,
    /// How many they are.
    pub threads: u64,
}

/// Threads that wait for others of their process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Waiter {
    /// Their name, without numbers.
    pub name: String,
    /// Why they wait, as the table `wait` names it.
    pub cause: Option<&'static str>,
}

/// For whom else a disk worked.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Beside {
    /// Of the bytes that the disk moved while it was waited for, the share of others.
    pub share: f64,
    /// Whose most of these were. What the kernel's flusher threads wrote is that of who made it dirty.
    pub who: Party,
    /// The share of that one.
    pub share_of_who: f64,
}

/// More about what is charged to a key.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    threads: BTreeMap<u32, u64>,
    causes: BTreeMap<&'static str, u64>,
    waiter_causes: BTreeMap<&'static str, u64>,
    kept_others_ns: u64,
    ends: BTreeSet<EndId>,
    moved: BTreeMap<(Process, String), u64>,
}

impl Evidence {
    pub(super) fn add(&mut self, piece: &Piece) {
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
        for (process, name, bytes) in &piece.moved {
            let all = self.moved.entry((*process, name.clone())).or_default();
            *all = all.saturating_add(*bytes);
        }
    }

    /// The share of others in what the disk moved, which of them had the most, and its share.
    fn beside(&self, process: Process) -> Option<(f64, &(Process, String), f64)> {
        let all = sum(self.moved.values().copied());
        let others = || self.moved.iter().filter(|((other, _), _)| *other != process);
        let (who, most) = others().max_by_key(|(_, bytes)| **bytes)?;
        let share = |bytes: u64| bytes as f64 / all as f64;
        Some((share(sum(others().map(|(_, bytes)| *bytes))), who, share(*most)))
    }
}

/// What most of the time is of.
fn most<T: Copy>(times_ns: &BTreeMap<T, u64>) -> Option<T> {
    let most = times_ns.iter().max_by_key(|(_, ns)| **ns);
    most.map(|(what, _)| *what)
}

/// Where each process answers most requests.
pub(crate) fn services(joined: &Joined, requests: &Requests) -> BTreeMap<(HostId, u32), Address> {
    let mut counts: BTreeMap<(HostId, u32), BTreeMap<Address, u64>> = BTreeMap::new();
    for incoming in &requests.incoming {
        let exchange = &incoming.exchange;
        if let Some(end) = joined.ends.get(&exchange.end) {
            let process = (end.host, exchange.asked.process);
            let of_process = counts.entry(process).or_default();
            *of_process.entry(end.local).or_default() += 1;
        }
    }
    let busiest =
        counts.into_iter().filter_map(|(process, counts)| Some((process, most(&counts)?)));
    busiest.collect()
}

/// What is said of an account.
pub(super) fn finding(
    joined: &Joined,
    services: &BTreeMap<(HostId, u32), Address>,
    account: &Account<Key>,
    evidence: &Evidence,
) -> Finding {
    let key = &account.key;
    let party = |process: Process, name: &str, threads: &BTreeMap<u32, u64>| {
        let host = joined.host(process.host);
        let service = process.id.and_then(|id| services.get(&(process.host, id)));
        Party {
            host: host.name.clone(),
            process: match process.id {
                Some(id) => host.process_name(id, u64::MAX),
                None => "a process that is not known".to_owned(),
            },
            process_id: process.id,
            service: service.map(|&address| joined.address(address)),
            name: name.to_owned(),
            thread: most(threads),
            threads: threads.len() as u64,
        }
    };
    let found = Finding {
        text: String::new(),
        kind: key.kind.name(),
        who: party(key.process, &key.who, &evidence.threads),
        cause: most(&evidence.causes),
        waiter: key
            .waiter
            .as_ref()
            .map(|name| Waiter { name: name.clone(), cause: most(&evidence.waiter_causes) }),
        holder: key.holder.as_ref().map(|(process, name)| party(*process, name, &BTreeMap::new())),
        beside: evidence.beside(key.process).map(|(share, most, share_of_who)| {
            let ((process, name), who) = (most, &BTreeMap::new());
            Beside { share, who: party(*process, name, who), share_of_who }
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
    Finding { text: sentence(&found, key.kind, several_hosts), ..found }
}

/// What a finding says, without its figures.
fn sentence(found: &Finding, kind: WaitKind, several_hosts: bool) -> String {
    let who = &found.who;
    let mut text = format!("{}: {} {}", label(who, several_hosts), who.name, kind.words());
    if let (Some(holder), false) = (&found.holder, kind == WaitKind::Network) {
        let of = if holder.process_id == who.process_id && holder.host == who.host {
            String::new()
        } else {
            format!(" of {}", label(holder, several_hosts))
        };
        text += &format!(", for {}{of}", holder.name);
    }
    if let (Some(holder), WaitKind::Network) = (&found.holder, kind) {
        text += &format!(" from {}", label(holder, several_hosts));
    }
    if let Some(cause) = found.cause {
        text += &format!(" ({cause})");
    }
    if let Some(beside) = found.beside.as_ref().filter(|one| one.share >= LEAST_BESIDE) {
        let Beside { share, who, .. } = beside;
        text += &format!(
            "; {} of what the disk moved meanwhile was others', most of it of {} ({})",
            Share(*share),
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

/// A process, and where it answers.
fn label(party: &Party, several_hosts: bool) -> String {
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

/// Damaged rows have times of any length.
pub(super) fn sum(times_ns: impl Iterator<Item = u64>) -> u64 {
    times_ns.fold(0, u64::saturating_add)
}
