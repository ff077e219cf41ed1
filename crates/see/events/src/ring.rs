//! A ring: a directory with consecutive traces of the last minutes.
//!
//! # Layout
//!
//! `segment-<run>-<number>` is a separate trace ([`crate::store`]) of some seconds. A run is one recorder's. Its
//! segments are numbered from 1, and each begins at the end of the one before. The first rows of a segment repeat the
//! last state of the one before, such as the living threads. Connections and stacks have one number in all segments
//! of a run.
//!
//! A segment is written under a hidden name, and renamed when it is complete. The next recorder removes what a killed
//! one left under a hidden name. A recorder locks the file `.lock` (flock). Nothing is synced to disk, as with traces.
//!
//! `kept` holds segments that do not expire, in a directory for each occasion.

mod ring_keeper;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::store::{StoreError, TraceReader, is_of_table};
use crate::tables::TraceDescription;

pub use ring_keeper::{OpenSegment, RingKeeper, RingLimits};

/// Name of the ring's directory for kept segments.
pub const KEPT: &str = "kept";

/// Name of a segment: its recorder and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentName {
    /// Number of the recorder, from 1.
    pub run: u32,
    /// Number of the segment, from 1.
    pub number: u32,
}

impl fmt::Display for SegmentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "segment-{:04}-{:06}", self.run, self.number)
    }
}

/// Text that names no segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it names no segment")]
pub struct NotASegmentName;

impl FromStr for SegmentName {
    type Err = NotASegmentName;

    /// Accepts only the form in which [`SegmentName`] is written: a segment has one name.
    fn from_str(text: &str) -> Result<Self, NotASegmentName> {
        let numbers = text.strip_prefix("segment-").ok_or(NotASegmentName)?;
        let (run, number) = numbers.split_once('-').ok_or(NotASegmentName)?;
        let name = Self {
            run: run.parse().map_err(|_| NotASegmentName)?,
            number: number.parse().map_err(|_| NotASegmentName)?,
        };
        (name.to_string() == text).then_some(name).ok_or(NotASegmentName)
    }
}

/// A segment that is complete.
#[derive(Clone, Debug)]
pub struct RingSegment {
    /// Name of the segment.
    pub name: SegmentName,
    /// Directory of the segment.
    pub path: PathBuf,
    /// Description of the trace.
    pub trace: TraceDescription,
}

impl RingSegment {
    /// Returns its begin and end, nanoseconds of CLOCK_REALTIME as it was when the segment began.
    #[must_use]
    pub fn real_ns(&self) -> [u64; 2] {
        let trace = &self.trace;
        [trace.start_ns, trace.end_ns.max(trace.start_ns)]
            .map(|at_ns| at_ns.saturating_add(trace.realtime_offset_ns))
    }
}

/// Returns the names of the complete segments in a directory, in order; none if it is no ring.
///
/// # Errors
/// When the directory cannot be listed.
pub fn names(directory: &Path) -> Result<Vec<SegmentName>, StoreError> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory).map_err(StoreError::io(directory, "list it"))? {
        let entry = entry.map_err(StoreError::io(directory, "list it"))?;
        if let Some(name) = entry.file_name().to_str().and_then(|name| name.parse().ok()) {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// Returns whether a file of this name can be in a segment.
#[must_use]
pub fn is_file_of_table(name: &str) -> bool {
    is_of_table(name)
}

/// Returns the complete segments in a directory, in order. Segments that the recorder removes meanwhile are left out.
///
/// # Errors
/// When the directory cannot be listed, or a segment's description cannot be read.
pub fn segments(directory: &Path) -> Result<Vec<RingSegment>, StoreError> {
    let mut segments = Vec::new();
    for name in names(directory)? {
        let path = directory.join(name.to_string());
        match TraceReader::open(&path) {
            Ok(reader) => segments.push(RingSegment { name, trace: reader.trace().clone(), path }),
            Err(_) if !path.exists() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(segments)
}

/// Returns the segments of the last run that has any in `[from_ns, to_ns]` of CLOCK_REALTIME. Segments of several
/// recorders are not one recording: connections are numbered anew by each.
#[must_use]
pub fn within(segments: Vec<RingSegment>, [from_ns, to_ns]: [u64; 2]) -> Vec<RingSegment> {
    let overlaps = |segment: &RingSegment| {
        let [begin_ns, end_ns] = segment.real_ns();
        begin_ns <= to_ns && from_ns <= end_ns
    };
    let mut chosen: Vec<RingSegment> = segments.into_iter().filter(overlaps).collect();
    let last = chosen.iter().map(|segment| segment.name.run).max();
    chosen.retain(|segment| Some(segment.name.run) == last);
    chosen
}

/// Opens segments of a run, in order, as one trace. It lasts from the begin of the first to the end of the last. The
/// rows at a segment's begin and end repeat in the segments beside it. Returns `None` without a segment.
#[must_use]
pub fn as_one(segments: &[RingSegment]) -> Option<TraceReader> {
    let (first, last) = (segments.first()?, segments.last()?);
    let trace = TraceDescription {
        at_ns: last.trace.at_ns,
        end_ns: last.trace.end_ns,
        ..first.trace.clone()
    };
    let directories = segments.iter().map(|one| one.path.clone()).collect();
    Some(TraceReader::of_parts(directories, trace))
}

/// Returns the first of a run's segments, in order, whose successor is missing.
#[must_use]
pub fn before_gap(segments: &[RingSegment]) -> Option<&RingSegment> {
    let mut pairs = segments.windows(2);
    let is_gap =
        |pair: &&[RingSegment]| pair[1].name.number != pair[0].name.number.saturating_add(1);
    pairs.find(is_gap).map(|pair| &pair[0])
}

/// Opens a trace, or the segments of a ring's last run as one trace.
///
/// # Errors
/// When it is neither, or cannot be read, or lacks a segment in its middle.
pub fn open(directory: &Path) -> Result<TraceReader, StoreError> {
    // What cannot be listed is no ring.
    while names(directory).is_ok_and(|names| !names.is_empty()) {
        let run = within(segments(directory)?, [0, u64::MAX]);
        match before_gap(&run) {
            // The recorder removes the oldest first: those before the gap are gone by now.
            Some(before) if !before.path.exists() => continue,
            Some(before) => {
                return Err(StoreError::MissingInRing {
                    path: directory.to_path_buf(),
                    number: before.name.number.saturating_add(1),
                });
            }
            None => {}
        }
        if let Some(reader) = as_one(&run) {
            return Ok(reader);
        }
    }
    TraceReader::open(directory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::TraceWriter;

    #[test]
    fn a_segment_has_one_name() {
        let name = SegmentName { run: 3, number: 17 };
        assert_eq!(name.to_string(), "segment-0003-000017");
        assert_eq!("segment-0003-000017".parse(), Ok(name));
        let large = SegmentName { run: 12_345, number: u32::MAX };
        assert_eq!(large.to_string().parse(), Ok(large));
        for text in [
            "segment-3-17",
            "segment-0003-000017/..",
            ".segment-0003-000017",
            "segment-0003-+00017",
            "segment-0003-99999999999",
            "segment-0003",
        ] {
            assert_eq!(text.parse::<SegmentName>(), Err(NotASegmentName), "{text}");
        }
    }

    #[test]
    fn a_ring_is_opened_as_one_trace_unless_its_middle_is_missing() {
        let folder = tempfile::tempdir().expect("made");
        let path = |number| {
            let name = SegmentName { run: 1, number };
            folder.path().join(name.to_string())
        };
        for number in 1..=4 {
            let trace = TraceDescription {
                start_ns: u64::from(number) * 10,
                end_ns: u64::from(number) * 10 + 10,
                ..TraceDescription::default()
            };
            let writer = TraceWriter::create(&path(number), trace.clone()).expect("created");
            writer.finish(trace).expect("written");
        }
        let span = || {
            let reader = open(folder.path())?;
            Ok::<_, StoreError>((reader.trace().start_ns, reader.trace().end_ns))
        };
        assert_eq!(span().expect("a ring"), (10, 50));
        fs::remove_dir_all(path(1)).expect("the oldest goes first");
        assert_eq!(span().expect("a ring"), (20, 50));
        fs::remove_dir_all(path(3)).expect("removed");
        let error = span().expect_err("a gap");
        assert!(matches!(error, StoreError::MissingInRing { number: 3, .. }), "{error}");
        let alone = open(&path(4)).expect("a segment is a trace");
        assert_eq!(alone.trace().start_ns, 40);
    }

    #[test]
    fn a_window_is_of_one_run() {
        let segment = |run, number, begin_s: u64| RingSegment {
            name: SegmentName { run, number },
            path: PathBuf::new(),
            trace: TraceDescription {
                start_ns: begin_s * 1_000_000_000,
                end_ns: (begin_s + 10) * 1_000_000_000,
                realtime_offset_ns: 5,
                ..TraceDescription::default()
            },
        };
        let all =
            || vec![segment(1, 8, 0), segment(1, 9, 10), segment(2, 1, 30), segment(2, 2, 40)];
        let chosen = |from_ns, to_ns| -> Vec<(u32, u32)> {
            let chosen = within(all(), [from_ns, to_ns]);
            chosen.iter().map(|one| (one.name.run, one.name.number)).collect()
        };
        assert_eq!(chosen(0, u64::MAX), [(2, 1), (2, 2)]);
        assert_eq!(chosen(0, 25_000_000_000), [(1, 8), (1, 9)]);
        assert_eq!(chosen(10_000_000_006, 25_000_000_000), [(1, 9)]);
        assert_eq!(chosen(10_000_000_005, 10_000_000_005), [(1, 8), (1, 9)]);
        assert!(chosen(21_000_000_000, 29_000_000_000).is_empty());
    }
}
