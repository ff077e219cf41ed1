//! Intervals of time that are only ever divided, so that parts sum to the whole.

/// An interval on one clock. Its begin is not after its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TimeSpan {
    from_ns: u64,
    to_ns: u64,
}

/// Both parts of a divided interval. They have the interval's length together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SplitSpan {
    /// Part up to the dividing time.
    pub before: TimeSpan,
    /// Part from the dividing time on.
    pub after: TimeSpan,
}

impl TimeSpan {
    /// Returns the interval between two times; an empty one if the end is before the begin.
    #[must_use]
    pub fn new(from_ns: u64, to_ns: u64) -> Self {
        Self { from_ns, to_ns: to_ns.max(from_ns) }
    }

    /// Returns the begin, which is in the span.
    #[must_use]
    pub fn from_ns(self) -> u64 {
        self.from_ns
    }

    /// Returns the end, which is not in the span.
    #[must_use]
    pub fn to_ns(self) -> u64 {
        self.to_ns
    }

    /// Returns the time from begin to end.
    #[must_use]
    pub fn length_ns(self) -> u64 {
        self.to_ns - self.from_ns
    }

    /// Returns whether it has no length.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.from_ns == self.to_ns
    }

    /// Returns the time in the middle.
    #[must_use]
    pub fn middle_ns(self) -> u64 {
        self.from_ns.midpoint(self.to_ns)
    }

    /// Divides it at a time. A time outside of it leaves one part empty.
    #[must_use]
    pub fn split(self, at_ns: u64) -> SplitSpan {
        let at_ns = at_ns.clamp(self.from_ns, self.to_ns);
        SplitSpan { before: Self { to_ns: at_ns, ..self }, after: Self { from_ns: at_ns, ..self } }
    }

    /// Returns the same interval on a clock that is `ahead_ns` ahead; `None` if the clock cannot show it.
    #[must_use]
    pub fn shifted(self, ahead_ns: i64) -> Option<Self> {
        Some(Self {
            from_ns: self.from_ns.checked_add_signed(ahead_ns)?,
            to_ns: self.to_ns.checked_add_signed(ahead_ns)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_the_length_of_the_whole() {
        let span = TimeSpan::new(10, 30);
        for at_ns in [0, 10, 17, 30, u64::MAX] {
            let SplitSpan { before, after } = span.split(at_ns);
            assert_eq!(before.length_ns() + after.length_ns(), 20, "{at_ns}");
            assert_eq!(before.to_ns(), after.from_ns(), "{at_ns}");
        }
        assert!(TimeSpan::new(30, 10).is_empty());
    }

    #[test]
    fn another_clock_shows_the_same_length_or_nothing() {
        let span = TimeSpan::new(10, 30);
        assert_eq!(span.shifted(5), Some(TimeSpan::new(15, 35)));
        assert_eq!(span.shifted(-10).map(TimeSpan::length_ns), Some(20));
        assert_eq!(span.shifted(-11), None);
        assert_eq!(TimeSpan::new(0, u64::MAX).shifted(1), None);
    }
}
