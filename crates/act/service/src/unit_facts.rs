//! UnitFacts that a plan is made from, as this machine tells them.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use luc_gate::inspect::filesystem::{self, FileSystemJournal};
use luc_gate::inspect::program::program_with_path;
use luc_host::installed_programs::{NotInstalled, find_part};
use luc_host::mountinfo::mounts;
use luc_launch::preload_library;
use luc_units::OnPath as _;

use crate::drop_in::UnitDropIn;
use crate::enable_plan::{InstalledTools, UnitFacts};
use crate::unit_file::UnitFile;
use crate::unit_settings::UnitSettings;
use crate::{ServiceError, systemctl};

/// Program that is started before a unit's own.
const EXEC_NAME: &str = "luc-exec";

/// Folders in which systemd looks for programs without a slash in their names (DEFAULT_PATH).
const SYSTEMD_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Collects the facts about a unit.
///
/// # Errors
/// [`ServiceError`]: systemd does not answer, or one of the unit's files cannot be read.
pub fn of_unit(unit: &str) -> Result<UnitFacts, ServiceError> {
    let settings = systemctl::show(unit)?;
    let read = |path: &Path| fs::read(path).map_err(ServiceError::io("read", path));
    let drop_in = UnitDropIn::of(settings.id());
    let own = drop_in.path();
    let mut files = Vec::new();
    let fragment = Some(settings.get("FragmentPath")).filter(|path| !path.is_empty());
    for path in fragment.into_iter().chain(settings.words("DropInPaths")) {
        let path = Path::new(path);
        if path != own {
            let text = read(path)?;
            files.push(UnitFile::parse(path, &String::from_utf8_lossy(&text)));
        }
    }
    let mut environment_files = Vec::new();
    for path in settings.environment_files() {
        // One that is not there is the unit's own matter.
        if let Ok(text) = fs::read(&path) {
            environment_files.push((path, String::from_utf8_lossy(&text).into_owned()));
        }
    }
    Ok(UnitFacts {
        drop_in: drop_in.read()?,
        programs: programs(&settings, &files),
        journals: journals(),
        settings,
        files,
        environment_files,
    })
}

/// The unit's own programs, without those that luc has put before them, and whether the library gets into them.
fn programs(
    settings: &UnitSettings,
    files: &[UnitFile],
) -> Vec<(PathBuf, luc_gate::inspect::Gateability)> {
    let lines = crate::unit_file::list(files, "ExecStart");
    let commands =
        lines.iter().flat_map(|line| crate::command_line_words::commands(line).unwrap_or_default());
    // As they are written, if there is nothing in them that only systemd knows how to replace.
    let written = commands
        .map(|command| command.program)
        .filter(|program| program.starts_with('/') && !program.contains(['%', '\\', '"', '\'']))
        .map(PathBuf::from);
    let all: BTreeSet<PathBuf> = if lines.is_empty() {
        settings.programs().into_iter().collect()
    } else {
        let of_systemd = settings.programs().into_iter().filter(|path| !path.ends_with(EXEC_NAME));
        written.chain(of_systemd).collect()
    };
    let inspected = |path: PathBuf| {
        let gateability = program_with_path(&path, Some(SYSTEMD_PATH.as_ref())).ok()?;
        Some((path, gateability))
    };
    all.into_iter().filter_map(inspected).collect()
}

/// Mount points of file systems with a journal that can be shared.
fn journals() -> Vec<PathBuf> {
    let mut devices = BTreeSet::new();
    let mut found = Vec::new();
    for mount in mounts().unwrap_or_default() {
        let (major, minor) = mount.device;
        if major == 0 || !devices.insert(mount.device) {
            continue;
        }
        if let Ok(system) = filesystem::of_device(major, minor)
            && matches!(system.journal, FileSystemJournal::Jbd2)
        {
            found.push(system.mount_point);
        }
    }
    found
}

/// Mount points of file systems on which processes have regular files open, and whether their journals can be shared.
#[must_use]
pub fn open_file_systems(processes: &[u32]) -> BTreeSet<(PathBuf, bool)> {
    let mut devices = BTreeSet::new();
    for process in processes {
        let entries = fs::read_dir(format!("/proc/{process}/fd"));
        for entry in entries.into_iter().flatten().flatten() {
            if let Ok(file) = fs::metadata(entry.path())
                && file.is_file()
            {
                devices.insert(file.dev());
            }
        }
    }
    let numbers = |device| (rustix::fs::major(device), rustix::fs::minor(device));
    let of_device = |device| {
        let (major, minor) = numbers(device);
        let system = filesystem::of_device(major, minor).ok()?;
        let is_shared = matches!(system.journal, FileSystemJournal::Jbd2);
        Some((system.mount_point, is_shared))
    };
    devices.into_iter().filter_map(of_device).collect()
}

/// Finds luc's parts beside this program, and what this machine can do.
///
/// # Errors
/// [`ServiceError`]: a part is not installed, or a unit file cannot name its path.
pub fn tools() -> Result<InstalledTools, ServiceError> {
    let tools = InstalledTools {
        library: preload_library::find()?,
        exec: find(EXEC_NAME)?,
        no_notifier: no_notifier()?,
    };
    for path in [&tools.library, &tools.exec] {
        let text = path.to_string_lossy();
        if text.contains([' ', '\t', '"', '\'', '\\', '%', '$', ':', ';']) {
            return Err(ServiceError::Inexpressible(path.clone()));
        }
    }
    Ok(tools)
}

/// Reason why services cannot be notified here; `None` if they can.
fn no_notifier() -> Result<Option<String>, ServiceError> {
    if let Err(error) = luc_notify::available() {
        return Ok(Some(error.to_string()));
    }
    let lucd = systemctl::show("lucd.service")?;
    let is_there = lucd.get("LoadState") == "loaded";
    Ok((!is_there).then(|| {
        "systemd knows no lucd.service, or it is masked: install luc by a package or `make install`".to_owned()
    }))
}

/// Finds a program beside this one, else in `../lib/luc/` from there.
fn find(name: &'static str) -> Result<PathBuf, ServiceError> {
    let own = std::env::current_exe().map_err(ServiceError::io("found", "the running program"))?;
    find_part(&own, name).map_err(|NotInstalled { beside, installed }| ServiceError::Missing {
        name,
        beside,
        installed,
    })
}
