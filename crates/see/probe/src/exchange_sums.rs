//! Times of requests on connections: sums that the programs keep since recording began, read at intervals.

use std::collections::HashMap;

use libbpf_rs::{MapCore as _, MapFlags};
use luc_events::event_kinds::SocketRole;
use luc_events::tables::ExchangeSum;
use luc_events::{Cgroup, Inode};

use crate::ProbeError;
use crate::decode;
use crate::load_programs::{EXCHANGE_SLOTS, EXCHANGE_SUMS, RecorderPrograms};
use crate::ring_records::{self, EXCHANGES, ExchangeKey, ExchangeStep, LATENCY_LOG2, Plain};

/// Length of an interval.
const INTERVAL_NS: u64 = 10_000_000_000;

/// Sums as they were read the last time.
#[derive(Debug)]
pub(crate) struct ExchangeSums {
    at_ns: u64,
    /// Sums by the number of the slot.
    before: HashMap<u32, ring_records::ExchangeSum>,
}

impl ExchangeSums {
    pub(crate) fn since(start_ns: u64) -> Self {
        Self { at_ns: start_ns, before: HashMap::new() }
    }

    pub(crate) fn is_due(&self, now_ns: u64) -> bool {
        now_ns >= self.at_ns.saturating_add(INTERVAL_NS)
    }

    /// Returns the rows of the interval that ends now, by service and peer.
    ///
    /// # Errors
    /// When the kernel refuses to have its maps read.
    pub(crate) fn rows(
        &mut self,
        programs: &RecorderPrograms,
        now_ns: u64,
    ) -> Result<Vec<ExchangeSum>, ProbeError> {
        let refused = || ProbeError::refused("reading its maps");
        let sums = programs.map(EXCHANGE_SUMS)?;
        let interval_ns = now_ns.saturating_sub(self.at_ns);
        let mut rows = Vec::new();
        let slots = programs.map(EXCHANGE_SLOTS)?;
        let keys =
            slots.lookup_batch(EXCHANGES as u32, MapFlags::ANY, MapFlags::ANY).map_err(refused())?;
        for (key, slot) in keys {
            let (Some(key), Some(slot)) = (ExchangeKey::read(&key), u32_of(&slot)) else {
                continue;
            };
            let index = slot.saturating_sub(1).to_ne_bytes();
            let now = sums.lookup(&index, MapFlags::ANY).map_err(refused())?;
            let Some(now) = now.as_deref().and_then(ring_records::ExchangeSum::read) else {
                continue;
            };
            let before = self.before.insert(slot, now);
            rows.extend(rows_of(&key, before.as_ref(), &now, now_ns, interval_ns));
        }
        self.at_ns = now_ns;
        Ok(rows)
    }
}

fn u32_of(bytes: &[u8]) -> Option<u32> {
    bytes.try_into().ok().map(u32::from_ne_bytes)
}

/// Makes the rows of a pair of service and peer: its sums since `before`.
fn rows_of(
    key: &ExchangeKey,
    before: Option<&ring_records::ExchangeSum>,
    now: &ring_records::ExchangeSum,
    at_ns: u64,
    interval_ns: u64,
) -> Vec<ExchangeSum> {
    const NONE: ExchangeStep = ExchangeStep { count: 0, total_ns: 0 };
    let steps = now.steps.iter().enumerate().map(|(step, now)| {
        let before = before.map_or(NONE, |sum| sum.steps[step]);
        // While they are read, the programs add to the time first: each exchange that is counted has its time.
        let count = now.count.wrapping_sub(before.count);
        (step, count, now.total_ns.wrapping_sub(before.total_ns))
    });
    steps
        .filter(|&(_, count, _)| count > 0)
        .map(|(step, count, total_ns)| ExchangeSum {
            at_ns,
            interval_ns,
            cgroup: Cgroup(key.cgroup),
            program: decode::name(&key.comm),
            side: SocketRole::from_code(key.side).unwrap_or_default(),
            namespace: Inode(u64::from(key.namespace)),
            port: u32::from(key.port),
            peer: peer(key.peer),
            at_least_ns: least_ns(step),
            count,
            total_ns,
        })
        .collect()
}

/// Returns the address of a peer; empty for all peers without a slot.
fn peer(bytes: [u8; 16]) -> String {
    if bytes == [0; 16] {
        return String::new();
    }
    decode::address(bytes).1
}

/// Returns the shortest time of a step: the reverse of `latency_step` in `bpf/request_times.h`.
fn least_ns(step: usize) -> u64 {
    let step = step as u64;
    let units = match step / 4 {
        0 => step,
        powers => (4 + step % 4) << (powers - 1),
    };
    units << LATENCY_LOG2
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring_records::{COMM, LATENCIES};

    fn key(peer: [u8; 16]) -> ExchangeKey {
        let mut comm = [0; COMM];
        comm[..5].copy_from_slice(b"redis");
        ExchangeKey {
            cgroup: 7,
            namespace: 4,
            port: 6379,
            side: SocketRole::Server.code(),
            reserved: 0,
            comm,
            peer,
        }
    }

    fn sum(steps: &[(usize, u64, u64)]) -> ring_records::ExchangeSum {
        let none = ExchangeStep { count: 0, total_ns: 0 };
        let mut sum = ring_records::ExchangeSum { steps: [none; LATENCIES] };
        for &(step, count, total_ns) in steps {
            sum.steps[step] = ExchangeStep { count, total_ns };
        }
        sum
    }

    #[test]
    fn steps_are_a_quarter_of_a_power_of_two() {
        let all: Vec<u64> = (0..LATENCIES).map(least_ns).collect();
        assert_eq!(all[..5], [0, 1024, 2048, 3072, 4096]);
        assert_eq!(all[7..10], [7168, 8192, 10240]);
        assert_eq!(all[LATENCIES - 1] / 1_000_000_000, 120);
        assert!(all[4..].windows(2).all(|pair| pair[0] * 5 >= pair[1] * 4));
    }

    #[test]
    fn an_interval_has_what_is_new() {
        let peer = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 2];
        let (before, now) = (
            sum(&[(3, 5, 16_000), (9, 1, 11_000)]),
            sum(&[(3, 7, 22_500), (9, 1, 11_000), (20, 1, 66_000)]),
        );
        let rows = rows_of(&key(peer), Some(&before), &now, 30, 10);
        let of = |row: &ExchangeSum| (row.at_least_ns, row.count, row.total_ns);
        assert_eq!(
            rows.iter().map(of).collect::<Vec<_>>(),
            [(3072, 2, 6_500), (65_536, 1, 66_000)]
        );
        let row = &rows[0];
        assert_eq!((row.at_ns, row.interval_ns), (30, 10));
        assert_eq!((row.program.as_str(), row.port), ("redis", 6379));
        assert_eq!((row.peer.as_str(), row.side), ("10.0.0.2", SocketRole::Server));
        assert_eq!(rows_of(&key(peer), Some(&now), &now, 40, 10), []);
    }

    #[test]
    fn peers_without_a_slot_have_no_address() {
        let rows = rows_of(&key([0; 16]), None, &sum(&[(0, 1, 500)]), 30, 10);
        assert_eq!(rows[0].peer, "");
    }
}
