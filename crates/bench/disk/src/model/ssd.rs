//! A SATA solid-state disk with a volatile cache.
//!
//! Each request has a latency. A part of it occupies a pipeline that all requests share, which caps the rates.
//! Defaults are the Samsung 850 PRO 256 GB by its data sheet: 4 KiB random reads 10,000 per second at queue depth 1
//! and 100,000 at 32. Writes are 36,000 and 90,000 per second. Sequential reads are 550 MB/s, sequential writes 520
//! MB/s. No data sheet gives the time of a flush: 1 ms plus the transfer of the cache is an assumption.

use serde::{Deserialize, Serialize};

use super::{DiskRequest, DiskRequestKind, LatencyModel};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SsdParameters {
    /// Time of a 4 KiB read when idle, nanoseconds.
    pub read_ns: u64,
    /// Time of a 4 KiB write when idle, nanoseconds.
    pub write_ns: u64,
    pub read_iops: u64,
    pub write_iops: u64,
    pub read_bytes_per_second: u64,
    pub write_bytes_per_second: u64,
    /// Time of a flush of an empty cache, nanoseconds.
    pub flush_ns: u64,
    pub cache_bytes: u64,
}

impl Default for SsdParameters {
    fn default() -> Self {
        Self {
            read_ns: 100_000,
            write_ns: 27_778,
            read_iops: 100_000,
            write_iops: 90_000,
            read_bytes_per_second: 550_000_000,
            write_bytes_per_second: 520_000_000,
            flush_ns: 1_000_000,
            cache_bytes: 32 << 20,
        }
    }
}

impl SsdParameters {
    /// Checks the parameters. The error names an invalid one and a valid value.
    pub(super) fn check(&self) -> Result<(), String> {
        let zero = [
            ("read_iops", self.read_iops),
            ("write_iops", self.write_iops),
            ("read_bytes_per_second", self.read_bytes_per_second),
            ("write_bytes_per_second", self.write_bytes_per_second),
        ];
        match zero.iter().find(|(_, value)| *value == 0) {
            Some((name, _)) => Err(format!("{name} is 0: choose at least 1")),
            None => Ok(()),
        }
    }
}

/// State of the model of a solid-state disk.
#[derive(Debug)]
pub(super) struct SsdModel {
    parameters: SsdParameters,
    pipeline_free_ns: u64,
    written_ns: u64,
    unflushed_bytes: u64,
}

impl SsdModel {
    pub(super) fn new(parameters: SsdParameters) -> Self {
        Self { parameters, pipeline_free_ns: 0, written_ns: 0, unflushed_bytes: 0 }
    }

    /// Occupies the pipeline. Returns when it is done with this request.
    fn occupy(&mut self, now_ns: u64, busy_ns: u64) -> u64 {
        self.pipeline_free_ns = self.pipeline_free_ns.max(now_ns).saturating_add(busy_ns);
        self.pipeline_free_ns
    }
}

impl LatencyModel for SsdModel {
    fn complete_at_ns(&mut self, now_ns: u64, request: DiskRequest) -> u64 {
        let p = &self.parameters;
        let (latency_ns, iops, rate) = match request.kind {
            DiskRequestKind::Read => (p.read_ns, p.read_iops, p.read_bytes_per_second),
            _ => (p.write_ns, p.write_iops, p.write_bytes_per_second),
        };
        match request.kind {
            DiskRequestKind::Read | DiskRequestKind::Write => {
                let least_ns = 1_000_000_000 / iops;
                let busy_ns = least_ns.max(transfer_ns(request.len_bytes, rate));
                let done_ns = self.occupy(now_ns, busy_ns) + latency_ns.saturating_sub(least_ns);
                if request.kind == DiskRequestKind::Write {
                    self.written_ns = self.written_ns.max(done_ns);
                    let cache_bytes = self.parameters.cache_bytes;
                    self.unflushed_bytes =
                        (self.unflushed_bytes + request.len_bytes).min(cache_bytes);
                }
                done_ns
            }
            DiskRequestKind::Discard => self.occupy(now_ns, 1_000_000_000 / iops) + latency_ns,
            DiskRequestKind::Flush => {
                let unflushed_bytes = std::mem::take(&mut self.unflushed_bytes);
                let busy_ns = p.flush_ns + transfer_ns(unflushed_bytes, rate);
                self.occupy(now_ns.max(self.written_ns), busy_ns)
            }
        }
    }
}

fn transfer_ns(bytes: u64, bytes_per_second: u64) -> u64 {
    (u128::from(bytes) * 1_000_000_000 / u128::from(bytes_per_second)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::test_support::{closed_loop, request};

    fn close(value: f64, expected: f64) {
        assert!((value / expected - 1.0).abs() < 0.02, "{value}, not {expected}");
    }

    fn rate(depth: usize, kind: DiskRequestKind, len: u64) -> f64 {
        let mut ssd = SsdModel::new(SsdParameters::default());
        20_000.0 / closed_loop(&mut ssd, depth, 20_000, kind, len)
    }

    #[test]
    fn rates_are_the_data_sheets() {
        close(rate(1, DiskRequestKind::Read, 4096), 10_000.0);
        close(rate(32, DiskRequestKind::Read, 4096), 100_000.0);
        close(rate(1, DiskRequestKind::Write, 4096), 36_000.0);
        close(rate(32, DiskRequestKind::Write, 4096), 90_000.0);
        close(rate(32, DiskRequestKind::Read, 1 << 20) * f64::from(1 << 20), 550e6);
        close(rate(32, DiskRequestKind::Write, 1 << 20) * f64::from(1 << 20), 520e6);
    }

    #[test]
    fn a_flush_follows_what_it_flushes() {
        let mut ssd = SsdModel::new(SsdParameters::default());
        let written = ssd.complete_at_ns(0, request(DiskRequestKind::Write, 0, 1 << 20));
        let flushed = ssd.complete_at_ns(1, request(DiskRequestKind::Flush, 0, 0));
        assert!(flushed >= written + 1_000_000 + 2_000_000, "1 ms and 1 MiB at 520 MB/s");
        assert_eq!(
            ssd.complete_at_ns(flushed, request(DiskRequestKind::Flush, 0, 0)),
            flushed + 1_000_000
        );
    }
}
