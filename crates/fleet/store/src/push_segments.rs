//! Puts segments of a ring into a store.

use std::collections::HashSet;
use std::fs::File;
use std::io::Seek as _;
use std::sync::Arc;

use luc_events::ring::RingSegment;
use luc_fleet_rings::send;
use object_store::buffered::BufWriter;
use tokio::io::AsyncWriteExt as _;

use crate::error::StoredError;
use crate::object_name::ObjectName;
use crate::store::ObjectStoreFolder;

/// Result of a push so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PushProgress {
    /// Number of segments that were put now.
    pub segments: u64,
    pub bytes: u64,
    /// Number of segments that the store had already.
    pub there: u64,
    /// Number of segments that the ring's recorder removed meanwhile.
    pub gone: u64,
}

/// Puts segments that are missing into a host's folder. The oldest come first, as the ring's recorder removes them
/// first. `look` is called after each segment.
///
/// # Errors
/// [`StoredError`]; segments that were put before it stay.
pub async fn push(
    store: &ObjectStoreFolder,
    segments: &[RingSegment],
    mut look: impl FnMut(PushProgress),
) -> Result<PushProgress, StoredError> {
    let there: HashSet<ObjectName> = store.segments().await?.into_iter().collect();
    let mut pushed = PushProgress::default();
    for segment in segments {
        let name = ObjectName::of(segment);
        if there.contains(&name) {
            pushed.there += 1;
            continue;
        }
        match pack(segment) {
            Ok((file, bytes)) => {
                put(store, name, file).await?;
                pushed.segments += 1;
                pushed.bytes += bytes;
                look(pushed);
            }
            Err(_) if !segment.path.exists() => pushed.gone += 1,
            Err(error) => return Err(error),
        }
    }
    Ok(pushed)
}

/// Packs a segment into a private tar file. Returns the file and its size.
fn pack(segment: &RingSegment) -> Result<(File, u64), StoredError> {
    let mut file = tempfile::tempfile().map_err(StoredError::Temporary)?;
    send(std::slice::from_ref(segment), &file)?;
    let bytes = file.stream_position().map_err(StoredError::Temporary)?;
    file.rewind().map_err(StoredError::Temporary)?;
    Ok((file, bytes))
}

/// Writes an object, which appears when it is complete.
async fn put(store: &ObjectStoreFolder, name: ObjectName, file: File) -> Result<(), StoredError> {
    let mut object = BufWriter::new(Arc::clone(store.objects()), store.place(name));
    let mut file = tokio::fs::File::from_std(file);
    let copied = match tokio::io::copy(&mut file, &mut object).await {
        Ok(_) => object.shutdown().await,
        Err(error) => Err(error),
    };
    let Err(error) = copied else {
        return Ok(());
    };
    // Uploaded parts cost money until the store is told to drop them. If that fails, the store's own rule for
    // incomplete uploads removes them. The first error says more.
    let _ = object.abort().await;
    Err(store.refused(&error))
}
