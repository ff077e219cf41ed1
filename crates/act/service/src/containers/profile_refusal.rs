//! Reasons why there is no profile. Each text is one line.

use std::io;
use std::path::PathBuf;

use luc_units::FileOperationError;

use super::seccomp_profile::{FLAG, NOTIFY, ProfileError};

#[derive(Debug, thiserror::Error)]
pub enum ProfileRefusal {
    #[error("{path}: {reason}")]
    Profile { path: PathBuf, reason: ProfileError },
    #[error(
        "no profile is at {0}: name the file that the runtime takes by default, for Docker profiles/seccomp/default.json \
         of its sources"
    )]
    NoProfile(String),
    #[error("{path}: it is longer than {most} bytes: name a profile of seccomp")]
    Long { path: PathBuf, most: u64 },
    #[error(
        "this kernel cannot notify of a container's calls without restarting them at signals: it takes Linux 5.19, and a \
         sandbox that lets seccomp pass"
    )]
    Kernel,
    #[error("{0} is not in the PATH: install it, or name another runtime by --runtime")]
    NoRuntime(String),
    #[error("{program} does not answer `{words}` ({reason}): name its runtime by --runtime")]
    Silent {
        program: PathBuf,
        /// Words that it was called with.
        words: &'static str,
        /// Reason why there is no answer.
        reason: String,
    },
    #[error(
        "{runtime} does not know {what}, without which {why}: it takes crun 1.5, or a runc of 2026 with libseccomp 2.6"
    )]
    Incapable {
        /// The runtime, with its version.
        runtime: String,
        what: &'static str,
        why: &'static str,
    },
    #[error("{path} cannot be {what}: {source}")]
    File {
        /// Participle of the failed operation, such as `written`.
        what: &'static str,
        path: PathBuf,
        source: io::Error,
    },
}

impl ProfileRefusal {
    pub(super) fn without_flag(runtime: String) -> Self {
        Self::Incapable { runtime, what: FLAG, why: "a signal makes a held call anew" }
    }

    pub(super) fn without_listener(runtime: String) -> Self {
        Self::Incapable { runtime, what: NOTIFY, why: "nobody is told of a call" }
    }
}

impl From<FileOperationError> for ProfileRefusal {
    fn from(FileOperationError { what, path, source }: FileOperationError) -> Self {
        Self::File { what, path, source }
    }
}
