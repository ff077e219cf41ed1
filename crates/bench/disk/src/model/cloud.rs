//! A network volume: a latency, and caps on operations and bytes per second.
//!
//! Defaults are a baseline Amazon EBS gp3 volume by its documentation: 3,000 IOPS and 125 MiB/s for any size. Each
//! 256 KiB of a request, or part of it, counts as one operation. The latency is "single-digit millisecond" there, and
//! 1 ms here. A completed write is on several machines, so there is no volatile cache, and a flush has nothing to do.

use serde::{Deserialize, Serialize};

use super::{DiskRequest, DiskRequestKind, LatencyModel};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CloudParameters {
    /// Time of a request that no cap holds up, nanoseconds.
    pub latency_ns: u64,
    pub iops: u64,
    pub bytes_per_second: u64,
    /// A larger request counts as several operations of this size.
    pub operation_bytes: u64,
    /// Time by which an idle volume may run ahead of its caps, nanoseconds.
    pub burst_ns: u64,
}

impl Default for CloudParameters {
    fn default() -> Self {
        Self {
            latency_ns: 1_000_000,
            iops: 3_000,
            bytes_per_second: 125 << 20,
            operation_bytes: 256 << 10,
            burst_ns: 10_000_000,
        }
    }
}

impl CloudParameters {
    /// Checks the parameters. The error names an invalid one and a valid value.
    pub(super) fn check(&self) -> Result<(), String> {
        let zero = [
            ("iops", self.iops),
            ("bytes_per_second", self.bytes_per_second),
            ("operation_bytes", self.operation_bytes),
        ];
        match zero.iter().find(|(_, value)| *value == 0) {
            Some((name, _)) => Err(format!("{name} is 0: choose at least 1")),
            None => Ok(()),
        }
    }
}

/// State of the model of a network volume.
#[derive(Debug)]
pub(super) struct CloudModel {
    parameters: CloudParameters,
    operations: Bucket,
    bytes: Bucket,
    /// Completion time of the last write; a flush does not complete earlier.
    written_ns: u64,
}

impl CloudModel {
    pub(super) fn new(parameters: CloudParameters) -> Self {
        Self { parameters, operations: Bucket::default(), bytes: Bucket::default(), written_ns: 0 }
    }
}

impl LatencyModel for CloudModel {
    fn complete_at_ns(&mut self, now_ns: u64, request: DiskRequest) -> u64 {
        let p = &self.parameters;
        if request.kind == DiskRequestKind::Flush {
            return self.written_ns.max(now_ns);
        }
        let (operations, bytes) = match request.kind {
            DiskRequestKind::Discard => (1, 0),
            _ => (request.len_bytes.div_ceil(p.operation_bytes).max(1), request.len_bytes),
        };
        let admitted_ns = self
            .operations
            .admit_ns(now_ns, operations, p.iops, p.burst_ns)
            .max(self.bytes.admit_ns(now_ns, bytes, p.bytes_per_second, p.burst_ns));
        let done_ns = admitted_ns + p.latency_ns;
        if request.kind != DiskRequestKind::Read {
            self.written_ns = self.written_ns.max(done_ns);
        }
        done_ns
    }
}

/// A token bucket, stored as the time of being full again (generic cell rate algorithm, ITU-T I.371).
#[derive(Debug, Default)]
struct Bucket {
    full_at_ns: u64,
}

impl Bucket {
    /// Returns when `tokens` may pass. Tokens flow in at `rate` per second, and `burst_ns` worth of them may pass at
    /// once.
    fn admit_ns(&mut self, now_ns: u64, tokens: u64, rate: u64, burst_ns: u64) -> u64 {
        let cost_ns = (u128::from(tokens) * 1_000_000_000 / u128::from(rate)) as u64;
        self.full_at_ns = self.full_at_ns.max(now_ns).saturating_add(cost_ns);
        self.full_at_ns.saturating_sub(burst_ns.max(cost_ns)).max(now_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::test_support::{closed_loop, request};

    fn gp3() -> CloudModel {
        CloudModel::new(CloudParameters::default())
    }

    #[test]
    fn alone_a_request_takes_the_latency() {
        assert_eq!(
            gp3().complete_at_ns(5_000_000_000, request(DiskRequestKind::Read, 0, 4096)),
            5_001_000_000
        );
    }

    #[test]
    fn operations_are_capped() {
        let (count, seconds) =
            (60_000, closed_loop(&mut gp3(), 64, 60_000, DiskRequestKind::Write, 4096));
        let iops = f64::from(count) / seconds;
        assert!((2950.0..=3050.0).contains(&iops), "{iops}");
    }

    #[test]
    fn bytes_are_capped() {
        let seconds = closed_loop(&mut gp3(), 32, 2_000, DiskRequestKind::Read, 1 << 20);
        let mib_per_second = 2_000.0 / seconds;
        assert!((123.0..=127.0).contains(&mib_per_second), "{mib_per_second}");
    }

    #[test]
    fn a_flush_waits_for_earlier_writes_and_no_more() {
        let mut volume = gp3();
        let written = volume.complete_at_ns(0, request(DiskRequestKind::Write, 0, 4096));
        assert_eq!(volume.complete_at_ns(10, request(DiskRequestKind::Flush, 0, 0)), written);
        assert_eq!(
            volume.complete_at_ns(written + 10, request(DiskRequestKind::Flush, 0, 0)),
            written + 10
        );
    }
}
