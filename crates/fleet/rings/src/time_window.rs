//! Windows of time, and the segments that overlap them.

use std::path::{Path, PathBuf};

use luc_events::ring::{self, RingSegment};
use luc_events::store::{StoreError, TraceReader};

use crate::log_time::LogTime;

/// Maximum number of times that a ring is read if segments disappear meanwhile.
const MAX_READS: u32 = 5;

/// A span of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeWindow {
    pub from: LogTime,
    pub to: LogTime,
}

impl TimeWindow {
    pub const ALL: Self = Self { from: LogTime(0), to: LogTime(u64::MAX) };

    /// Window of length `span_ns` around a time.
    #[must_use]
    pub fn around(moment: LogTime, span_ns: u64) -> Self {
        let half_ns = span_ns / 2;
        Self {
            from: LogTime(moment.0.saturating_sub(half_ns)),
            to: LogTime(moment.0.saturating_add(half_ns)),
        }
    }

    /// Window of length `span_ns` around a time if that is given. Otherwise from one time to another, where either may
    /// be missing; `None`: none is given.
    #[must_use]
    pub fn asked(
        from: Option<LogTime>,
        to: Option<LogTime>,
        around: Option<LogTime>,
        span_ns: u64,
    ) -> Option<Self> {
        if let Some(moment) = around {
            return Some(Self::around(moment, span_ns));
        }
        (from.is_some() || to.is_some())
            .then(|| Self { from: from.unwrap_or(Self::ALL.from), to: to.unwrap_or(Self::ALL.to) })
    }

    /// Widens the window on either side.
    #[must_use]
    pub fn wider(self, by_ns: u64) -> Self {
        Self {
            from: LogTime(self.from.0.saturating_sub(by_ns)),
            to: LogTime(self.to.0.saturating_add(by_ns)),
        }
    }

    /// Begin and end as seconds since 1970, for a command line.
    pub(crate) fn seconds(self) -> [String; 2] {
        [self.from, self.to]
            .map(|moment| format!("{}.{:09}", moment.0 / 1_000_000_000, moment.0 % 1_000_000_000))
    }
}

/// Reason why no window is read of a trace or a ring.
#[derive(Debug, thiserror::Error)]
pub enum WindowError {
    #[error(transparent)]
    Trace(#[from] StoreError),
    #[error("{path}: this is one trace, and no ring; leave out the window", path = .path.display())]
    NoRing { path: PathBuf },
    #[error("{path}: nothing of this window is here; what is here is from {from} to {to}", path = .path.display())]
    NotInRing {
        path: PathBuf,
        /// Begin of its first segment.
        from: LogTime,
        /// End of its last segment.
        to: LogTime,
    },
    #[error("the window begins at {from} and ends before that, at {to}; exchange --from and --to")]
    Reversed { from: LogTime, to: LogTime },
    #[error("{path}: its recorder removes segments faster than they are read; give a later window, or keep it first: luc fleet freeze {path}", path = .path.display())]
    GoesOn { path: PathBuf },
    #[error("{path}: segment {number} is missing in the middle; pull the window again, or give a part of it", path = .path.display())]
    SegmentMissing { path: PathBuf, number: u32 },
}

/// Finds the segments of a ring that overlap the window: consecutive ones, of one recorder.
///
/// # Errors
/// [`WindowError::NotInRing`], [`WindowError::Reversed`], [`WindowError::SegmentMissing`], [`WindowError::Trace`].
pub fn segments(directory: &Path, window: TimeWindow) -> Result<Vec<RingSegment>, WindowError> {
    loop {
        let segments = list_overlapping(directory, window)?;
        match ring::before_gap(&segments) {
            None => return Ok(segments),
            // The oldest go first: those before the gap have gone by now.
            Some(before) if !before.path.exists() => {}
            Some(before) => {
                return Err(WindowError::SegmentMissing {
                    path: directory.to_path_buf(),
                    number: before.name.number.saturating_add(1),
                });
            }
        }
    }
}

/// Like [`segments`], but segments in the middle may be missing.
fn list_overlapping(directory: &Path, window: TimeWindow) -> Result<Vec<RingSegment>, WindowError> {
    if window.from.0 > window.to.0 {
        return Err(WindowError::Reversed { from: window.from, to: window.to });
    }
    let all = ring::segments(directory)?;
    let [from, to] = match (all.first(), all.last()) {
        (Some(first), Some(last)) => [first.real_ns()[0], last.real_ns()[1]].map(LogTime),
        _ => [LogTime(0); 2],
    };
    let chosen = ring::within(all, [window.from.0, window.to.0]);
    if chosen.is_empty() {
        return Err(WindowError::NotInRing { path: directory.to_path_buf(), from, to });
    }
    Ok(chosen)
}

/// Reads a trace, or the segments of a ring that overlap the window as one trace. Reads again what is left if the
/// ring's recorder removes segments meanwhile.
///
/// # Errors
/// As [`segments`]; [`WindowError::NoRing`], [`WindowError::GoesOn`]; errors of `read`.
pub fn read<T, E: From<WindowError>>(
    directory: &Path,
    window: Option<TimeWindow>,
    mut read: impl FnMut(&TraceReader) -> Result<T, E>,
) -> Result<T, E> {
    for _ in 0..MAX_READS {
        let reader = open(directory, window)?;
        match read(&reader) {
            Err(_) if reader.is_gone() => {}
            read => return read,
        }
    }
    Err(WindowError::GoesOn { path: directory.to_path_buf() }.into())
}

fn open(directory: &Path, window: Option<TimeWindow>) -> Result<TraceReader, WindowError> {
    if directory.is_dir() && !ring::names(directory)?.is_empty() {
        let segments = segments(directory, window.unwrap_or(TimeWindow::ALL))?;
        if let Some(reader) = ring::as_one(&segments) {
            return Ok(reader);
        }
    }
    match window {
        Some(_) => Err(WindowError::NoRing { path: directory.to_path_buf() }),
        None => Ok(TraceReader::open(directory)?),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use luc_events::ring::SegmentName;
    use luc_events::store::TraceWriter;
    use luc_events::tables::{ClockSample, TraceDescription};

    use super::*;

    /// A ring of three segments, of 10 ns each.
    fn ring() -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("made");
        for number in 1..=3 {
            let path = folder.path().join(SegmentName { run: 1, number }.to_string());
            let trace = TraceDescription {
                start_ns: u64::from(number) * 10,
                end_ns: u64::from(number) * 10 + 10,
                ..TraceDescription::default()
            };
            let writer = TraceWriter::create(&path, trace.clone());
            writer
                .and_then(|mut writer| {
                    writer.add(ClockSample::default())?;
                    writer.finish(trace)
                })
                .expect("written");
        }
        folder
    }

    #[test]
    fn a_ring_that_goes_on_is_read_again() {
        let ring = ring();
        let mut oldest = 1..;
        let mut begin = |removed: usize| {
            let mut gone = oldest.by_ref().take(removed);
            read(ring.path(), None, |reader| {
                if let Some(number) = gone.next() {
                    let path = ring.path().join(SegmentName { run: 1, number }.to_string());
                    fs::remove_dir_all(path).expect("removed");
                }
                reader.rows::<ClockSample>()?;
                Ok::<_, WindowError>(reader.trace().start_ns)
            })
        };
        assert_eq!(begin(0).expect("read"), 10);
        assert_eq!(begin(2).expect("read"), 30);
        assert!(matches!(begin(1), Err(WindowError::Trace(_))));
    }

    #[test]
    fn a_window_that_ends_before_it_begins_is_refused() {
        let window = TimeWindow { from: LogTime(25), to: LogTime(15) };
        let refused = segments(ring().path(), window);
        assert!(matches!(refused, Err(WindowError::Reversed { .. })), "{refused:?}");
    }

    #[test]
    fn a_window_lies_around_its_time() {
        let window = TimeWindow::around(LogTime(100), 50);
        assert_eq!((window.from, window.to), (LogTime(75), LogTime(125)));
        let window = window.wider(80);
        assert_eq!((window.from, window.to), (LogTime(0), LogTime(205)));
    }

    #[test]
    fn a_window_is_asked_for_by_its_ends_or_its_middle() {
        let asked = |from: Option<u64>, to: Option<u64>, around: Option<u64>| {
            let [from, to, around] = [from, to, around].map(|at_ns| at_ns.map(LogTime));
            let window = TimeWindow::asked(from, to, around, 50)?;
            Some([window.from.0, window.to.0])
        };
        assert_eq!(asked(None, None, None), None);
        assert_eq!(asked(Some(7), None, None), Some([7, u64::MAX]));
        assert_eq!(asked(None, Some(9), None), Some([0, 9]));
        assert_eq!(asked(Some(7), Some(9), None), Some([7, 9]));
        assert_eq!(asked(None, None, Some(100)), Some([75, 125]));
    }
}
