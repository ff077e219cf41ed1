//! Bounds of a quantity in ns: two, one, or none.

/// Guaranteed bounds of an offset, in ns, rounded outwards.
///
/// Messages of one direction bound an offset on one side only. So a missing bound is a case of its own, and no number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bounds {
    /// Known on both sides.
    Both {
        /// The least possible value.
        low_ns: i64,
        /// The greatest possible value.
        high_ns: i64,
    },
    /// Only the least possible value is known.
    AtLeast(i64),
    /// Only the greatest possible value is known.
    AtMost(i64),
    /// Nothing is known.
    Unknown,
}

impl Bounds {
    /// Returns bounds relative to `base_ns`. Infinite ones are missing.
    pub(crate) fn around(base_ns: i64, low: f64, high: f64) -> Self {
        // `as` saturates, so that no sum overflows.
        let low_ns = low.is_finite().then(|| base_ns.saturating_add(low.floor() as i64));
        let high_ns = high.is_finite().then(|| base_ns.saturating_add(high.ceil() as i64));
        Self::of(low_ns, high_ns)
    }

    /// Returns bounds; each may be missing.
    #[must_use]
    pub fn of(low_ns: Option<i64>, high_ns: Option<i64>) -> Self {
        match (low_ns, high_ns) {
            (Some(low_ns), Some(high_ns)) => Self::Both { low_ns, high_ns },
            (Some(low_ns), None) => Self::AtLeast(low_ns),
            (None, Some(high_ns)) => Self::AtMost(high_ns),
            (None, None) => Self::Unknown,
        }
    }

    /// Returns the least possible value.
    #[must_use]
    pub fn low_ns(self) -> Option<i64> {
        match self {
            Self::Both { low_ns, .. } | Self::AtLeast(low_ns) => Some(low_ns),
            Self::AtMost(_) | Self::Unknown => None,
        }
    }

    /// Returns the greatest possible value.
    #[must_use]
    pub fn high_ns(self) -> Option<i64> {
        match self {
            Self::Both { high_ns, .. } | Self::AtMost(high_ns) => Some(high_ns),
            Self::AtLeast(_) | Self::Unknown => None,
        }
    }

    /// Returns half the distance of the bounds, in ns.
    #[must_use]
    pub fn half_width_ns(self) -> Option<f64> {
        match self {
            Self::Both { low_ns, high_ns } => {
                Some((i128::from(high_ns) - i128::from(low_ns)) as f64 / 2.0)
            }
            _ => None,
        }
    }

    /// Whether a value is possible.
    #[must_use]
    pub fn contains(self, value_ns: i64) -> bool {
        self.low_ns().is_none_or(|low| low <= value_ns)
            && self.high_ns().is_none_or(|high| value_ns <= high)
    }

    /// Returns the bounds of the value with its sign changed.
    #[must_use]
    pub fn negated(self) -> Self {
        let negate = |bound: Option<i64>| bound.map(i64::saturating_neg);
        Self::of(negate(self.high_ns()), negate(self.low_ns()))
    }

    /// Returns the bounds if both these and the others hold.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let both = |a: Option<i64>, b: Option<i64>, pick: fn(i64, i64) -> i64| match (a, b) {
            (Some(a), Some(b)) => Some(pick(a, b)),
            _ => a.or(b),
        };
        Self::of(
            both(self.low_ns(), other.low_ns(), i64::max),
            both(self.high_ns(), other.high_ns(), i64::min),
        )
    }

    /// Returns the bounds if these or the others hold.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        let (low, high) = (self.low_ns().zip(other.low_ns()), self.high_ns().zip(other.high_ns()));
        Self::of(low.map(|(a, b)| a.min(b)), high.map(|(a, b)| a.max(b)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_rounded_outwards_and_saturate() {
        let both = |low_ns, high_ns| Bounds::Both { low_ns, high_ns };
        assert_eq!(Bounds::around(10, -0.5, 0.5), both(9, 11));
        assert_eq!(Bounds::around(10, f64::NEG_INFINITY, 0.5), Bounds::AtMost(11));
        assert_eq!(Bounds::around(10, 1.5, f64::INFINITY), Bounds::AtLeast(11));
        assert_eq!(Bounds::around(i64::MAX - 1, -1e300, 1e300), both(-2, i64::MAX));
    }

    #[test]
    fn bounds_are_combined_side_by_side() {
        let both = |low_ns, high_ns| Bounds::Both { low_ns, high_ns };
        assert_eq!(both(1, 5).and(Bounds::AtMost(3)), both(1, 3));
        assert_eq!(both(1, 5).or(Bounds::AtMost(7)), Bounds::AtMost(7));
        assert_eq!(Bounds::AtLeast(2).and(Bounds::AtMost(3)), both(2, 3));
        assert_eq!(both(1, 5).negated(), both(-5, -1));
        assert_eq!(Bounds::AtLeast(i64::MIN).negated(), Bounds::AtMost(i64::MAX));
        assert_eq!(both(1, 4).half_width_ns(), Some(1.5));
        assert_eq!(both(i64::MIN, i64::MAX).half_width_ns(), Some(2f64.powi(63)));
        assert!(both(1, 4).contains(4) && !both(1, 4).contains(5));
        assert!(Bounds::Unknown.contains(i64::MIN));
    }
}
