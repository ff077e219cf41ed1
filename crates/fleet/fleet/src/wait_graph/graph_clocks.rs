//! Clocks of hosts, as the graph asks for them.

use std::cell::OnceCell;

use luc_fleet_clocks::HostId;
use luc_waits::{TraceClocks, TraceIndex};

use crate::host_clocks::{HomeClock, HostClocks};

/// All clocks placed on that of each host, once somebody asks.
#[derive(Debug)]
pub(super) struct GraphClocks<'c> {
    clocks: &'c HostClocks,
    homes: Vec<OnceCell<HomeClock<'c>>>,
}

impl<'c> GraphClocks<'c> {
    pub(super) fn new(clocks: &'c HostClocks, hosts: usize) -> Self {
        Self { clocks, homes: (0..hosts).map(|_| OnceCell::new()).collect() }
    }
}

impl TraceClocks for GraphClocks<'_> {
    fn ahead_ns(&self, from: TraceIndex, to: TraceIndex, at_ns: u64) -> Option<i64> {
        let home = self.homes.get(to.0 as usize)?;
        let home = home.get_or_init(|| self.clocks.at_home(HostId(to.0)));
        let placed_ns = home.place_ns(HostId(from.0), at_ns)?.at_ns?;
        placed_ns.checked_sub(i64::try_from(at_ns).ok()?)
    }
}
