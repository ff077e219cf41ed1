//! Finds out why the slowest requests are slow.

use std::collections::BTreeMap;

use luc_fleet_requests::{
    CriticalPath, Effects, EndAddress, EngagedTimes, RequestCosts, RunningTimes, SlowRequestCost,
    accounts, slow_and_usual,
};
use serde::Serialize;

use super::client_roots::ClientRoots;
use super::fleet_requests::FleetRequests;
use super::forest_nodes::ProcessKey;
use super::path_charger::{ChargeKey, ChargedTime, PathCharger};
use super::request_ranking::TopRequest;
use super::slow_request_finding::{
    ChargeEvidence, SlowRequestFinding, describe, find_services, sum,
};
use crate::error::FleetError;
use crate::host_clocks::{HomeClock, HomeClocks};

/// Maximum number of addresses; those whose requests took the most time come first.
const MAX_ADDRESSES: usize = 5;

/// Comparison of the slowest requests to an address with usual ones.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SlowRequestFindings {
    /// Address that the requests were sent to or received at.
    pub address: String,
    /// Number of requests that were answered and are not known to be made for another one.
    pub requests: u64,
    pub slowest: RequestGroup,
    /// Equally many requests around the median.
    pub usual: RequestGroup,
    /// All of the slowest requests' time. What makes them slower than usual ones comes first. If they are less than
    /// 1.25 times as slow, what takes most of their time comes first.
    pub findings: Vec<SlowRequestFinding>,
}

/// Number and total time of a group of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RequestGroup {
    pub requests: u64,
    pub time_ns: u64,
}

impl RequestGroup {
    /// Mean time in ns; 0 for no requests.
    #[must_use]
    pub fn mean_ns(&self) -> u64 {
        self.time_ns.checked_div(self.requests).unwrap_or(0)
    }
}

/// Charges the time of critical paths to threads.
#[derive(Debug)]
pub(crate) struct RequestCharges<'a> {
    pub(crate) found: &'a FleetRequests<'a>,
    effects: Effects<'a>,
    engaged: EngagedTimes,
    running: RunningTimes<'a>,
    roots: ClientRoots,
    /// Address at which each process answers most of its requests.
    services: BTreeMap<ProcessKey, EndAddress>,
}

impl<'a> RequestCharges<'a> {
    pub(crate) fn new(found: &'a FleetRequests<'a>) -> Self {
        let effects = Effects::new(&found.requests, &found.paths);
        Self {
            found,
            engaged: EngagedTimes::new(&found.requests, &effects),
            effects,
            running: RunningTimes::new(&found.paths),
            roots: ClientRoots::new(found),
            services: find_services(found.joined, &found.requests),
        }
    }

    /// Times in which threads had work.
    pub(super) fn engaged(&self) -> &EngagedTimes {
        &self.engaged
    }

    fn sample(
        &self,
        path: &CriticalPath,
        node: u32,
    ) -> (RequestCosts<ChargeKey>, Vec<ChargedTime>) {
        let charger = PathCharger {
            joined: self.found.joined,
            effects: &self.effects,
            running: &self.running,
            roots: &self.roots,
        };
        charger.sample(path, node)
    }

    /// Finds the critical path of a request; `None` without an answer.
    fn path(&self, home: &HomeClock<'_>, top: &TopRequest) -> Option<CriticalPath> {
        let exchange = &top.exchange;
        let answer = exchange.answer?;
        let paths = &self.found.paths;
        Some(paths.critical(&exchange.asked, &answer.last, |event| home.place(event)))
    }

    /// Splits the time of slow requests, and compares it with that of usual ones.
    fn findings(
        &self,
        slow: Vec<(RequestCosts<ChargeKey>, Vec<ChargedTime>)>,
        usual: &[RequestCosts<ChargeKey>],
    ) -> (RequestGroup, Vec<SlowRequestFinding>) {
        let mut evidence: BTreeMap<ChargeKey, ChargeEvidence> = BTreeMap::new();
        for piece in slow.iter().flat_map(|(_, pieces)| pieces) {
            match evidence.get_mut(&piece.key) {
                Some(evidence) => evidence.add(piece),
                None => evidence.entry(piece.key.clone()).or_default().add(piece),
            }
        }
        let slow: Vec<RequestCosts<ChargeKey>> =
            slow.into_iter().map(|(sample, _)| sample).collect();
        let finding = |account: &SlowRequestCost<ChargeKey>| {
            let none = ChargeEvidence::default();
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
    pub(crate) fn of_one(&self, number: usize) -> Result<Vec<SlowRequestFinding>, FleetError> {
        let top = self.found.top(number)?;
        let home = self.found.joined.clocks.at_home(top.exchange.end.host);
        let sample = self.path(&home, top).map(|path| self.sample(&path, top.node));
        Ok(self.findings(sample.into_iter().collect(), &[]).1)
    }

    /// Compares the slowest requests to each address with usual ones.
    pub(crate) fn of_slowest(&self) -> Vec<SlowRequestFindings> {
        let found = self.found;
        let mut homes = HomeClocks::new(&found.joined.clocks);
        let mut by_address: BTreeMap<&str, Vec<&TopRequest>> = BTreeMap::new();
        for top in found.ranking.all() {
            by_address.entry(&top.ranked.address).or_default().push(top);
        }
        let time_ns = |tops: &[&TopRequest]| sum(tops.iter().map(|top| top.ranked.time_ns));
        let mut by_address: Vec<(&str, Vec<&TopRequest>)> = by_address.into_iter().collect();
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
                samples.collect::<Vec<(RequestCosts<ChargeKey>, Vec<ChargedTime>)>>()
            });
            let usual: Vec<RequestCosts<ChargeKey>> =
                usual.into_iter().map(|(sample, _)| sample).collect();
            let (slowest, findings) = self.findings(slow, &usual);
            all.push(SlowRequestFindings {
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

fn sum_group(samples: &[RequestCosts<ChargeKey>]) -> RequestGroup {
    RequestGroup {
        requests: samples.len() as u64,
        time_ns: sum(samples.iter().map(|sample| sample.time_ns)),
    }
}
