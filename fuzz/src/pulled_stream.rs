//! Bytes that another host sends in place of segments.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use luc_events::ring::{self, SegmentName, RingSegment};
use luc_events::store::TraceWriter;
use luc_events::tables::TraceDescription;
use luc_fleet_rings::{StreamLimits, receive, send};

/// Few enough that an input reaches them.
const LIMITS: StreamLimits = StreamLimits { files: 3, bytes: 20_000 };

/// A stream of two segments.
fn stream() -> &'static [u8] {
    static STREAM: OnceLock<Vec<u8>> = OnceLock::new();
    STREAM.get_or_init(|| {
        let folder = tempfile::tempdir().expect("made");
        for number in [1, 2] {
            let path = folder.path().join(SegmentName { run: 1, number }.to_string());
            let writer = TraceWriter::create(&path, TraceDescription::default()).expect("begun");
            writer.finish(TraceDescription::default()).expect("written");
        }
        let segments: Vec<RingSegment> = ring::segments(folder.path()).expect("listed");
        let mut stream = Vec::new();
        send(&segments, &mut stream).expect("sent");
        stream
    })
}

/// Takes a stream that is changed at some places, or the data itself: no panic, nothing but files of segments in the
/// directory, not more than allowed, and nothing beside it.
pub fn pulled(data: &[u8]) {
    let mut changed = stream().to_vec();
    for change in data.chunks_exact(4) {
        let [low, high, kind, value] = [change[0], change[1], change[2], change[3]];
        let place = usize::from(u16::from_le_bytes([low, high])) % changed.len().max(1);
        match kind % 4 {
            0 => changed.truncate(place),
            1 => changed.extend_from_within(place..),
            _ => {
                if let Some(byte) = changed.get_mut(place) {
                    *byte = value;
                }
            }
        }
    }
    for stream in [&changed[..], data] {
        let folder = tempfile::tempdir().expect("made");
        let into = folder.path().join("into");
        fs::create_dir(&into).expect("made");
        let received = receive(stream, &into, LIMITS);
        let (files, bytes) = taken(&into);
        assert!(files <= LIMITS.files && bytes <= LIMITS.bytes, "{received:?}");
        assert_eq!(fs::read_dir(folder.path()).expect("listed").count(), 1);
        if let Ok(received) = received {
            assert_eq!((received.files, received.bytes), (files, bytes));
        }
    }
}

/// The files in the segments of a directory, and their bytes.
fn taken(directory: &Path) -> (u64, u64) {
    let mut all = (0, 0);
    for segment in fs::read_dir(directory).expect("listed").flatten() {
        let name = segment.file_name();
        let name = name.to_str().expect("plain");
        name.parse::<SegmentName>().expect("a segment");
        for file in fs::read_dir(segment.path()).expect("listed").flatten() {
            let name = file.file_name();
            assert!(ring::is_file_of_table(name.to_str().expect("plain")));
            let metadata = file.metadata().expect("there");
            assert!(metadata.is_file());
            all.0 += 1;
            all.1 += metadata.len();
        }
    }
    all
}
