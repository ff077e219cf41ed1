//! Writing speed of a device without flushes of its cache, and the bandwidth of large writes.
//!
//! The writes of an fsync that waits behind another's commit also wait behind that commit's flushes. Shared commits
//! remove these waits, so a prediction needs the writes' own time.

use luc_events::event_kinds::RequestKind;
use luc_events::tables::BlockRequest;

use crate::saturating_grow::SaturatingGrow as _;

/// Fewer writes give no time.
const MIN_WRITES: u64 = 16;

/// A write from here on is limited by the device's bandwidth rather than its latency.
const LARGE_BYTES: u64 = 64 << 10;

/// Sums over a disk's writes.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeviceWriteSpeed {
    alone: Busy,
    large: Busy,
    large_bytes: u64,
    flushed_ns: u64,
}

/// Time in which writes were under way. Overlapping writes run in parallel, so their time counts once.
#[derive(Clone, Debug, Default)]
struct Busy {
    writes: u64,
    ns: u64,
    until_ns: u64,
}

impl Busy {
    fn add(&mut self, row: &BlockRequest) {
        let begin_ns = row.issue_ns.max(self.until_ns);
        self.writes += 1;
        self.ns.grow(row.complete_ns.saturating_sub(begin_ns));
        self.until_ns = self.until_ns.max(row.complete_ns);
    }

    /// Time over `amount`, if there are enough writes.
    fn per(&self, amount: u64) -> Option<f64> {
        (self.writes >= MIN_WRITES).then(|| self.ns as f64 / amount.max(1) as f64)
    }
}

impl DeviceWriteSpeed {
    /// Takes in a request; they come in the order of their ends.
    pub(crate) fn add(&mut self, row: &BlockRequest) {
        if row.kind == RequestKind::Flush {
            self.flushed_ns = self.flushed_ns.max(row.complete_ns);
        }
        if row.kind != RequestKind::Write {
            return;
        }
        if row.issue_ns >= self.flushed_ns {
            self.alone.add(row);
        }
        if row.bytes >= LARGE_BYTES {
            self.large.add(row);
            self.large_bytes.grow(row.bytes);
        }
    }

    /// Device time per write, in nanoseconds: parallel writes share it.
    pub(crate) fn ns_per_write(&self) -> Option<f64> {
        self.alone.per(self.alone.writes)
    }

    /// Device time per byte of large writes, in nanoseconds: the least that more data costs.
    pub(crate) fn ns_per_byte(&self) -> Option<f64> {
        self.large.per(self.large_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(kind: RequestKind, issue_ns: u64, complete_ns: u64) -> BlockRequest {
        BlockRequest { kind, issue_ns, complete_ns, ..BlockRequest::default() }
    }

    #[test]
    fn writes_behind_a_flush_do_not_count() {
        let mut service = DeviceWriteSpeed::default();
        for round in 0..MIN_WRITES {
            let at_ns = round * 1_000;
            service.add(&request(RequestKind::Write, at_ns, at_ns + 20));
            service.add(&request(RequestKind::Flush, at_ns + 100, at_ns + 700));
            service.add(&request(RequestKind::Write, at_ns + 200, at_ns + 720));
        }
        assert_eq!(service.ns_per_write(), Some(20.0));
    }

    #[test]
    fn parallel_writes_share_the_time() {
        let mut service = DeviceWriteSpeed::default();
        for round in 0..MIN_WRITES {
            let at_ns = round * 1_000;
            service.add(&request(RequestKind::Write, at_ns, at_ns + 80));
            service.add(&request(RequestKind::Write, at_ns, at_ns + 80));
        }
        assert_eq!(service.ns_per_write(), Some(40.0));
    }

    #[test]
    fn bandwidth_is_that_of_large_writes() {
        let mut service = DeviceWriteSpeed::default();
        for round in 0..MIN_WRITES {
            let at_ns = round << 20;
            service.add(&BlockRequest {
                bytes: 4_096,
                ..request(RequestKind::Write, at_ns, at_ns + 5)
            });
            service.add(&BlockRequest {
                bytes: LARGE_BYTES,
                ..request(RequestKind::Write, at_ns, at_ns + 2 * LARGE_BYTES)
            });
        }
        assert_eq!(service.ns_per_byte(), Some(2.0));
    }

    #[test]
    fn few_writes_say_nothing() {
        let mut service = DeviceWriteSpeed::default();
        service.add(&request(RequestKind::Write, 5, 10));
        assert_eq!(service.ns_per_write(), None);
    }
}
