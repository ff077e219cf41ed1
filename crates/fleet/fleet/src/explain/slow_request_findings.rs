//! Finds out why the slowest requests are slow.

use std::collections::BTreeMap;

use luc_fleet_requests::{
    Account, Address, Effects, Engaged, Path, Running, Sample, accounts, slow_and_usual,
};
use serde::Serialize;

use super::charge::{ChargeKey, Charger, Piece};
use super::finding::{Evidence, Finding, describe, find_services, sum};
use super::found::Found;
use super::nodes::ProcessKey;
use super::ranking::Top;
use super::roots::Roots;
use crate::clocks::{Home, Homes};
use crate::error::FleetError;

/// Maximum number of addresses; those whose requests took the most time come first.
const MAX_ADDRESSES: usize = 5;

/// Comparison of the slowest requests to an address with usual ones.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Findings {
    /// Address that the requests were sent to or received at.
    pub address: String,
    /// Number of requests that were answered and are not known to be made for another one.
    pub requests: u64,
    pub slowest: Group,
    /// Equally many requests around the median.
    pub usual: Group,
    /// All of the slowest requests' time. What makes them slower than usual ones comes first. If they are less than
    /// 1.25 times as slow, what takes most of their time comes first.
    pub findings: Vec<Finding>,
}

/// Number and total time of a group of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Group {
    pub requests: u64,
    pub time_ns: u64,
}

impl Group {
    /// Mean time in ns; 0 for no requests.
    #[must_use]
    pub fn mean_ns(&self) -> u64 {
        self.time_ns.checked_div(self.requests).unwrap_or(0)
    }
}

/// Charges the time of critical paths to threads.
#[derive(Debug)]
pub(crate) struct Charges<'a> {
    pub(crate) found: &'a Found<'a>,
    effects: Effects<'a>,
    engaged: Engaged,
    running: Running<'a>,
    roots: Roots,
    /// Address at which each process answers most of its requests.
    services: BTreeMap<ProcessKey, Address>,
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
            services: find_services(found.joined, &found.requests),
        }
    }

    /// Times in which threads had work.
    pub(super) fn engaged(&self) -> &Engaged {
        &self.engaged
    }

    fn sample(&self, path: &Path, node: u32) -> (Sample<ChargeKey>, Vec<Piece>) {
        let charger = Charger {
            joined: self.found.joined,
            effects: &self.effects,
            running: &self.running,
            roots: &self.roots,
        };
        charger.sample(path, node)
    }

    /// Finds the critical path of a request; `None` without an answer.
    fn path(&self, home: &Home<'_>, top: &Top) -> Option<Path> {
        let exchange = &top.exchange;
        let answer = exchange.answer?;
        let paths = &self.found.paths;
        Some(paths.critical(&exchange.asked, &answer.last, |event| home.place(event)))
    }

    /// Splits the time of slow requests, and compares it with that of usual ones.
    fn findings(
        &self,
        slow: Vec<(Sample<ChargeKey>, Vec<Piece>)>,
        usual: &[Sample<ChargeKey>],
    ) -> (Group, Vec<Finding>) {
        let mut evidence: BTreeMap<ChargeKey, Evidence> = BTreeMap::new();
        for piece in slow.iter().flat_map(|(_, pieces)| pieces) {
            match evidence.get_mut(&piece.key) {
                Some(evidence) => evidence.add(piece),
                None => evidence.entry(piece.key.clone()).or_default().add(piece),
            }
        }
        let slow: Vec<Sample<ChargeKey>> = slow.into_iter().map(|(sample, _)| sample).collect();
        let finding = |account: &Account<ChargeKey>| {
            let none = Evidence::default();
            let evidence = evidence.get(&account.key).unwrap_or(&none);
            describe(self.found.joined, &self.services, account, evidence)
        };
        let findings = accounts(&slow, usual).iter().map(finding).collect();
        (sum_group(&slow), findings)
    }

    /// Splits the time of one request; what takes the most comes first.
    ///
    /// # Errors
    /// [`FleetError::NoSuchRequest`].
    pub(crate) fn of_one(&self, number: usize) -> Result<Vec<Finding>, FleetError> {
        let top = self.found.top(number)?;
        let home = self.found.joined.clocks.at_home(top.exchange.end.host);
        let sample = self.path(&home, top).map(|path| self.sample(&path, top.node));
        Ok(self.findings(sample.into_iter().collect(), &[]).1)
    }

    /// Compares the slowest requests to each address with usual ones.
    pub(crate) fn of_slowest(&self) -> Vec<Findings> {
        let found = self.found;
        let mut homes = Homes::new(&found.joined.clocks);
        let mut by_address: BTreeMap<&str, Vec<&Top>> = BTreeMap::new();
        for top in found.ranking.all() {
            by_address.entry(&top.ranked.address).or_default().push(top);
        }
        let time_ns = |tops: &[&Top]| sum(tops.iter().map(|top| top.ranked.time_ns));
        let mut by_address: Vec<(&str, Vec<&Top>)> = by_address.into_iter().collect();
        by_address.sort_by_key(|(_, tops)| std::cmp::Reverse(time_ns(tops)));
        by_address.truncate(MAX_ADDRESSES);
        let mut all = Vec::new();
        for (address, tops) in by_address {
            let times_ns: Vec<u64> = tops.iter().map(|top| top.ranked.time_ns).collect();
            let [slow, usual] = slow_and_usual(&times_ns).map(|places| {
                let samples = places.into_iter().filter_map(|place| {
                    let top = tops[place];
                    let path = self.path(homes.at(top.exchange.end.host), top)?;
                    Some(self.sample(&path, top.node))
                });
                samples.collect::<Vec<(Sample<ChargeKey>, Vec<Piece>)>>()
            });
            let usual: Vec<Sample<ChargeKey>> =
                usual.into_iter().map(|(sample, _)| sample).collect();
            let (slowest, findings) = self.findings(slow, &usual);
            all.push(Findings {
                address: address.to_owned(),
                requests: tops.len() as u64,
                slowest,
                usual: sum_group(&usual),
                findings,
            });
        }
        all
    }
}

fn sum_group(samples: &[Sample<ChargeKey>]) -> Group {
    Group {
        requests: samples.len() as u64,
        time_ns: sum(samples.iter().map(|sample| sample.time_ns)),
    }
}
