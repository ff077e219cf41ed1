//! Of which time segments of a ring are wanted.

use std::path::Path;

use luc_events::ring::{self, Segment};
use luc_events::store::Reader;

use crate::error::FleetError;
use crate::moment::Moment;

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
    if directory.is_dir() && !ring::names(directory)?.is_empty() {
        let segments = segments(directory, window.unwrap_or(Window::ALL))?;
        if let Some(reader) = ring::as_one(&segments) {
            return Ok(reader);
        }
    }
    match window {
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
    fn a_window_lies_around_its_time() {
        let window = Window::around(Moment(100), 50);
        assert_eq!((window.from, window.to), (Moment(75), Moment(125)));
        let window = window.wider(80);
        assert_eq!((window.from, window.to), (Moment(0), Moment(205)));
    }
}
