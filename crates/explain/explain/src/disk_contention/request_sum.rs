use crate::saturating_grow::SaturatingGrow as _;
/// Requests and the device's time for them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RequestSum {
    pub(super) count: u64,
    pub(super) bytes: u64,
    pub(super) ns: u64,
}

impl RequestSum {
    pub(super) fn record(&mut self, bytes: u64, ns: u64) {
        self.add(&Self { count: 1, bytes, ns });
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.bytes.grow(other.bytes);
        self.ns.grow(other.ns);
    }
}

/// Requests that continue where the task's last one ended, and those that do not.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SumsByContinuity {
    pub(super) continuing: RequestSum,
    pub(super) elsewhere: RequestSum,
}

impl SumsByContinuity {
    pub(super) fn record(&mut self, continues: bool, bytes: u64, ns: u64) {
        let sum = if continues { &mut self.continuing } else { &mut self.elsewhere };
        sum.record(bytes, ns);
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.continuing.add(&other.continuing);
        self.elsewhere.add(&other.elsewhere);
    }
}
