//! Calls that are under way on a file system: how many at once, and how long they took together.
//!
//! Each call stands in the lowest free place from its beginning to its end, so the highest place that was taken tells
//! how many there were at once. A caller that is killed leaves its place behind, which is free again a while later:
//! nothing is counted that a death could leave wrong for good.

use core::sync::atomic::Ordering::{AcqRel, Relaxed};
use core::sync::atomic::{AtomicU32, AtomicU64};

use super::shared_layout::CacheLine;

/// Calls that are told apart; more at once are not counted.
const PLACES: usize = 256;

/// A call that began this long ago was killed, or has forgotten its place, in nanoseconds.
const ABANDONED_NS: u64 = 1_000_000_000;

/// The most at once is that of two spans of this length, in nanoseconds.
const SPAN_NS: u64 = 500_000_000;

/// The calls under way. All zeros is its initial state.
#[repr(C)]
#[derive(Debug)]
pub struct CallsUnderWay {
    /// When each call began; 0 in a free place.
    began_ns: [AtomicU64; PLACES],
    /// The most at once in this span and the one before.
    most: CacheLine<[AtomicU32; 2]>,
    span_ns: AtomicU64,
    /// How long all calls that have returned took together, in nanoseconds.
    latencies_ns: AtomicU64,
}

/// The slot that a call takes in the table of calls under way.
#[derive(Clone, Copy, Debug)]
pub struct CallSlot {
    index: Option<usize>,
    began_ns: u64,
}

/// How busy a file system's callers are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallConcurrency {
    /// The most calls under way at once of late; 0 if that is not known.
    pub most: u32,
    /// How long all calls that have returned took together, in nanoseconds.
    pub latencies_ns: u64,
}

impl CallsUnderWay {
    /// A call begins at `now_ns`.
    pub fn begin(&self, now_ns: u64) -> CallSlot {
        let index = self.began_ns.iter().position(|place| {
            let known_ns = place.load(Relaxed);
            let is_free = known_ns == 0 || now_ns.saturating_sub(known_ns) > ABANDONED_NS;
            is_free && place.compare_exchange(known_ns, now_ns, AcqRel, Relaxed).is_ok()
        });
        let [most, _] = &self.most.0;
        let at_once = index.map_or(PLACES, |index| index + 1) as u32;
        if most.load(Relaxed) < at_once {
            most.fetch_max(at_once, Relaxed);
        }
        CallSlot { index, began_ns: now_ns }
    }

    /// It has returned at `now_ns`.
    pub fn end(&self, call: CallSlot, now_ns: u64) {
        if let Some(place) = call.index.and_then(|index| self.began_ns.get(index)) {
            // Fails if it was taken for abandoned.
            let _ = place.compare_exchange(call.began_ns, 0, AcqRel, Relaxed);
        }
        let took_ns = now_ns.saturating_sub(call.began_ns);
        self.latencies_ns.fetch_add(took_ns, Relaxed);
    }

    /// What is known at `now_ns`.
    pub fn crowd(&self, now_ns: u64) -> CallConcurrency {
        let [most, before] = &self.most.0;
        let at_once = most.load(Relaxed).max(before.load(Relaxed));
        let span_ns = self.span_ns.load(Relaxed);
        if now_ns.saturating_sub(span_ns) > SPAN_NS
            && self.span_ns.compare_exchange(span_ns, now_ns, AcqRel, Relaxed).is_ok()
        {
            before.store(most.swap(0, Relaxed), Relaxed);
        }
        CallConcurrency { most: at_once, latencies_ns: self.latencies_ns.load(Relaxed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new() -> Box<CallsUnderWay> {
        // SAFETY: all zeros is the valid initial state.
        unsafe { Box::new_zeroed().assume_init() }
    }

    const BEGIN_NS: u64 = 1_000_000_000;

    #[test]
    fn the_most_at_once_is_remembered_for_a_while() {
        let calls = new();
        let three = [0, 1, 2].map(|_| calls.begin(BEGIN_NS));
        assert_eq!(calls.crowd(BEGIN_NS).most, 3);
        for call in three {
            calls.end(call, BEGIN_NS + 1_000_000);
        }
        let mut now_ns = BEGIN_NS;
        for _ in 0..3 {
            now_ns += SPAN_NS + 1;
            calls.end(calls.begin(now_ns), now_ns + 1_000_000);
            calls.crowd(now_ns);
        }
        let expected = CallConcurrency { most: 1, latencies_ns: 6_000_000 };
        assert_eq!(calls.crowd(now_ns), expected);
    }

    #[test]
    fn who_is_killed_is_counted_for_a_second_only() {
        let calls = new();
        let killed = calls.begin(BEGIN_NS);
        let mut now_ns = BEGIN_NS + ABANDONED_NS + 1;
        for _ in 0..3 {
            calls.end(calls.begin(now_ns), now_ns + 1);
            calls.crowd(now_ns);
            now_ns += SPAN_NS + 1;
        }
        assert_eq!(calls.crowd(now_ns).most, 1);
        // Should it only have been slow, it takes nobody's place.
        let other = calls.begin(now_ns);
        calls.end(killed, now_ns);
        calls.begin(now_ns);
        assert_eq!(calls.crowd(now_ns).most, 2);
        calls.end(other, now_ns);
    }
}
