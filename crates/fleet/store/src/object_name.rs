//! Names of objects, with the times of their segments.

use std::fmt;
use std::str::FromStr;

use luc_events::ring::{RingSegment, SegmentName};

const SUFFIX: &str = ".tar";
pub(crate) const NS_PER_MS: u64 = 1_000_000;

/// Name of a segment's object, without its folder: `segment-0001-000017.1764202652123-1764202662124.tar`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ObjectName {
    pub segment: SegmentName,
    /// Lower bound of the segment's rows, ms of CLOCK_REALTIME.
    pub begin_ms: u64,
    pub end_ms: u64,
}

impl ObjectName {
    /// Names a segment's object.
    #[must_use]
    pub fn of(segment: &RingSegment) -> Self {
        let [begin_ns, end_ns] = segment.real_ns();
        Self {
            segment: segment.name,
            begin_ms: begin_ns / NS_PER_MS,
            end_ms: end_ns.div_ceil(NS_PER_MS),
        }
    }

    /// Whether the segment may overlap `[from_ns, to_ns]` of CLOCK_REALTIME.
    #[must_use]
    pub fn is_within(&self, [from_ns, to_ns]: [u64; 2]) -> bool {
        self.begin_ms <= to_ns.div_ceil(NS_PER_MS) && from_ns / NS_PER_MS <= self.end_ms
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { segment, begin_ms, end_ms } = self;
        write!(f, "{segment}.{begin_ms}-{end_ms}{SUFFIX}")
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it names no segment")]
pub struct NotAnObject;

impl FromStr for ObjectName {
    type Err = NotAnObject;

    /// Parses only the text that [`fmt::Display`] writes: one object has one name.
    fn from_str(text: &str) -> Result<Self, NotAnObject> {
        let read = || {
            let (segment, times) = text.strip_suffix(SUFFIX)?.split_once('.')?;
            let (begin, end) = times.split_once('-')?;
            Some(Self {
                segment: segment.parse().ok()?,
                begin_ms: begin.parse().ok()?,
                end_ms: end.parse().ok()?,
            })
        };
        let name = read().ok_or(NotAnObject)?;
        let is_written_so = name.to_string() == text && name.begin_ms <= name.end_ms;
        is_written_so.then_some(name).ok_or(NotAnObject)
    }
}

#[cfg(test)]
mod tests {
    use luc_events::tables::TraceDescription;

    use super::*;

    const SEGMENT: SegmentName = SegmentName { run: 1, number: 17 };

    #[test]
    fn an_object_has_one_name() {
        let name =
            ObjectName { segment: SEGMENT, begin_ms: 1_764_202_652_123, end_ms: 1_764_202_662_124 };
        let text = "segment-0001-000017.1764202652123-1764202662124.tar";
        assert_eq!(name.to_string(), text);
        assert_eq!(text.parse(), Ok(name));
        for other in [
            "segment-0001-000017.tar",
            "segment-0001-000017.1-2",
            "segment-0001-000017.2-1.tar",
            "segment-0001-000017.01-2.tar",
            "segment-0001-000017.+1-2.tar",
            "segment-1-17.1-2.tar",
            "segment-0001-000017.1-99999999999999999999.tar",
            "../segment-0001-000017.1-2.tar",
            "",
        ] {
            assert_eq!(other.parse::<ObjectName>(), Err(NotAnObject), "{other}");
        }
    }

    #[test]
    fn times_are_rounded_outwards() {
        let segment = |start_ns, end_ns| RingSegment {
            name: SEGMENT,
            path: "ring/segment-0001-000017".into(),
            trace: TraceDescription {
                start_ns,
                end_ns,
                realtime_offset_ns: 5_000_000,
                ..TraceDescription::default()
            },
        };
        let name = ObjectName::of(&segment(1_999_999, 3_000_001));
        assert_eq!((name.begin_ms, name.end_ms), (6, 9));
        // A segment has no row outside of the time in its name.
        assert!(name.is_within([8_000_001, 8_000_001]));
        assert!(name.is_within([0, 6_999_999]));
        assert!(!name.is_within([0, 4_999_999]));
        assert!(!name.is_within([10_000_000, u64::MAX]));
        assert!(name.is_within([0, u64::MAX]));
    }
}
