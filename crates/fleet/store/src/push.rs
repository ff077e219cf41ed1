//! Puts segments of a ring into a store.

use std::collections::HashSet;
use std::fs::File;
use std::io::Seek as _;
use std::sync::Arc;

use luc_events::ring::Segment;
use luc_fleet_rings::send;
use object_store::buffered::BufWriter;
use tokio::io::AsyncWriteExt as _;

use crate::error::StoredError;
use crate::name::ObjectName;
use crate::store::Store;

/// What was put into a store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pushed {
    /// Segments that were put there now.
    pub segments: u64,
    pub bytes: u64,
    /// Segments that were there already.
    pub there: u64,
    /// Segments that the ring's recorder removed meanwhile.
    pub gone: u64,
}

/// Puts those of these segments into a host's folder that are not there: the oldest first, as the ring's recorder removes
/// these first. `look` is told what has been put there, after each segment.
///
/// # Errors
/// [`StoredError`]; segments that were put there before it stay.
pub async fn push(
    store: &Store,
    segments: &[Segment],
    mut look: impl FnMut(Pushed),
) -> Result<Pushed, StoredError> {
    let there: HashSet<ObjectName> = store.segments().await?.into_iter().collect();
    let mut pushed = Pushed::default();
    for segment in segments {
        let name = ObjectName::of(segment);
        if there.contains(&name) {
            pushed.there += 1;
            continue;
        }
        match packed(segment) {
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

/// A segment as a tar file that nobody else sees, and its size.
fn packed(segment: &Segment) -> Result<(File, u64), StoredError> {
    let mut file = tempfile::tempfile().map_err(StoredError::Temporary)?;
    send(std::slice::from_ref(segment), &file)?;
    let bytes = file.stream_position().map_err(StoredError::Temporary)?;
    file.rewind().map_err(StoredError::Temporary)?;
    Ok((file, bytes))
}

/// Writes an object, which appears when it is complete.
async fn put(store: &Store, name: ObjectName, file: File) -> Result<(), StoredError> {
    let mut object = BufWriter::new(Arc::clone(store.objects()), store.place(name));
    let mut file = tokio::fs::File::from_std(file);
    let copied = match tokio::io::copy(&mut file, &mut object).await {
        Ok(_) => object.shutdown().await,
        Err(error) => Err(error),
    };
    let Err(error) = copied else {
        return Ok(());
    };
    // Parts that were sent cost money until the store is told that they are not wanted. If it cannot be told, its own rule
    // for incomplete uploads removes them; the first error says more.
    let _ = object.abort().await;
    Err(store.refused(&error))
}
