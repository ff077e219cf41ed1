//! A cgroup for a back end, with a process that removes it when the run has ended in any way.

use std::fs;
use std::io::{self, Read as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use luc_host::mountinfo::{MountEntry, mounts};

use crate::error::TwinError;

/// File systems of cgroups v2 and v1, and the controller for processors.
const KIND_V2: &str = "cgroup2";
const KIND_V1: &str = "cgroup";
const CONTROLLER: &str = "cpu";
/// Interval and maximum number of the remover's attempts while processes in the cgroup end.
const RETRY_INTERVAL: Duration = Duration::from_millis(50);
const MAX_TRIES: u32 = 200;

#[derive(Debug)]
pub(super) struct Cgroup {
    path: PathBuf,
    remover: Child,
}

impl Cgroup {
    /// Makes a cgroup below the root, with the controller for processors.
    pub(super) fn make(program: &Path) -> Result<Self, TwinError> {
        let root = root()?;
        let path = root.join(format!("luc-twin-{}", std::process::id()));
        // Before the cgroup: a signal to all of a terminal's processes must not end it.
        let remover = Command::new(program)
            .arg("remove-cgroup")
            .arg(&path)
            .stdin(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(TwinError::system("starting what removes the cgroup"))?;
        let cgroup = Self { path, remover };
        fs::create_dir(&cgroup.path).map_err(TwinError::file(&cgroup.path))?;
        Ok(cgroup)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Moves a process and all its threads into the cgroup.
    pub(super) fn add(&self, process: u32) -> Result<(), TwinError> {
        let file = self.path.join("cgroup.procs");
        fs::write(&file, process.to_string()).map_err(TwinError::file(&file))
    }

    /// Removes the cgroup once its processes have ended.
    pub(super) fn end(mut self) -> Result<(), TwinError> {
        drop(self.remover.stdin.take());
        let failed = || TwinError::system("removing the cgroup");
        let status = self.remover.wait().map_err(failed())?;
        if status.success() {
            return Ok(());
        }
        Err(TwinError::Ended { name: "what removes the cgroup".into(), status: status.to_string() })
    }
}

/// Returns the root of the cgroups that have the controller: version 1's where that has it, else version 2's.
fn root() -> Result<PathBuf, TwinError> {
    let mounts = mounts().map_err(TwinError::system("reading the mounts"))?;
    let has_controller = |mount: &&MountEntry| {
        let mut options = mount.super_options.split(',');
        mount.kind == KIND_V1 && options.any(|option| option == CONTROLLER)
    };
    if let Some(old) = mounts.iter().find(has_controller) {
        return Ok(old.mount_point.clone());
    }
    let root = mounts.into_iter().find(|mount| mount.kind == KIND_V2);
    let root = root.ok_or_else(|| quota_error("no cgroup is mounted".into()))?;
    with_controller(root.mount_point)
}

/// Returns the root of the cgroups v2, if its children have the controller.
fn with_controller(root: PathBuf) -> Result<PathBuf, TwinError> {
    let has = |file: &str| {
        let text = fs::read_to_string(root.join(file)).unwrap_or_default();
        text.split_whitespace().any(|name| name == CONTROLLER)
    };
    if !has("cgroup.controllers") {
        return Err(quota_error(format!(
            "the cgroup v2 at {} has no controller for processors; boot with systemd.unified_cgroup_hierarchy=1",
            root.display()
        )));
    }
    let file = root.join("cgroup.subtree_control");
    if !has("cgroup.subtree_control") {
        return Err(quota_error(format!(
            "children of {} have no controller for processors; `echo +cpu > {}` gives it",
            root.display(),
            file.display()
        )));
    }
    Ok(root)
}

fn quota_error(why: String) -> TwinError {
    TwinError::Unable { what: "--plant quota".into(), why }
}

/// Waits until the standard input ends, then removes the cgroup. This is the remover's own work.
///
/// # Errors
/// It cannot be removed.
pub fn remove_at_end(path: &Path) -> Result<(), TwinError> {
    // However the input ends, so does the run.
    let _ = io::stdin().read_to_end(&mut Vec::new());
    for _ in 1..MAX_TRIES {
        match fs::remove_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                thread::sleep(RETRY_INTERVAL)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            result => return result.map_err(TwinError::file(path)),
        }
    }
    fs::remove_dir(path).map_err(TwinError::file(path))
}
