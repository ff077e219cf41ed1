//! Transfers segments between hosts: as a tar stream of plain files, which the receiver does not trust.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use luc_events::ring::{self, RingSegment, SegmentName};
use luc_events::store::{StoreError, TraceReader};
use tar::{Archive, Builder, EntryType, Header};

use super::PullError;
use super::segment_files::{ReceivedAmount, files, newest_first};

/// Maximum amount that is taken from one host.
#[derive(Debug, Clone, Copy)]
pub struct StreamLimits {
    pub files: u64,
    /// Total size of the files.
    pub bytes: u64,
}

impl Default for StreamLimits {
    /// Limits that hold hours of a busy host.
    fn default() -> Self {
        Self { files: 20_000, bytes: 4 << 30 }
    }
}

/// Reason why a stream is refused.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    #[error("what it sends cannot be read ({0})")]
    Read(io::Error),
    #[error("what it sends cannot be written ({0})")]
    Write(io::Error),
    #[error("it sends something that is no plain file")]
    NotAFile,
    #[error("it sends a file that belongs to no segment: '{0}'")]
    NotOfSegment(String),
    #[error("it sends '{0}' twice")]
    Twice(String),
    #[error("it sends more than {} files or {} bytes: ask for a shorter window", .0.files, .0.bytes)]
    TooMuch(StreamLimits),
    #[error("it sends no segment")]
    Nothing,
    #[error("it sends a line that is no address: '{0}'")]
    NoAddress(String),
    #[error("it sends a segment that cannot be read ({0})")]
    Segment(StoreError),
}

/// Sends segments, the newest first.
///
/// # Errors
/// [`PullError`] if a segment cannot be read, or the stream not be written.
pub fn send(segments: &[RingSegment], out: impl Write) -> Result<ReceivedAmount, PullError> {
    let mut archive = Builder::new(out);
    let sent = newest_first(segments, |segment, sent| {
        // All files are opened first: an open file can be read after it was removed.
        let open = |path: PathBuf| {
            let file = File::open(&path).map_err(PullError::io(&path, "open it"))?;
            Ok((path, file))
        };
        let opened: Result<Vec<_>, PullError> =
            files(&segment.path)?.into_iter().map(open).collect();
        for (path, file) in opened? {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let send = || PullError::io(&path, "send it");
            let bytes = file.metadata().map_err(send())?.len();
            let mut header = Header::new_ustar();
            header.set_entry_type(EntryType::Regular);
            header.set_size(bytes);
            header.set_mode(0o600);
            let inside = format!("{}/{name}", segment.name);
            archive.append_data(&mut header, inside, file.take(bytes)).map_err(send())?;
            sent.files += 1;
            sent.bytes += bytes;
        }
        Ok(())
    })?;
    archive
        .into_inner()
        .and_then(|mut out| out.flush())
        .map_err(PullError::io(Path::new("-"), "write to it"))?;
    Ok(sent)
}

/// Receives segments into a directory. Only plain files that a segment can have are taken, each once.
///
/// # Errors
/// [`StreamError`]; the directory then has a part of the stream.
pub fn receive(
    stream: impl Read,
    into: &Path,
    limits: StreamLimits,
) -> Result<ReceivedAmount, StreamError> {
    let mut received = ReceivedAmount::default();
    let mut segments = BTreeSet::new();
    let mut archive = Archive::new(stream);
    // Raw: no long names, no attributes, nothing sparse.
    let entries = archive.entries().map_err(StreamError::Read)?.raw(true);
    for entry in entries {
        let mut entry = entry.map_err(StreamError::Read)?;
        let header = entry.header();
        if header.entry_type() != EntryType::Regular {
            return Err(StreamError::NotAFile);
        }
        let bytes = header.entry_size().map_err(StreamError::Read)?;
        let inside = String::from_utf8_lossy(&header.path_bytes()).into_owned();
        let Some((name, file)) = parse_path(&inside) else {
            return Err(StreamError::NotOfSegment(luc_units::plain(&inside)));
        };
        received.files += 1;
        received.bytes = received.bytes.saturating_add(bytes);
        if received.files > limits.files || received.bytes > limits.bytes {
            return Err(StreamError::TooMuch(limits));
        }
        let folder = into.join(name.to_string());
        if segments.insert(name) {
            fs::create_dir(&folder).map_err(StreamError::Write)?;
        }
        let mut out = match File::create_new(folder.join(file)) {
            Ok(out) => out,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                return Err(StreamError::Twice(inside));
            }
            Err(error) => return Err(StreamError::Write(error)),
        };
        let copied = io::copy(&mut entry, &mut out).map_err(copy_error)?;
        if copied != bytes {
            return Err(StreamError::Read(ErrorKind::UnexpectedEof.into()));
        }
    }
    if segments.is_empty() {
        return Err(StreamError::Nothing);
    }
    for name in &segments {
        TraceReader::open(&into.join(name.to_string())).map_err(StreamError::Segment)?;
    }
    received.segments = segments.len() as u64;
    Ok(received)
}

/// Reason why a copy failed: on this host, or at the other end, where no disk is full.
fn copy_error(error: io::Error) -> StreamError {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            StreamError::Write(error)
        }
        _ => StreamError::Read(error),
    }
}

/// Splits a path into segment and file name; `None`: no segment has a file of this name.
fn parse_path(path: &str) -> Option<(SegmentName, &str)> {
    let (folder, file) = path.split_once('/')?;
    let name = folder.parse().ok()?;
    ring::is_file_of_table(file).then_some((name, file))
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use luc_events::store::TraceWriter;
    use luc_events::tables::TraceDescription;

    use super::*;
    use crate::pull::keep_segments;
    use crate::time_window::WindowError;

    /// Creates a ring with two segments, and a stream of both.
    fn sent() -> (tempfile::TempDir, Vec<u8>) {
        let folder = tempfile::tempdir().expect("made");
        for number in [1, 2] {
            let name = SegmentName { run: 1, number }.to_string();
            let writer =
                TraceWriter::create(&folder.path().join(name), TraceDescription::default());
            let written = writer.and_then(|writer| writer.finish(TraceDescription::default()));
            written.expect("written");
        }
        let segments = ring::segments(folder.path()).expect("listed");
        let mut stream = Vec::new();
        send(&segments, &mut stream).expect("sent");
        (folder, stream)
    }

    fn received(stream: &[u8], limits: StreamLimits) -> Result<ReceivedAmount, StreamError> {
        let folder = tempfile::tempdir().expect("made");
        receive(stream, folder.path(), limits)
    }

    /// A stream with one entry, whose name is not looked at.
    fn one(kind: EntryType, name: &[u8], bytes: &[u8]) -> Vec<u8> {
        let mut header = Header::new_ustar();
        header.set_entry_type(kind);
        header.set_size(bytes.len() as u64);
        header.as_old_mut().name[..name.len()].copy_from_slice(name);
        header.set_cksum();
        let mut archive = Builder::new(Vec::new());
        archive.append(&header, bytes).expect("made");
        archive.into_inner().expect("made")
    }

    const FILE: &[u8] = b"segment-0001-000001/trace-000001-000001.parquet";

    #[test]
    fn segments_arrive_as_they_were() {
        let (ring, stream) = sent();
        let folder = tempfile::tempdir().expect("made");
        let received =
            receive(&stream[..], folder.path(), StreamLimits::default()).expect("received");
        assert_eq!((received.segments, received.files), (2, 2));
        for segment in ring::segments(folder.path()).expect("listed") {
            let name = segment.name.to_string();
            for file in files(&segment.path).expect("listed") {
                let before = ring.path().join(&name).join(file.file_name().expect("a name"));
                assert_eq!(fs::read(file).expect("read"), fs::read(before).expect("read"));
            }
        }
    }

    #[test]
    fn what_the_recorder_removes_is_left_out_with_all_before() {
        let (ring, _) = sent();
        let segments = ring::segments(ring.path()).expect("listed");
        fs::remove_dir_all(&segments[0].path).expect("removed");
        let (mut stream, mut looked) = (Vec::new(), 0);
        let copy = ring.path().join("copy");
        fs::create_dir(&copy).expect("made");
        let copied = keep_segments::copy(&segments, &copy, &mut |_| {
            looked += 1;
            ControlFlow::Continue(())
        });
        for taken in [send(&segments, &mut stream), copied] {
            let taken = taken.expect("one of two");
            assert_eq!((taken.segments, taken.gone, taken.files), (1, 1, 1));
        }
        assert_eq!(looked, 1);
        let sent = received(&stream, StreamLimits::default()).expect("received");
        assert_eq!((sent.segments, sent.files), (1, 1));
        let names = ring::names(&copy).expect("listed");
        assert_eq!(names, [segments[1].name]);
        fs::remove_dir_all(&segments[1].path).expect("removed");
        let none = send(&segments, Vec::new());
        assert!(matches!(none, Err(PullError::Window(WindowError::GoesOn { .. }))), "{none:?}");
    }

    #[test]
    fn a_copy_is_interrupted_between_files() {
        let (ring, _) = sent();
        let segments = ring::segments(ring.path()).expect("listed");
        let copy = ring.path().join("copy");
        fs::create_dir(&copy).expect("made");
        let copied = keep_segments::copy(&segments, &copy, &mut |_| ControlFlow::Break(()));
        assert!(matches!(copied, Err(PullError::Interrupted)), "{copied:?}");
    }

    #[test]
    fn only_plain_files_of_segments_are_taken() {
        for name in [
            &b"../segment-0001-000001/trace-000001-000001.parquet"[..],
            b"/segment-0001-000001/trace-000001-000001.parquet",
            b"segment-0001-000001/../trace-000001-000001.parquet",
            b"segment-0001-000001/trace-000001-000001.parquet/a",
            b"segment-0001-000001/.bashrc",
            b"segment-0001-000001/secrets-000001-000001.parquet",
            b"segment-1-1/trace-000001-000001.parquet",
            b"trace-000001-000001.parquet",
            b"\xff",
        ] {
            let refused = received(&one(EntryType::Regular, name, b""), StreamLimits::default());
            assert!(matches!(refused, Err(StreamError::NotOfSegment(_))), "{refused:?}");
        }
        for kind in [
            EntryType::Symlink,
            EntryType::Link,
            EntryType::Directory,
            EntryType::Fifo,
            EntryType::Char,
            EntryType::GNULongName,
            EntryType::XHeader,
            EntryType::XGlobalHeader,
            EntryType::GNUSparse,
        ] {
            let refused = received(&one(kind, FILE, b""), StreamLimits::default());
            assert!(matches!(refused, Err(StreamError::NotAFile)), "{kind:?} {refused:?}");
        }
    }

    #[test]
    fn a_stream_has_bounds() {
        let (_ring, stream) = sent();
        for limits in
            [StreamLimits { files: 1, bytes: 1 << 20 }, StreamLimits { files: 9, bytes: 100 }]
        {
            let refused = received(&stream, limits);
            assert!(matches!(refused, Err(StreamError::TooMuch(_))), "{refused:?}");
        }
        let mut huge = one(EntryType::Regular, FILE, b"");
        huge[124..135].copy_from_slice(b"77777777777");
        let mut header = Header::new_ustar();
        header.as_mut_bytes().copy_from_slice(&huge[..512]);
        header.set_cksum();
        huge[..512].copy_from_slice(header.as_bytes());
        let refused = received(&huge, StreamLimits::default());
        assert!(matches!(refused, Err(StreamError::TooMuch(_))), "{refused:?}");
    }

    #[test]
    fn what_is_torn_twice_or_empty_is_refused() {
        let (_ring, stream) = sent();
        let torn = received(&stream[..700], StreamLimits::default());
        assert!(matches!(torn, Err(StreamError::Read(_))), "{torn:?}");
        let twice: Vec<u8> = [&stream[..stream.len() - 1024], &stream].concat();
        let twice = received(&twice, StreamLimits::default());
        assert!(matches!(twice, Err(StreamError::Twice(_))), "{twice:?}");
        assert!(matches!(received(&[0; 1024], StreamLimits::default()), Err(StreamError::Nothing)));
        assert!(matches!(received(&[], StreamLimits::default()), Err(StreamError::Nothing)));
        let noise = one(EntryType::Regular, FILE, b"no Parquet");
        let noise = received(&noise, StreamLimits::default());
        assert!(matches!(noise, Err(StreamError::Segment(_))), "{noise:?}");
    }
}
