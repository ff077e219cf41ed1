//! Reasons why a service is not enabled, disabled or looked at. Each text is one line.

use std::io;
use std::path::PathBuf;

use luc_gate::user_directory::SharedFilesError;
use luc_launch::LaunchError;
use luc_units::FileOperationError;

use crate::enable_plan::UnitRefusal;

#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    #[error(
        "systemd does not run here, so no service can be enabled: start the program by `luc run -- COMMAND`"
    )]
    NoSystemd,
    #[error("changing a service takes root: run luc by sudo")]
    NotRoot,
    #[error("{0} is no name of a service: name one as in `systemctl list-units --type=service`")]
    Name(String),
    #[error("{unit}: {refusal}")]
    Refused { unit: String, refusal: UnitRefusal },
    #[error("systemctl {words} failed: {reason}")]
    Systemctl { words: String, reason: String },
    #[error(
        "{unit}: systemd does not read {path}, so it was removed again: see `systemctl status {unit}`"
    )]
    NotTaken { unit: String, path: PathBuf },
    #[error("{0} did not start with luc, so all is as it was: see `journalctl -u {0}`")]
    NotStarted(String),
    #[error(
        "{0}: there is no such unit, and it is not enabled: `luc status` lists the services that are"
    )]
    NotEnabled(String),
    #[error("{name} is neither in {beside} nor in {installed}: install luc as a whole")]
    Missing {
        name: &'static str,
        /// Path beside the running program.
        beside: PathBuf,
        /// Path in an installed luc.
        installed: PathBuf,
    },
    #[error("{0} has a space, a quote or a sign of systemd's in its path: install luc elsewhere")]
    Inexpressible(PathBuf),
    #[error("lucd.socket does not listen ({0}): `systemctl enable --now lucd.socket` first")]
    NoSocket(String),
    #[error("{0}")]
    NotAttached(String),
    #[error(
        "{0} is under the filter, but lucd does not serve it ({1}), so that its calls pass: see `journalctl -u lucd`"
    )]
    NotServed(String, String),
    #[error(transparent)]
    Launch(#[from] LaunchError),
    #[error(transparent)]
    Files(#[from] SharedFilesError),
    #[error("{path} cannot be {what}: {source}")]
    File {
        /// Participle of the failed operation, such as `written`.
        what: &'static str,
        path: PathBuf,
        source: io::Error,
    },
}

impl From<FileOperationError> for ServiceError {
    fn from(FileOperationError { what, path, source }: FileOperationError) -> Self {
        Self::File { what, path, source }
    }
}
