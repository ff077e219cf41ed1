//! Memory that a run shares with the programs it starts: its figures, and the rounds of this user. Programs that have
//! become another user's or have another root find neither. Below a run of root they meet in memory of that run alone,
//! whose descriptor they inherit. They can hold nobody there for longer than [`luc_gate::rounds`] bounds.
//!
//! Both are files in /dev/shm. If that is full or missing, or somebody else has the name, they are in the user's
//! folder below /run. Only `luc run` makes them, with all of their memory.

use std::ffi::{OsStr, OsString, c_int};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use luc_gate::environment_names::{FIGURES, FILTERS, GUESTS, LONGEST_WAIT_NS, POLICY, ROUNDS};
use luc_gate::gate_policy::GatePolicy;
use luc_gate::gated_call::CallSettings;
use luc_gate::rounds::{FileSystemRounds, UserRounds};
use luc_gate::seccomp_filter;
use luc_gate::shared_values::{self, OtherUsersMemory};
use luc_gate::time_namespace;
use luc_gate::user_directory::{
    DIRECTORY_PREFIX, FiguresFile, SHM_FOLDER, SharedFilesError, UserDirectory, create_rounds,
};

/// All that one run shares with the programs it starts. The directory goes last.
#[derive(Debug)]
pub struct RunMemory {
    pub figures: FiguresFile,
    /// The rounds of all runs of this user and policy.
    pub rounds: &'static UserRounds,
    rounds_path: PathBuf,
    /// Memory that root's run shares with descendants of other users and roots.
    guests: Option<GuestMemory>,
    _session: UserDirectory,
}

/// Memory without a name, and the descriptor by which descendants inherit it.
#[derive(Debug)]
struct GuestMemory {
    memory: &'static OtherUsersMemory,
    descriptor: OwnedFd,
}

/// Minimum number of the descriptor by which descendants inherit the memory: beyond those that programs choose by
/// themselves.
const MIN_DESCRIPTOR: c_int = 250;
/// Minimum number under a limit of descriptors below that.
const MIN_DESCRIPTOR_OF_FEW: c_int = 20;

impl GuestMemory {
    /// Makes it. `None` if the kernel refuses; other users' processes then stay outside.
    fn new() -> Option<Self> {
        let create =
            |least| shared_values::create_sealed::<OtherUsersMemory>(c"luc-guests", least).ok();
        let (memory, descriptor) =
            create(MIN_DESCRIPTOR).or_else(|| create(MIN_DESCRIPTOR_OF_FEW))?;
        memory.rounds.begin_clock(time_namespace::namespace().unwrap_or(0));
        // SAFETY: made above, and nobody else's.
        let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
        Some(Self { memory, descriptor })
    }
}

impl RunMemory {
    /// Makes or opens the shared memory of a run of `policy`, at the first place that can be used.
    ///
    /// # Errors
    /// [`SharedFilesError`] of the first place: there is no room, or somebody else has taken the name.
    pub fn open(policy: &GatePolicy) -> Result<Self, SharedFilesError> {
        let user = rustix::process::geteuid().as_raw();
        let base = if Path::new(SHM_FOLDER).is_dir() { SHM_FOLDER } else { "/tmp" };
        let of_user = if user == 0 {
            PathBuf::from("/run/luc-gate")
        } else {
            PathBuf::from(format!("/run/user/{user}/luc-gate"))
        };
        let first =
            Self::open_at(Path::new(base).join(format!("{DIRECTORY_PREFIX}{user}")), policy);
        first.or_else(|error| {
            if is_in_memory(&of_user) {
                Self::open_at(of_user, policy).map_err(|_| error)
            } else {
                Err(error)
            }
        })
    }

    fn open_at(directory: PathBuf, policy: &GatePolicy) -> Result<Self, SharedFilesError> {
        let session = UserDirectory::open_at(directory)?;
        let rounds_path = session.path(&UserRounds::file_name(policy));
        Ok(Self {
            figures: session.figures()?,
            rounds: create_rounds(&rounds_path)?,
            rounds_path,
            guests: if rustix::process::geteuid().is_root() { GuestMemory::new() } else { None },
            _session: session,
        })
    }

    /// The rounds of a file system: those in which most calls on it were made.
    pub(super) fn rounds_of(&self, device: u64) -> Option<&'static FileSystemRounds> {
        let of_guests = self.guests.as_ref().and_then(|guests| guests.memory.rounds.find(device));
        let calls =
            |rounds: &FileSystemRounds| rounds.commits.completions() + rounds.flushes.completions();
        let both = [self.rounds.find(device), of_guests];
        both.into_iter().flatten().max_by_key(|rounds| calls(rounds))
    }

    /// Adds to the figures the counts of descendants of other users and roots since the last time.
    pub(super) fn gather(&self) {
        if let Some(guests) = &self.guests {
            self.figures.counters.take_over(&guests.memory.figures);
        }
    }

    /// The environment variables by which a command takes part.
    pub fn environment(
        &self,
        library: &Path,
        settings: &CallSettings,
    ) -> Vec<(OsString, OsString)> {
        let longest_wait_ns = settings.longest_wait_ns.to_string();
        let guests = self.guests.as_ref().map(|guests| guests.descriptor.as_raw_fd().to_string());
        let guests = guests.map(|number| (GUESTS.into(), number.into()));
        let of_run = [
            (ROUNDS.into(), self.rounds_path.clone().into()),
            (POLICY.into(), settings.policy.to_string().into()),
            (LONGEST_WAIT_NS.into(), longest_wait_ns.into()),
            (FILTERS.into(), seccomp_filter::filters().unwrap_or(0).to_string().into()),
            (FIGURES.into(), self.figures.path().into()),
        ];
        loading(library).into_iter().chain(of_run).chain(guests).collect()
    }
}

/// The environment variables by which programs load the library, beside the libraries of the user's own.
pub(super) fn loading(library: &Path) -> [(OsString, OsString); 2] {
    let variable = |name: &str, more| (name.into(), join_lists(std::env::var_os(name), more));
    [variable("LD_PRELOAD", library.as_os_str()), variable(ASAN_OPTIONS, OsStr::new(ASAN_BEHIND))]
}

/// Variable of AddressSanitizer's runtime, which refuses to start behind another library unless it is told so.
const ASAN_OPTIONS: &str = "ASAN_OPTIONS";
const ASAN_BEHIND: &str = "verify_asan_link_order=0";

/// Joins two lists, the user's own entries first: runtimes may have to be first, and if they change fsync (eatmydata),
/// that is meant.
fn join_lists(own: Option<OsString>, added: &OsStr) -> OsString {
    let mut list = own.unwrap_or_default();
    if !list.is_empty() {
        list.push(":");
    }
    list.push(added);
    list
}

/// Whether a directory, which need not exist yet, is on tmpfs. On a disk, shared memory would be written back again and
/// again.
fn is_in_memory(directory: &Path) -> bool {
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
    fn the_user_s_own_libraries_come_first() {
        let library = OsStr::new("/lib/luc.so");
        let list = |own: Option<&str>| join_lists(own.map(OsString::from), library);
        assert_eq!(list(None), "/lib/luc.so");
        assert_eq!(list(Some("")), "/lib/luc.so");
        assert_eq!(list(Some("libasan.so.8")), "libasan.so.8:/lib/luc.so");
    }

    #[test]
    fn shared_files_have_all_of_their_memory() {
        let place = tempfile::tempdir().unwrap();
        let shared = RunMemory::open_at(place.path().join("gate"), &GatePolicy::Auto).unwrap();
        for path in [shared.rounds_path.as_path(), shared.figures.path()] {
            let found = fs::metadata(path).unwrap();
            assert!(found.blocks() * 512 >= found.size(), "{}", path.display());
        }
    }
}
