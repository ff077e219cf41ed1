//! Messages of two hosts as bounds of the offset of their clocks.

use crate::error::ClockError;

/// Maximum distance of times from 0: differences of two offsets then fit into an `i64`.
pub const MAX_TIME_NS: i64 = i64::MAX / 4;

/// A moment at which a message bounds the offset on one side.
///
/// The offset at a moment is the time of B's clock less that of A's. A delay is not negative. So a message that A sent
/// bounds the offset from above, and one that B sent from below (Duda, Harrus, Haddad and Bernard, *Estimating Global
/// Time in Distributed Systems*, 1987).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct OffsetPoint {
    at_ns: i64,
    offset_ns: i64,
}

impl OffsetPoint {
    /// Returns the point of a message that A sent at `sent_ns` of its clock, and B received at `received_ns` of its
    /// own.
    ///
    /// # Errors
    /// [`ClockError::TimeOutOfRange`] beyond [`MAX_TIME_NS`].
    pub fn forward(sent_ns: i64, received_ns: i64) -> Result<Self, ClockError> {
        Self::new(sent_ns, received_ns)
    }

    /// Returns the point of a message that B sent at `sent_ns` of its clock, and A received at `received_ns` of its
    /// own.
    ///
    /// # Errors
    /// [`ClockError::TimeOutOfRange`] beyond [`MAX_TIME_NS`].
    pub fn backward(sent_ns: i64, received_ns: i64) -> Result<Self, ClockError> {
        Self::new(received_ns, sent_ns)
    }

    fn new(a_ns: i64, b_ns: i64) -> Result<Self, ClockError> {
        for time_ns in [a_ns, b_ns] {
            if !(-MAX_TIME_NS..=MAX_TIME_NS).contains(&time_ns) {
                return Err(ClockError::TimeOutOfRange(time_ns));
            }
        }
        Ok(Self { at_ns: a_ns, offset_ns: b_ns - a_ns })
    }

    /// Returns A's time.
    #[must_use]
    pub fn at_ns(self) -> i64 {
        self.at_ns
    }

    /// Returns the bound of the offset at that time.
    #[must_use]
    pub fn offset_ns(self) -> i64 {
        self.offset_ns
    }

    /// Returns the same message with A and B swapped.
    fn swapped(self) -> Self {
        Self { at_ns: self.at_ns + self.offset_ns, offset_ns: -self.offset_ns }
    }

    /// Returns the bound with its sign changed: a bound of an offset from below bounds its negative from above.
    pub(crate) fn mirrored(self) -> Self {
        Self { offset_ns: -self.offset_ns, ..self }
    }
}

/// The messages between two hosts, A and B.
///
/// If bytes are sent again, the first transmission and the first reception count. Retransmission then only loosens a
/// bound.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PairPoints {
    /// Messages from A to B: no offset is above these.
    pub forward: Vec<OffsetPoint>,
    /// Messages from B to A: no offset is below these.
    pub backward: Vec<OffsetPoint>,
}

impl PairPoints {
    /// Adds a message that A sent.
    ///
    /// # Errors
    /// [`ClockError::TimeOutOfRange`] beyond [`MAX_TIME_NS`].
    pub fn add_forward(&mut self, sent_ns: i64, received_ns: i64) -> Result<(), ClockError> {
        self.forward.push(OffsetPoint::forward(sent_ns, received_ns)?);
        Ok(())
    }

    /// Adds a message that B sent.
    ///
    /// # Errors
    /// [`ClockError::TimeOutOfRange`] beyond [`MAX_TIME_NS`].
    pub fn add_backward(&mut self, sent_ns: i64, received_ns: i64) -> Result<(), ClockError> {
        self.backward.push(OffsetPoint::backward(sent_ns, received_ns)?);
        Ok(())
    }

    /// Returns the same messages with A and B swapped.
    #[must_use]
    pub fn swapped(&self) -> Self {
        let swap = |points: &[OffsetPoint]| points.iter().map(|point| point.swapped()).collect();
        Self { forward: swap(&self.backward), backward: swap(&self.forward) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_a_point_of_as_time() {
        let forward = OffsetPoint::forward(100, 175).expect("in range");
        assert_eq!((forward.at_ns(), forward.offset_ns()), (100, 75));
        let backward = OffsetPoint::backward(200, 120).expect("in range");
        assert_eq!((backward.at_ns(), backward.offset_ns()), (120, 80));
    }

    #[test]
    fn times_out_of_range_are_refused() {
        for time in [i64::MIN, i64::MAX, MAX_TIME_NS + 1, -MAX_TIME_NS - 1] {
            let refused = Err(ClockError::TimeOutOfRange(time));
            assert_eq!(OffsetPoint::forward(time, 0), refused);
            assert_eq!(OffsetPoint::backward(time, 0), refused);
            assert_eq!(OffsetPoint::forward(0, time), refused);
        }
        let widest = OffsetPoint::forward(-MAX_TIME_NS, MAX_TIME_NS).expect("in range");
        assert_eq!(widest.swapped().swapped(), widest);
    }

    #[test]
    fn hosts_are_changed() {
        let mut points = PairPoints::default();
        points.add_forward(100, 175).expect("in range");
        points.add_backward(200, 120).expect("in range");
        let mut swapped = PairPoints::default();
        swapped.add_backward(100, 175).expect("in range");
        swapped.add_forward(200, 120).expect("in range");
        assert_eq!(points.swapped(), swapped);
    }
}
