//! Why the slowest requests are slow.

use std::collections::BTreeMap;

use luc_fleet_clocks::HostId;
use luc_fleet_requests::{
    Account, Address, Effects, Engaged, Path, Running, Sample, accounts, slow_and_usual,
};
use serde::Serialize;

use super::charge::{Charger, Key, Piece};
use super::finding::{Evidence, Finding, finding, services, sum};
use super::found::Found;
use super::ranking::Top;
use super::roots::Roots;
use crate::clocks::Home;
use crate::error::FleetError;

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
    pub requests: u64,
    pub time_ns: u64,
}

impl Group {
    /// The mean time, ns; 0 of none.
    #[must_use]
    pub fn mean_ns(&self) -> u64 {
        self.time_ns.checked_div(self.requests).unwrap_or(0)
    }
}

/// To whom the time of paths is charged.
#[derive(Debug)]
pub(crate) struct Charges<'a> {
    pub(crate) found: &'a Found<'a>,
    effects: Effects<'a>,
    engaged: Engaged,
    running: Running<'a>,
    roots: Roots,
    /// Where each process answers most requests.
    services: BTreeMap<(HostId, u32), Address>,
}

impl<'a> Charges<'a> {
    pub(crate) fn new(found: &'a Found<'a>) -> Self {
        let effects = Effects::new(&found.requests, &found.paths);
        Self {
            found,
            engaged: Engaged::new(&found.requests, &effects),
            effects,
            running: Running::new(&found.paths),
            roots: Roots::new(found),
            services: services(found.joined, &found.requests),
        }
    }

    /// When threads had something to do.
    pub(super) fn engaged(&self) -> &Engaged {
        &self.engaged
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

    /// What the time of the request of a number went into, what takes the most first.
    ///
    /// # Errors
    /// [`FleetError::NoSuchRequest`].
    pub(crate) fn of_one(&self, number: usize) -> Result<Vec<Finding>, FleetError> {
        let top = self.found.top(number)?;
        let home = self.found.joined.clocks.at_home(top.exchange.end.host);
        let sample = self.path(&home, top).map(|path| self.sample(&path, top.node));
        Ok(self.findings(sample.into_iter().collect(), &[]).1)
    }

    /// Why the slowest requests to each address are slow.
    pub(crate) fn of_slowest(&self) -> Vec<Findings> {
        let found = self.found;
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
                    let home =
                        homes.entry(host).or_insert_with(|| found.joined.clocks.at_home(host));
                    let path = self.path(home, tops[place])?;
                    Some(self.sample(&path, tops[place].node))
                });
                samples.collect::<Vec<(Sample<Key>, Vec<Piece>)>>()
            });
            let usual: Vec<Sample<Key>> = usual.into_iter().map(|(sample, _)| sample).collect();
            let (slowest, findings) = self.findings(slow, &usual);
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
}

fn group(samples: &[Sample<Key>]) -> Group {
    Group {
        requests: samples.len() as u64,
        time_ns: sum(samples.iter().map(|sample| sample.time_ns)),
    }
}
