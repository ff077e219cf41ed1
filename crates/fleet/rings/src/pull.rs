//! Collects what several hosts' rings have of one time.
//!
//! Each host finds the segments by its own CLOCK_REALTIME, which NTP keeps within milliseconds of others; the window is
//! wider by [`CLOCK_ERROR_NS`] on either side. What is collected appears whole, or not at all.

mod command;
mod elsewhere;
mod files;
mod from;
mod keep;
mod stream;
mod there;

use std::fs;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use luc_events::store::StoreError;

pub use elsewhere::{KeptThere, freeze_there};
pub use files::Received;
pub use from::{INSTALL_STORE, Place, PullFrom, STORE, host_name};
pub use keep::{freeze, put};
pub use stream::{Limits, StreamError, receive, send};

use crate::window::{Window, WindowError};

/// Clocks of hosts may differ by so much.
pub const CLOCK_ERROR_NS: u64 = 1_000_000_000;

/// Why a window cannot be collected.
#[derive(Debug, thiserror::Error)]
pub enum PullError {
    /// A ring cannot be read, or has nothing of the window.
    #[error(transparent)]
    Window(#[from] WindowError),
    #[error("{path}: cannot {what}: {reason}; check the path, its permissions and the space left", path = .path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        what: &'static str,
        reason: io::Error,
    },
    /// What is to be made is there already.
    #[error("{path}: it exists already; remove it or name another one", path = .0.display())]
    Exists(PathBuf),
    /// A source that nothing can be collected from.
    #[error(
        "'{text}': {reason}; write it like DIR, HOST:DIR, USER@HOST:DIR or s3://BUCKET/HOST, with NAME= before it if wanted"
    )]
    Source { text: String, reason: &'static str },
    /// A host whose services cannot be told.
    #[error(
        "{host}: no address is known ({reason}); write the address under which others ask it, or put it in /etc/hosts"
    )]
    NoAddress { host: String, reason: io::Error },
    /// Two hosts of one name.
    #[error("two sources are named {0}: give one of them another name: OTHER={0}:DIR")]
    SameName(String),
    /// What came from another host is no ring.
    #[error("{host}: {reason}; nothing was kept")]
    Stream { host: String, reason: StreamError },
    /// The command on another host failed.
    #[error("{host}: {reason}")]
    Remote {
        host: String,
        /// What it said last.
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

/// What was collected from one source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pulled {
    /// Its directory in what was made.
    pub name: String,
    pub received: Received,
    /// The last line that another host's luc-fleet or ssh said, if any.
    pub said: String,
}

/// Collects what sources have of a window into a directory that is made: one directory for each. `look` is told many
/// times how many bytes have come of which source, by its index, and says whether to go on.
///
/// # Errors
/// [`PullError`]; the directory is then not there.
pub fn pull(
    sources: &[PullFrom],
    window: Window,
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
