//! Order of two events.

use std::cmp::Ordering;

use crate::bounds::Bounds;

/// Order of two events, and its certainty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventOrder {
    /// The bounds leave no other order. `Less`: the first event was first.
    Certain(Ordering),
    /// The estimate is on this side, and so are at least three quarters of the range that the bounds leave.
    Likely(Ordering),
    /// Neither certain nor likely.
    Unknown,
}

impl EventOrder {
    /// Returns the order of two events whose second is later by this.
    pub(super) fn of(later_by: Bounds, estimate_ns: Option<i128>) -> Self {
        if later_by.low_ns().is_some_and(|low| low > 0) {
            return Self::Certain(Ordering::Less);
        }
        if later_by.high_ns().is_some_and(|high| high < 0) {
            return Self::Certain(Ordering::Greater);
        }
        let (Bounds::Both { low_ns, high_ns }, Some(estimate)) = (later_by, estimate_ns) else {
            return Self::Unknown;
        };
        let (before, after) = (-i128::from(low_ns), i128::from(high_ns));
        if after >= 3 * before && estimate > 0 {
            Self::Likely(Ordering::Less)
        } else if before >= 3 * after && estimate < 0 {
            Self::Likely(Ordering::Greater)
        } else {
            Self::Unknown
        }
    }
}

/// Returns the time from the first of two times to the second.
pub(super) fn later_by(first: Bounds, second: Bounds) -> Bounds {
    let difference = |second: Option<i64>, first: Option<i64>| {
        second.zip(first).map(|(second, first)| second.saturating_sub(first))
    };
    Bounds::of(
        difference(second.low_ns(), first.high_ns()),
        difference(second.high_ns(), first.low_ns()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(low_ns: i64, high_ns: i64) -> EventOrder {
        let estimate = i128::from(low_ns.midpoint(high_ns));
        EventOrder::of(Bounds::Both { low_ns, high_ns }, Some(estimate))
    }

    #[test]
    fn certain_likely_unknown() {
        assert_eq!(order(1, 9), EventOrder::Certain(Ordering::Less));
        assert_eq!(order(-9, -1), EventOrder::Certain(Ordering::Greater));
        assert_eq!(order(-2, 6), EventOrder::Likely(Ordering::Less));
        assert_eq!(order(-6, 2), EventOrder::Likely(Ordering::Greater));
        assert_eq!(order(-3, 6), EventOrder::Unknown);
        assert_eq!(order(0, 0), EventOrder::Unknown);
        assert_eq!(order(i64::MIN, i64::MAX), EventOrder::Unknown);
        assert_eq!(EventOrder::of(Bounds::AtLeast(1), None), EventOrder::Certain(Ordering::Less));
        assert_eq!(EventOrder::of(Bounds::AtLeast(-1), None), EventOrder::Unknown);
    }

    #[test]
    fn differences_saturate() {
        let far = Bounds::Both { low_ns: i64::MIN, high_ns: i64::MAX };
        assert_eq!(later_by(far, far), far);
        assert_eq!(later_by(Bounds::AtMost(3), Bounds::AtLeast(5)), Bounds::AtLeast(2));
    }
}
