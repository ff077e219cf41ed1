//! The ranges that a hard disk's cache has yet to write, in elevator order.

use std::collections::BTreeMap;

/// Disjoint dirty ranges of a disk's cache by offset, neighbours merged.
#[derive(Debug, Default)]
pub(super) struct DirtyRanges {
    ranges: BTreeMap<u64, u64>,
    bytes: u64,
}

impl DirtyRanges {
    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds a range; parts that are dirty already are overwritten in place.
    pub(super) fn insert(&mut self, offset: u64, len: u64) {
        let (mut start, mut end) = (offset, offset + len);
        while let Some((&at, &old)) = self.ranges.range(..=end).next_back() {
            if at + old < start {
                break;
            }
            start = start.min(at);
            end = end.max(at + old);
            self.ranges.remove(&at);
            self.bytes -= old;
        }
        self.ranges.insert(start, end - start);
        self.bytes += end - start;
    }

    /// Returns whether the whole range is in the cache.
    pub(super) fn covers(&self, offset: u64, len: u64) -> bool {
        let before = self.ranges.range(..=offset).next_back();
        before.is_some_and(|(at, have)| at + have >= offset + len)
    }

    /// Takes up to `max_len` bytes of the next range at or after the head. Without one ahead, it takes the first
    /// range (C-LOOK).
    pub(super) fn pop_next(&mut self, head: u64, max_len: u64) -> Option<(u64, u64)> {
        let ahead = self.ranges.range(head..).next();
        let (&offset, &len) = ahead.or_else(|| self.ranges.iter().next())?;
        self.ranges.remove(&offset);
        let taken = len.min(max_len);
        if taken < len {
            self.ranges.insert(offset + taken, len - taken);
        }
        self.bytes -= taken;
        Some((offset, taken))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn goes_up_and_starts_over() {
        let mut dirty = DirtyRanges::default();
        for offset in [50, 10, 90] {
            dirty.insert(offset, 5);
        }
        assert_eq!(dirty.pop_next(40, 2), Some((50, 2)));
        assert_eq!(dirty.bytes(), 13);
        assert_eq!(dirty.pop_next(20, 100), Some((52, 3)));
        assert_eq!(dirty.pop_next(55, 100), Some((90, 5)));
        assert_eq!(dirty.pop_next(95, 100), Some((10, 5)));
        assert_eq!(dirty.pop_next(15, 100), None);
    }

    proptest! {
        #[test]
        fn holds_the_union(ranges in prop::collection::vec((0u64..200, 1u64..30), 0..40)) {
            let mut dirty = DirtyRanges::default();
            let mut bytes = [false; 256];
            for (offset, len) in ranges {
                dirty.insert(offset, len);
                bytes[offset as usize..(offset + len) as usize].fill(true);
                prop_assert!(dirty.covers(offset, len));
            }
            prop_assert_eq!(dirty.bytes(), bytes.iter().filter(|byte| **byte).count() as u64);
            let mut end_of_last = None;
            while let Some((offset, len)) = dirty.pop_next(0, 1 << 20) {
                prop_assert!(end_of_last.is_none_or(|end| offset > end), "merged");
                prop_assert!(bytes[offset as usize..(offset + len) as usize].iter().all(|b| *b));
                end_of_last = Some(offset + len);
            }
            prop_assert_eq!(dirty.bytes(), 0);
        }
    }
}
