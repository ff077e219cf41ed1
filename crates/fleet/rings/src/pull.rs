//! Collects one window from the rings of several hosts.
//!
//! Each host finds the segments by its own CLOCK_REALTIME, which NTP keeps within milliseconds of others. The window is
//! wider by [`CLOCK_ERROR_NS`] on either side. The output directory appears whole, or not at all.

mod command;
mod freeze_elsewhere;
mod keep_segments;
mod pull_source;
mod segment_files;
mod ssh;
mod tar_stream;

use std::fs;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use luc_events::store::StoreError;

pub use freeze_elsewhere::{RemotelyKept, freeze_there};
pub use keep_segments::{freeze, put};
pub use pull_source::{INSTALL_STORE, PullFrom, RingPlace, STORE, host_name};
pub use segment_files::ReceivedAmount;
pub use tar_stream::{StreamError, StreamLimits, receive, send};

use crate::time_window::{TimeWindow, WindowError};

/// Maximum difference between clocks of hosts.
pub const CLOCK_ERROR_NS: u64 = 1_000_000_000;

/// Reason why a window cannot be collected.
#[derive(Debug, thiserror::Error)]
pub enum PullError {
    #[error(transparent)]
    Window(#[from] WindowError),
    #[error("{path}: cannot {what}: {reason}; check the path, its permissions and the space left", path = .path.display())]
    Io { path: PathBuf, what: &'static str, reason: io::Error },
    #[error("{path}: it exists already; remove it or name another one", path = .0.display())]
    Exists(PathBuf),
    #[error(
        "'{text}': {reason}; write it like DIR, HOST:DIR, USER@HOST:DIR or s3://BUCKET/HOST, with NAME= before it if wanted"
    )]
    Source { text: String, reason: &'static str },
    #[error(
        "{host}: no address is known ({reason}); write the address under which others ask it, or put it in /etc/hosts"
    )]
    NoAddress { host: String, reason: io::Error },
    #[error("two sources are named {0}: give one of them another name: OTHER={0}:DIR")]
    SameName(String),
    #[error("{host}: {reason}; nothing was kept")]
    Stream { host: String, reason: StreamError },
    #[error("{host}: {reason}")]
    Remote {
        host: String,
        /// Last line that it printed.
        reason: String,
    },
    #[error("interrupted; nothing was kept")]
    Interrupted,
}

impl PullError {
    pub(crate) fn io(path: &Path, what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |reason| Self::Io { path: path.to_path_buf(), what, reason }
    }
}

impl From<StoreError> for PullError {
    fn from(error: StoreError) -> Self {
        Self::Window(WindowError::Trace(error))
    }
}

/// Segments that were collected from one source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pulled {
    /// Name of the source's directory in the output.
    pub name: String,
    pub received: ReceivedAmount,
    /// Last line that another host's luc-fleet or ssh printed, if any.
    pub said: String,
}

/// Collects a window of each source into a new directory `out`, with one directory for each. `look` is called
/// repeatedly with a source's index and the bytes that came from it. It returns whether to go on.
///
/// # Errors
/// [`PullError`]; `out` is then not created.
pub fn pull(
    sources: &[PullFrom],
    window: TimeWindow,
    out: &Path,
    mut look: impl FnMut(usize, u64) -> ControlFlow<()>,
) -> Result<Vec<Pulled>, PullError> {
    let window = window.wider(CLOCK_ERROR_NS);
    let mut all: Vec<Pulled> = Vec::with_capacity(sources.len());
    put(out, |folder| {
        for (index, source) in sources.iter().enumerate() {
            let arrived = folder.join(".arriving");
            fs::create_dir(&arrived).map_err(PullError::io(&arrived, "create it"))?;
            let pulled = source.fetch(window, &arrived, &mut |bytes| look(index, bytes))?;
            if all.iter().any(|other| other.name == pulled.name) {
                return Err(PullError::SameName(pulled.name));
            }
            let path = folder.join(&pulled.name);
            fs::rename(&arrived, &path).map_err(PullError::io(&path, "rename it into place"))?;
            all.push(pulled);
        }
        Ok(())
    })?;
    Ok(all)
}
