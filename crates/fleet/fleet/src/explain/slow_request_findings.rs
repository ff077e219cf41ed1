//! Finds out why the slowest requests are slow, by the roots of their waits.

use std::collections::BTreeMap;

use luc_fleet_requests::{
    Effects, EndAddress, EngagedTimes, RequestCost, RequestCosts, SlowRequestCost, accounts,
    slow_and_usual,
};
use luc_waits::{FoundRoots, RootKind, RootPart, WaitRoot};
use serde::Serialize;

use super::fleet_requests::FleetRequests;
use super::forest_nodes::ProcessKey;
use super::request_ranking::TopRequest;
use super::root_evidence::RootEvidence;
use super::slow_request_finding::{FindingWriter, SlowRequestFinding, find_services, sum};
use crate::error::FleetError;

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

/// Explains requests by the roots of their waits.
#[derive(Debug)]
pub(crate) struct RequestFindings<'a> {
    pub(crate) found: &'a FleetRequests<'a>,
    engaged: EngagedTimes,
    /// Address at which each process answers most of its requests.
    services: BTreeMap<ProcessKey, EndAddress>,
}

impl<'a> RequestFindings<'a> {
    pub(crate) fn new(found: &'a FleetRequests<'a>) -> Self {
        let effects = Effects::new(&found.requests, &found.histories);
        Self {
            found,
            engaged: EngagedTimes::new(&found.requests, &effects),
            services: find_services(found.joined, &found.requests),
        }
    }

    /// Times in which threads had work.
    pub(super) fn engaged(&self) -> &EngagedTimes {
        &self.engaged
    }

    /// Compares the slowest requests to each address with usual ones.
    pub(crate) fn of_slowest(&self) -> Vec<SlowRequestFindings> {
        let mut by_address: BTreeMap<&str, Vec<&TopRequest>> = BTreeMap::new();
        for top in self.found.ranking.all() {
            by_address.entry(&top.ranked.address).or_default().push(top);
        }
        let time_ns = |tops: &[&TopRequest]| sum(tops.iter().map(|top| top.ranked.time_ns));
        let mut by_address: Vec<(&str, Vec<&TopRequest>)> = by_address.into_iter().collect();
        by_address.sort_by_key(|(_, tops)| std::cmp::Reverse(time_ns(tops)));
        by_address.truncate(MAX_ADDRESSES);
        let of_address = |(address, tops): (&str, Vec<&TopRequest>)| {
            let times_ns: Vec<u64> = tops.iter().map(|top| top.ranked.time_ns).collect();
            let [slow, usual] = slow_and_usual(&times_ns).map(|places| {
                let roots =
                    places.iter().filter_map(|&at| self.found.graph.roots_of(tops[at].node));
                roots.collect::<Vec<FoundRoots>>()
            });
            let usual: Vec<RequestCosts<WaitRoot>> = usual.iter().map(costs).collect();
            let (slowest, findings) = self.findings(&slow, &usual);
            SlowRequestFindings {
                address: address.to_owned(),
                requests: tops.len() as u64,
                slowest,
                usual: sum_group(&usual),
                findings,
            }
        };
        by_address.into_iter().map(of_address).collect()
    }

    /// Splits the time of one request; what takes the most comes first.
    ///
    /// # Errors
    /// [`FleetError::NoSuchRequest`].
    pub(crate) fn of_one(&self, number: usize) -> Result<Vec<SlowRequestFinding>, FleetError> {
        let roots = self.found.graph.roots_of(self.found.top(number)?.node);
        Ok(self.findings(&Vec::from_iter(roots), &[]).1)
    }

    /// Splits the time of slow requests, and compares it with that of usual ones.
    fn findings(
        &self,
        slow: &[FoundRoots],
        usual: &[RequestCosts<WaitRoot>],
    ) -> (RequestGroup, Vec<SlowRequestFinding>) {
        let mut evidence: BTreeMap<WaitRoot, RootEvidence> = BTreeMap::new();
        for roots in slow {
            for part in &roots.parts {
                evidence.entry(account_of(part)).or_default().add(self.found, roots, part);
            }
        }
        let slow: Vec<RequestCosts<WaitRoot>> = slow.iter().map(costs).collect();
        let writer = FindingWriter::new(self.found, &self.services);
        let none = RootEvidence::default();
        let finding = |account: &SlowRequestCost<WaitRoot>| {
            writer.describe(account, evidence.get(&account.key).unwrap_or(&none))
        };
        (sum_group(&slow), accounts(&slow, usual).iter().map(finding).collect())
    }
}

/// Sums a request's time by root.
fn costs(roots: &FoundRoots) -> RequestCosts<WaitRoot> {
    let mut sums_ns: BTreeMap<WaitRoot, u64> = BTreeMap::new();
    for part in &roots.parts {
        let sum_ns = sums_ns.entry(account_of(part)).or_default();
        *sum_ns = sum_ns.saturating_add(part.span.length_ns());
    }
    let charges = sums_ns.into_iter().map(|(key, ns)| RequestCost { key, ns });
    RequestCosts { time_ns: roots.total_ns(), charges: charges.collect() }
}

/// Returns the root that a part counts for. A thread that has a processor which others wait for computes there.
fn account_of(part: &RootPart) -> WaitRoot {
    match part.root.kind {
        RootKind::Processor => WaitRoot { kind: RootKind::Computes, ..part.root },
        _ => part.root,
    }
}

fn sum_group(samples: &[RequestCosts<WaitRoot>]) -> RequestGroup {
    RequestGroup {
        requests: samples.len() as u64,
        time_ns: sum(samples.iter().map(|sample| sample.time_ns)),
    }
}
