//! Streams one host's segments of a time window from an object store.

use std::fs::File;
use std::io::{self, Seek as _, SeekFrom, Write};

use futures::TryStreamExt as _;
use luc_fleet_rings::TimeWindow;
use tar::{Archive, Builder, EntryType};
use tokio::io::AsyncWriteExt as _;

use crate::error::StoredError;
use crate::object_name::ObjectName;
use crate::store::ObjectStoreFolder;

/// Writes the segments that overlap the window as a tar stream, the newest first. Only the form is checked here; the
/// reader checks the content.
///
/// # Errors
/// [`StoredError`]; a part may have been written.
pub async fn window(
    store: &ObjectStoreFolder,
    window: TimeWindow,
    out: impl Write,
) -> Result<(), StoredError> {
    let chosen = select(store, store.segments().await?, window)?;
    let mut archive = Builder::new(out);
    for name in chosen.into_iter().rev() {
        let file = fetch(store, name).await?;
        add(&mut archive, file).map_err(|error| match error {
            CopyError::Read(reason) => StoredError::NotASegment {
                url: store.to_string(),
                object: name.to_string(),
                reason,
            },
            CopyError::Write(error) => StoredError::Output(error),
        })?;
    }
    archive.into_inner().and_then(|mut out| out.flush()).map_err(StoredError::Output)
}

/// Selects the segments of the last recording that overlaps the window, in order.
fn select(
    store: &ObjectStoreFolder,
    all: Vec<ObjectName>,
    window: TimeWindow,
) -> Result<Vec<ObjectName>, StoredError> {
    let url = || store.to_string();
    let mut chosen: Vec<ObjectName> =
        all.into_iter().filter(|name| name.is_within([window.from.0, window.to.0])).collect();
    let Some(last) = chosen.iter().max_by_key(|name| name.begin_ms).copied() else {
        return Err(StoredError::Nothing { url: url() });
    };
    // Each recording numbers its connections anew.
    chosen.retain(|name| name.segment.run == last.segment.run);
    chosen.sort_by_key(|name| name.segment);
    for (name, next) in chosen.iter().zip(chosen.iter().skip(1)) {
        let expected = name.segment.number.saturating_add(1);
        if next.segment == name.segment {
            return Err(StoredError::Twice { url: url(), segment: name.segment.to_string() });
        }
        if next.segment.number != expected {
            return Err(StoredError::Missing { url: url(), number: expected });
        }
    }
    Ok(chosen)
}

/// Downloads an object into a private file.
async fn fetch(store: &ObjectStoreFolder, name: ObjectName) -> Result<File, StoredError> {
    let file = tempfile::tempfile().map_err(StoredError::Temporary)?;
    let mut file = tokio::fs::File::from_std(file);
    let mut bytes = store.get(name).await?.into_stream();
    while let Some(some) = bytes.try_next().await.map_err(|error| store.refused(&error))? {
        file.write_all(&some).await.map_err(StoredError::Temporary)?;
    }
    file.flush().await.map_err(StoredError::Temporary)?;
    let mut file = file.into_std().await;
    file.seek(SeekFrom::Start(0)).map_err(StoredError::Temporary)?;
    Ok(file)
}

/// Reason why an object was not added to a stream.
#[derive(Debug)]
enum CopyError {
    Read(io::Error),
    Write(io::Error),
}

/// Adds the files of a tar file to a stream.
fn add<W: Write>(stream: &mut Builder<W>, file: File) -> Result<(), CopyError> {
    let mut archive = Archive::new(file);
    let entries = archive.entries().map_err(CopyError::Read)?.raw(true);
    let mut files = 0;
    for entry in entries {
        let entry = entry.map_err(CopyError::Read)?;
        let header = entry.header().clone();
        if header.entry_type() != EntryType::Regular {
            let reason = io::Error::other("it has something that is no plain file");
            return Err(CopyError::Read(reason));
        }
        let bytes = header.entry_size().map_err(CopyError::Read)?;
        let mut counted = CountingReader { inner: entry, bytes: 0 };
        stream.append(&header, &mut counted).map_err(CopyError::Write)?;
        if counted.bytes != bytes {
            return Err(CopyError::Read(io::ErrorKind::UnexpectedEof.into()));
        }
        files += 1;
    }
    if files == 0 {
        return Err(CopyError::Read(io::Error::other("it has no file")));
    }
    Ok(())
}

/// Reader that counts its bytes.
struct CountingReader<R> {
    inner: R,
    bytes: u64,
}

impl<R: io::Read> io::Read for CountingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.bytes += count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use luc_fleet_rings::LogTime;

    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    fn name(run: u32, number: u32, begin_s: u64) -> ObjectName {
        ObjectName {
            segment: luc_events::ring::SegmentName { run, number },
            begin_ms: begin_s * 1_000,
            end_ms: (begin_s + 10) * 1_000,
        }
    }

    fn numbers(all: Vec<ObjectName>, from_s: u64, to_s: u64) -> Result<Vec<u32>, StoredError> {
        let store = ObjectStoreFolder::open("file:///rings/web", []).expect("a store");
        let window =
            TimeWindow { from: LogTime(from_s * SECOND_NS), to: LogTime(to_s * SECOND_NS) };
        Ok(select(&store, all, window)?.iter().map(|name| name.segment.number).collect())
    }

    #[test]
    fn segments_of_the_last_recording_in_the_window_are_chosen() {
        let all = vec![name(2, 2, 210), name(1, 9, 100), name(2, 1, 200), name(1, 10, 110)];
        assert_eq!(numbers(all.clone(), 0, 1_000).expect("chosen"), [1, 2]);
        assert_eq!(numbers(all.clone(), 105, 111).expect("chosen"), [9, 10]);
        assert_eq!(numbers(all.clone(), 201, 202).expect("chosen"), [1]);
        let nothing = numbers(all, 150, 160);
        assert!(matches!(nothing, Err(StoredError::Nothing { .. })), "{nothing:?}");
    }

    /// Adds an object with these bytes to a stream.
    fn added(object: &[u8]) -> Result<Vec<u8>, CopyError> {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(object).expect("written");
        file.rewind().expect("rewound");
        let mut stream = Builder::new(Vec::new());
        add(&mut stream, file)?;
        Ok(stream.into_inner().expect("in memory"))
    }

    #[test]
    fn whatever_an_object_has_is_copied_whole_or_refused() {
        let mut object = Builder::new(Vec::new());
        for (name, bytes) in [("segment-0001-000001/a.parquet", 700), ("b", 0), ("c", 512)] {
            let mut header = tar::Header::new_ustar();
            header.set_size(bytes);
            let content = vec![7; bytes as usize];
            object.append_data(&mut header, name, &content[..]).expect("in memory");
        }
        let object = object.into_inner().expect("in memory");
        assert_eq!(added(&object).expect("copied"), object);
        for length in (0..object.len() - 1024).step_by(97) {
            // Between two files nothing tells that one is missing; whoever reads the segment sees it.
            let cut = added(&object[..length]);
            assert!(cut.is_err() || length % 512 == 0, "{length}");
        }
        for at in 0..object.len() {
            for flip in [1, 0x20, 0x80, 0xff] {
                let mut other = object.clone();
                other[at] ^= flip;
                match added(&other) {
                    Ok(copied) => assert!(copied.len() <= object.len(), "{at} {flip}"),
                    Err(CopyError::Read(_)) => {}
                    Err(CopyError::Write(error)) => panic!("{at} {flip}: {error}"),
                }
            }
        }
    }

    #[test]
    fn gaps_and_doubles_are_errors() {
        let gap = numbers(vec![name(1, 1, 100), name(1, 3, 120)], 0, 1_000);
        assert!(matches!(gap, Err(StoredError::Missing { number: 2, .. })), "{gap:?}");
        let double = numbers(vec![name(1, 1, 100), name(1, 1, 101)], 0, 1_000);
        assert!(matches!(double, Err(StoredError::Twice { .. })), "{double:?}");
        // Outside of the window nobody asks.
        let other = numbers(vec![name(1, 1, 100), name(1, 3, 120)], 121, 122);
        assert_eq!(other.expect("chosen"), [3]);
    }
}
