//! Memory that a run shares with the programs it starts: its figures, and the rounds of this user.
//!
//! Both are files in /dev/shm; where that is full, missing or its name is taken by somebody else, in the
//! user's own folder below /run. Only `luc run` makes them, with all of their memory.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use luc_gate::call::Settings;
use luc_gate::environment::{FIGURES, FILTERS, LONGEST_WAIT_NS, POLICY, ROUNDS};
use luc_gate::files::{DIRECTORY, Figures, FilesError, PLACE, Session, create_rounds};
use luc_gate::policy::Policy;
use luc_gate::rounds::Arena;
use luc_gate::seccomp;

/// All that one run shares with the programs it starts. The directory goes last.
#[derive(Debug)]
pub struct Shared {
    /// The run's own figures.
    pub figures: Figures,
    /// The rounds of all runs of this user and policy.
    pub rounds: &'static Arena,
    rounds_path: PathBuf,
    _session: Session,
}

impl Shared {
    /// Makes or opens what a run of `policy` shares, at the first place that can be used.
    ///
    /// # Errors
    ///
    /// [`FilesError`] of the first place: there is no room, or somebody else has taken the name.
    pub fn open(policy: &Policy) -> Result<Self, FilesError> {
        let user = rustix::process::geteuid().as_raw();
        let base = if Path::new(PLACE).is_dir() {
            PLACE
        } else {
            "/tmp"
        };
        let of_user = if user == 0 {
            PathBuf::from("/run/luc-gate")
        } else {
            PathBuf::from(format!("/run/user/{user}/luc-gate"))
        };
        let first = Self::open_at(Path::new(base).join(format!("{DIRECTORY}{user}")), policy);
        first.or_else(|error| {
            if is_in_memory(&of_user) {
                Self::open_at(of_user, policy).map_err(|_| error)
            } else {
                Err(error)
            }
        })
    }

    fn open_at(directory: PathBuf, policy: &Policy) -> Result<Self, FilesError> {
        let session = Session::open_at(directory)?;
        let rounds_path = session.path(&Arena::file_name(policy));
        Ok(Self {
            figures: session.figures()?,
            rounds: create_rounds(&rounds_path)?,
            rounds_path,
            _session: session,
        })
    }

    /// The environment variables by which a command takes part.
    pub fn environment(&self, library: &Path, settings: &Settings) -> Vec<(OsString, OsString)> {
        let mut preload = library.as_os_str().to_owned();
        if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
            preload.push(":");
            preload.push(others);
        }
        let longest_wait_ns = settings.longest_wait_ns.to_string();
        vec![
            ("LD_PRELOAD".into(), preload),
            (ROUNDS.into(), self.rounds_path.clone().into()),
            (POLICY.into(), settings.policy.to_string().into()),
            (LONGEST_WAIT_NS.into(), longest_wait_ns.into()),
            (
                FILTERS.into(),
                seccomp::filters().unwrap_or(0).to_string().into(),
            ),
            (FIGURES.into(), self.figures.path().into()),
        ]
    }
}

/// Whether a directory that may not be there yet is on tmpfs: on a disk, shared memory would be written
/// back again and again.
fn is_in_memory(directory: &Path) -> bool {
    /// From include/uapi/linux/magic.h.
    const TMPFS_MAGIC: u64 = 0x0102_1994;
    let parent = directory.parent().unwrap_or(directory);
    rustix::fs::statfs(parent).is_ok_and(|found| found.f_type as u64 == TMPFS_MAGIC)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::MetadataExt as _;

    #[test]
    fn shared_files_have_all_of_their_memory() {
        let place = tempfile::tempdir().unwrap();
        let shared = Shared::open_at(place.path().join("gate"), &Policy::Auto).unwrap();
        for path in [shared.rounds_path.as_path(), shared.figures.path()] {
            let found = fs::metadata(path).unwrap();
            assert!(found.blocks() * 512 >= found.size(), "{}", path.display());
        }
    }
}
