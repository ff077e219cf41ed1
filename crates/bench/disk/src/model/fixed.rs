//! A disk whose every request costs a constant.

use super::{DiskRequest, DiskRequestKind, LatencyModel};

/// Constant service times. Requests are served one at a time, in order of arrival, as by a disk
/// with one actuator: `n` writes that arrive together complete `write_ns` apart.
#[derive(Debug, Default)]
pub(crate) struct FixedModel {
    pub(crate) read_ns: u64,
    /// Cost of a write or discard.
    pub(crate) write_ns: u64,
    pub(crate) flush_ns: u64,
    pub(crate) busy_until_ns: u64,
}

impl LatencyModel for FixedModel {
    fn complete_at_ns(&mut self, now_ns: u64, request: DiskRequest) -> u64 {
        let cost_ns = match request.kind {
            DiskRequestKind::Read => self.read_ns,
            DiskRequestKind::Write | DiskRequestKind::Discard => self.write_ns,
            DiskRequestKind::Flush => self.flush_ns,
        };
        self.busy_until_ns = self.busy_until_ns.max(now_ns).saturating_add(cost_ns);
        self.busy_until_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(kind: DiskRequestKind) -> DiskRequest {
        DiskRequest { kind, offset_bytes: 0, len_bytes: 4096 }
    }

    #[test]
    fn one_at_a_time_each_at_its_constant() {
        let mut disk = FixedModel { read_ns: 10, write_ns: 100, flush_ns: 1000, busy_until_ns: 0 };
        assert_eq!(disk.complete_at_ns(50, request(DiskRequestKind::Write)), 150);
        assert_eq!(disk.complete_at_ns(60, request(DiskRequestKind::Read)), 160);
        assert_eq!(disk.complete_at_ns(60, request(DiskRequestKind::Flush)), 1160);
        assert_eq!(disk.complete_at_ns(5000, request(DiskRequestKind::Discard)), 5100);
    }
}
