//! Helpers of the models' tests.

use super::{DiskRequest, DiskRequestKind, LatencyModel};

pub(super) fn request(kind: DiskRequestKind, offset_bytes: u64, len_bytes: u64) -> DiskRequest {
    DiskRequest { kind, offset_bytes, len_bytes }
}

/// Numbers that look random and are the same every time (SplitMix64).
pub(super) struct SplitMixNumbers(u64);

impl SplitMixNumbers {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (word ^ (word >> 31)) % bound
    }
}

/// Returns seconds that `count` requests at random offsets take, `depth` of them under way at any time.
pub(super) fn closed_loop(
    model: &mut dyn LatencyModel,
    depth: usize,
    count: usize,
    kind: DiskRequestKind,
    len: u64,
) -> f64 {
    let mut random = SplitMixNumbers::new(7);
    let mut under_way = std::collections::BinaryHeap::new();
    let (mut now, mut last) = (0, 0);
    for _ in 0..count {
        if under_way.len() == depth
            && let Some(std::cmp::Reverse(done)) = under_way.pop()
        {
            now = done;
        }
        let done = model.complete_at_ns(now, request(kind, random.below(1 << 20) * 4096, len));
        last = last.max(done);
        under_way.push(std::cmp::Reverse(done));
    }
    last as f64 / 1e9
}
