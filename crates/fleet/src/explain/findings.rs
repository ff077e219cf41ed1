//! Why the slowest requests are slow.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use luc_fleet_clocks::HostId;
use luc_fleet_core::{
    Account, Effects, EndId, Path, Requests, Running, Sample, accounts, slow_and_usual,
};
use serde::Serialize;

use super::charge::{Charger, Key, Piece, Process};
use super::found::Found;
use super::kind::Kind;
use super::ranking::Top;
use super::roots::Roots;
use crate::clocks::Home;
use crate::joined::Joined;

/// Addresses whose requests are looked at: those that took the most time in all.
const ADDRESSES: usize = 5;

/// Why the slowest requests to one address are slow.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Findings {
    /// Where the requests were sent to or received.
    pub address: String,
    /// How many are answered and not known to be made for another one.
    pub requests: u64,
    /// The slowest of them.
    pub slowest: Group,
    /// As many around the median.
    pub usual: Group,
    /// What the slowest requests' time went into, all of it. What makes them slower than usual ones comes first; where
    /// they are less than 1.25 times as slow, what takes most of their time.
    pub findings: Vec<Finding>,
}

/// Requests that are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Group {
    /// How many.
    pub requests: u64,
    /// Their time, ns.
    pub time_ns: u64,
}

impl Group {
    /// The mean time, ns; 0 of none.
    #[must_use]
    pub fn mean_ns(&self) -> u64 {
        self.time_ns.checked_div(self.requests).unwrap_or(0)
    }
}

/// What a share of the slowest requests' time went into.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// In one sentence.
    pub text: String,
    /// What it is: `computes`, `queue`, `fsync`, `journal`, `storage`, `memory`, `lock`, `timer`, `input`, `frozen`,
    /// `network`, `no_processor`, `other` or `contradictory`.
    pub kind: &'static str,
    /// Whose time it is.
    pub who: Party,
    /// Why that waits, as the table `wait` names it: what most of the time is.
    pub cause: Option<&'static str>,
    /// Threads of the same process that wait for it.
    pub waiter: Option<Waiter>,
    /// For whom it waits, or who sent it messages.
    pub holder: Option<Party>,
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
    /// Its upper end.
    pub share_high: f64,
    /// In how many of the slowest requests it is.
    pub requests: u64,
    /// Of the usual requests' time, ns.
    pub usual_time_ns: u64,
    /// By how much all slowest requests together would be shorter at least without it, ns.
    pub saved_ns: u64,
}

/// Threads of one name of a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Party {
    /// The host.
    pub host: String,
    /// The process' name.
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

/// More about what is charged to a key.
#[derive(Debug, Default)]
struct Evidence {
    threads: BTreeMap<u32, u64>,
    causes: BTreeMap<&'static str, u64>,
    waiter_causes: BTreeMap<&'static str, u64>,
    kept_others_ns: u64,
    ends: BTreeSet<EndId>,
}

impl Evidence {
    fn add(&mut self, piece: &Piece) {
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
    }
}

/// What most of the time is of.
fn most<T: Copy>(times_ns: &BTreeMap<T, u64>) -> Option<T> {
    let most = times_ns.iter().max_by_key(|(_, ns)| **ns);
    most.map(|(what, _)| *what)
}

/// To whom the time of paths is charged.
#[derive(Debug)]
pub(super) struct Charges<'a> {
    found: &'a Found<'a>,
    effects: Effects,
    running: Running<'a>,
    roots: Roots,
    /// Where each process answers most requests.
    services: BTreeMap<(HostId, u32), SocketAddr>,
}

impl<'a> Charges<'a> {
    pub(super) fn new(found: &'a Found<'a>) -> Self {
        Self {
            found,
            effects: Effects::new(&found.requests, &found.paths),
            running: Running::new(&found.paths),
            roots: Roots::new(found),
            services: services(found.joined, &found.requests),
        }
    }

    fn sample(&self, path: &Path, node: u32) -> (Sample<Key>, Vec<Piece>) {
        let charger = Charger {
            joined: self.found.joined,
            effects: &self.effects,
            running: &self.running,
            roots: &self.roots,
        };
        charger.sample(path, node)
    }

    /// The path of a request, if it has an answer.
    fn path(&self, home: &Home<'_>, top: &Top) -> Option<Path> {
        let exchange = &top.exchange;
        let answer = exchange.answer?;
        let paths = &self.found.paths;
        Some(paths.critical(&exchange.asked, &answer.last, |event| home.place(event)))
    }

    /// What the slow ones' time went into, beside that of the usual ones.
    fn findings(
        &self,
        slow: Vec<(Sample<Key>, Vec<Piece>)>,
        usual: &[Sample<Key>],
    ) -> (Group, Vec<Finding>) {
        let mut evidence: BTreeMap<Key, Evidence> = BTreeMap::new();
        for piece in slow.iter().flat_map(|(_, pieces)| pieces) {
            if let Some(evidence) = evidence.get_mut(&piece.key) {
                evidence.add(piece);
            } else {
                let mut first = Evidence::default();
                first.add(piece);
                evidence.insert(piece.key.clone(), first);
            }
        }
        let slow: Vec<Sample<Key>> = slow.into_iter().map(|(sample, _)| sample).collect();
        let finding = |account: &Account<Key>| {
            let evidence = evidence.get(&account.key);
            finding(
                self.found.joined,
                &self.services,
                account,
                evidence.unwrap_or(&Evidence::default()),
            )
        };
        let findings = accounts(&slow, usual).iter().map(finding).collect();
        (group(&slow), findings)
    }
}

/// What the time of one request went into, what takes the most first.
pub(super) fn of_one(found: &Found<'_>, top: &Top) -> Vec<Finding> {
    let charges = Charges::new(found);
    let home = found.joined.clocks.at_home(top.exchange.end.host);
    let sample = charges
        .path(&home, top)
        .map(|path| charges.sample(&path, top.node));
    charges.findings(sample.into_iter().collect(), &[]).1
}

pub(super) fn report(found: &Found<'_>) -> Vec<Findings> {
    let joined = found.joined;
    let charges = Charges::new(found);
    let mut homes: BTreeMap<HostId, Home<'_>> = BTreeMap::new();
    let mut by_address: BTreeMap<&str, Vec<&Top>> = BTreeMap::new();
    for top in found.ranking.all() {
        by_address.entry(&top.ranked.address).or_default().push(top);
    }
    let time_ns = |tops: &[&Top]| sum(tops.iter().map(|top| top.ranked.time_ns));
    let mut by_address: Vec<(&str, Vec<&Top>)> = by_address.into_iter().collect();
    by_address.sort_by_key(|(_, tops)| std::cmp::Reverse(time_ns(tops)));
    by_address.truncate(ADDRESSES);
    let mut all = Vec::new();
    for (address, tops) in by_address {
        let times_ns: Vec<u64> = tops.iter().map(|top| top.ranked.time_ns).collect();
        let [slow, usual] = slow_and_usual(&times_ns).map(|places| {
            let samples = places.into_iter().filter_map(|place| {
                let host = tops[place].exchange.end.host;
                let home = homes
                    .entry(host)
                    .or_insert_with(|| joined.clocks.at_home(host));
                let path = charges.path(home, tops[place])?;
                Some(charges.sample(&path, tops[place].node))
            });
            samples.collect::<Vec<(Sample<Key>, Vec<Piece>)>>()
        });
        let usual: Vec<Sample<Key>> = usual.into_iter().map(|(sample, _)| sample).collect();
        let (slowest, findings) = charges.findings(slow, &usual);
        all.push(Findings {
            address: address.to_owned(),
            requests: tops.len() as u64,
            slowest,
            usual: group(&usual),
            findings,
        });
    }
    all
}

fn group(samples: &[Sample<Key>]) -> Group {
    Group {
        requests: samples.len() as u64,
        time_ns: sum(samples.iter().map(|sample| sample.time_ns)),
    }
}

/// Damaged rows have times of any length.
fn sum(times_ns: impl Iterator<Item = u64>) -> u64 {
    times_ns.fold(0, u64::saturating_add)
}

/// Where each process answers most requests.
fn services(joined: &Joined, requests: &Requests) -> BTreeMap<(HostId, u32), SocketAddr> {
    let mut counts: BTreeMap<(HostId, u32), BTreeMap<SocketAddr, u64>> = BTreeMap::new();
    for incoming in &requests.incoming {
        let exchange = &incoming.exchange;
        if let Some(end) = joined.ends.get(&exchange.end) {
            let process = (end.host, exchange.asked.process);
            let of_process = counts.entry(process).or_default();
            *of_process.entry(end.local).or_default() += 1;
        }
    }
    let busiest = counts
        .into_iter()
        .filter_map(|(process, counts)| Some((process, most(&counts)?)));
    busiest.collect()
}

fn finding(
    joined: &Joined,
    services: &BTreeMap<(HostId, u32), SocketAddr>,
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
            service: service.map(SocketAddr::to_string),
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
        waiter: key.waiter.as_ref().map(|name| Waiter {
            name: name.clone(),
            cause: most(&evidence.waiter_causes),
        }),
        holder: key
            .holder
            .as_ref()
            .map(|(process, name)| party(*process, name, &BTreeMap::new())),
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
    Finding {
        text: sentence(&found, key.kind, several_hosts),
        ..found
    }
}

/// What a finding says, without its figures.
fn sentence(found: &Finding, kind: Kind, several_hosts: bool) -> String {
    let who = &found.who;
    let mut text = format!(
        "{}: {} {}",
        label(who, several_hosts),
        who.name,
        kind.words()
    );
    if let (Some(holder), false) = (&found.holder, kind == Kind::Network) {
        let of = if holder.process_id == who.process_id && holder.host == who.host {
            String::new()
        } else {
            format!(" of {}", label(holder, several_hosts))
        };
        text += &format!(", for {}{of}", holder.name);
    }
    if let (Some(holder), Kind::Network) = (&found.holder, kind) {
        text += &format!(" from {}", label(holder, several_hosts));
    }
    if let Some(cause) = found.cause {
        text += &format!(" ({cause})");
    }
    if let Some(waiter) = &found.waiter {
        text += &format!(", and {} waits for it", waiter.name);
        text += &waiter
            .cause
            .map_or_else(String::new, |cause| format!(" ({cause})"));
    }
    if found.kept_others_ns > 0 {
        text += ", also while others wait for processors that it has";
    }
    if found.retransmits > 0 {
        text += &format!(
            "; {} segments were sent again on these connections",
            found.retransmits
        );
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
