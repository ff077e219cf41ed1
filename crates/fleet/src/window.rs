//! Of which time segments of a ring are wanted.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use chrono::DateTime;
use luc_events::ring::{self, Segment};
use luc_events::store::Reader;

use crate::error::FleetError;

/// A time of CLOCK_REALTIME, as clocks on walls and logs have it, nanoseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub u64);

impl FromStr for Moment {
    type Err = FleetError;

    /// A date and time with its distance from UTC (RFC 3339; a space may stand for the T, a comma for the point), or
    /// seconds since 1970.
    fn from_str(text: &str) -> Result<Self, FleetError> {
        let plain = text.replacen(',', ".", 1);
        let of_date = || {
            let nanoseconds = DateTime::parse_from_rfc3339(&plain)
                .ok()?
                .timestamp_nanos_opt()?;
            u64::try_from(nanoseconds).ok()
        };
        let moment = seconds(&plain).or_else(of_date).map(Self);
        moment.ok_or_else(|| FleetError::NoMoment(text.to_owned()))
    }
}

/// Decimal seconds as nanoseconds.
fn seconds(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|one| one.is_ascii_digit());
    if !are_digits(whole) || !are_digits(fraction) || fraction.len() > 9 {
        return None;
    }
    let nanoseconds: u64 = format!("{fraction:0<9}").parse().ok()?;
    let whole: u64 = whole.parse().ok()?;
    whole.checked_mul(1_000_000_000)?.checked_add(nanoseconds)
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match i64::try_from(self.0) {
            Ok(nanoseconds) => write!(f, "{:?}", DateTime::from_timestamp_nanos(nanoseconds)),
            Err(_) => write!(f, "{} ns", self.0),
        }
    }
}

/// A span of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Its begin.
    pub from: Moment,
    /// Its end.
    pub to: Moment,
}

impl Window {
    /// All of a ring.
    pub const ALL: Self = Self {
        from: Moment(0),
        to: Moment(u64::MAX),
    };

    /// So long, with a time in its middle.
    #[must_use]
    pub fn around(moment: Moment, span_ns: u64) -> Self {
        let half_ns = span_ns / 2;
        Self {
            from: Moment(moment.0.saturating_sub(half_ns)),
            to: Moment(moment.0.saturating_add(half_ns)),
        }
    }

    /// The same and some more on either side.
    #[must_use]
    pub fn wider(self, by_ns: u64) -> Self {
        Self {
            from: Moment(self.from.0.saturating_sub(by_ns)),
            to: Moment(self.to.0.saturating_add(by_ns)),
        }
    }
}

/// The segments of a ring that have something of the window: one after the other, of one recorder.
///
/// # Errors
/// [`FleetError::NotInRing`], [`FleetError::SegmentMissing`]; when they cannot be read.
pub fn segments(directory: &Path, window: Window) -> Result<Vec<Segment>, FleetError> {
    let all = ring::segments(directory)?;
    let has = match (all.first(), all.last()) {
        (Some(first), Some(last)) => [first.real_ns()[0], last.real_ns()[1]].map(Moment),
        _ => [Moment(0); 2],
    };
    let chosen = ring::within(all, [window.from.0, window.to.0]);
    if chosen.is_empty() {
        return Err(FleetError::NotInRing {
            path: directory.to_path_buf(),
            from: has[0],
            to: has[1],
        });
    }
    for pair in chosen.windows(2) {
        let next = pair[0].name.number.saturating_add(1);
        if pair[1].name.number != next {
            return Err(FleetError::SegmentMissing {
                path: directory.to_path_buf(),
                number: next,
            });
        }
    }
    Ok(chosen)
}

/// Opens a trace, or of a ring what has something of the window as one trace.
pub(crate) fn open(directory: &Path, window: Option<Window>) -> Result<Reader, FleetError> {
    let is_ring = directory.is_dir() && !ring::names(directory)?.is_empty();
    match window {
        _ if is_ring => {
            let segments = segments(directory, window.unwrap_or(Window::ALL))?;
            Ok(Reader::of_segments(&segments)?)
        }
        Some(_) => Err(FleetError::NoRing {
            path: directory.to_path_buf(),
        }),
        None => Ok(Reader::open(directory)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_logs() {
        let read = |text: &str| text.parse::<Moment>().map(|moment| moment.0).ok();
        assert_eq!(read("1700000000"), Some(1_700_000_000_000_000_000));
        assert_eq!(read("1700000000.25"), Some(1_700_000_000_250_000_000));
        for text in [
            "2023-11-14T22:13:20.25Z",
            "2023-11-14 22:13:20,250Z",
            "2023-11-15T00:13:20.250+02:00",
        ] {
            assert_eq!(read(text), Some(1_700_000_000_250_000_000), "{text}");
        }
        for text in [
            "2023-11-14T22:13:20",
            "22:13",
            "-1",
            "1.",
            "99999999999999",
            "1969-01-01T00:00:00Z",
            "",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
        let moment = Moment(1_700_000_000_250_000_000);
        assert_eq!(moment.to_string(), "2023-11-14T22:13:20.250Z");
    }

    #[test]
    fn a_window_lies_around_its_time() {
        let window = Window::around(Moment(100), 50);
        assert_eq!((window.from, window.to), (Moment(75), Moment(125)));
        let window = window.wider(80);
        assert_eq!((window.from, window.to), (Moment(0), Moment(205)));
    }
}
