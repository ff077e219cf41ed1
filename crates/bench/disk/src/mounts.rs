//! Lists mounts; makes, mounts and unmounts file systems.

use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use luc_host::installed_programs::{search_path, tool};
use luc_host::interrupt_flag;
use luc_host::mountinfo::{self, MountEntry as Mounted};
use luc_units::OnPath as _;
use rustix::mount::UnmountFlags;

use crate::{Error, MkfsSpec, MountSpec};

/// Lists all mounts; none if they cannot be read.
fn list_mounts() -> Vec<Mounted> {
    mountinfo::mounts().unwrap_or_default()
}

/// Returns whether `dir`, an absolute path without links, is a mount point.
pub(crate) fn is_mount_point(dir: &Path) -> bool {
    list_mounts().iter().any(|mount| mount.mount_point == dir)
}

/// Returns type, source and options of the mount that holds `path`, an absolute one without links; `None` if it cannot
/// be told.
pub fn mount_of(path: &Path) -> Option<String> {
    let holding = list_mounts().into_iter().filter(|at| path.starts_with(&at.mount_point));
    let at = holding.max_by_key(|at| at.mount_point.components().count())?;
    let source = at.source.to_string_lossy();
    Some(format!("{} {source} {} {}", at.kind, at.super_options, at.options))
}

/// Returns mount points of a block device, in the order of mounting.
pub(crate) fn mounts_of(device: &Path) -> Vec<PathBuf> {
    let number = std::fs::metadata(device).map(|node| node.rdev()).unwrap_or(0);
    let number = (rustix::fs::major(number), rustix::fs::minor(number));
    list_mounts()
        .into_iter()
        // File systems that span devices (btrfs) have a number of their own: ask the source too.
        .filter(|at| at.device == number || Path::new(&at.source) == device)
        .map(|mount| mount.mount_point)
        .collect()
}

/// Unmounts `dir` even if it is in use. Then it is hidden now and goes with its last user.
pub(crate) fn unmount_lazily(dir: &Path) {
    // It may not be mounted, or not exist.
    let _ = rustix::mount::unmount(dir, UnmountFlags::DETACH);
}

/// Unmounts the file system on `dir`.
///
/// # Errors
/// [`Error::Io`]: nothing is mounted there, or it is in use.
pub fn unmount(dir: &Path) -> Result<(), Error> {
    rustix::mount::unmount(dir, UnmountFlags::NOFOLLOW).map_err(Error::io("unmount", dir))
}

/// Checks that the tool for this file system is installed and its name is valid.
///
/// # Errors
/// [`Error::FileSystemName`] or [`Error::MissingTool`].
pub fn check_mkfs(mkfs: &MkfsSpec) -> Result<(), Error> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if mkfs.fs.is_empty() || mkfs.fs.starts_with('-') || !mkfs.fs.chars().all(plain) {
        return Err(Error::FileSystemName(mkfs.fs.clone()));
    }
    let tool = format!("mkfs.{}", mkfs.fs);
    let found = std::env::split_paths(&search_path()).any(|dir| dir.join(&tool).is_file());
    if found { Ok(()) } else { Err(Error::MissingTool(tool)) }
}

/// Checks a mount directory and makes it absolute.
///
/// # Errors
/// [`Error::MountDir`]: it is missing, no directory, or a mount point already.
pub(crate) fn check_mount_dir(dir: &Path) -> Result<PathBuf, Error> {
    let wrong = |reason| Error::MountDir { dir: dir.to_owned(), reason };
    let absolute =
        dir.canonicalize().map_err(|_| wrong("does not exist: create it, or choose another"))?;
    if !absolute.is_dir() {
        return Err(wrong("is not a directory: choose another"));
    }
    if is_mount_point(&absolute) {
        return Err(wrong("is a mount point already: unmount it, or choose another"));
    }
    Ok(absolute)
}

/// Makes a file system on a device.
///
/// ext4 is initialised at once, since lazy initialisation would disturb a measurement in the background. Options with
/// an `-E` of their own replace that.
///
/// # Errors
/// [`Error::FileSystemName`], [`Error::MissingTool`], [`Error::Command`] with its last line,
/// [`Error::Interrupted`].
pub fn mkfs(device: &Path, mkfs: &MkfsSpec) -> Result<(), Error> {
    check_mkfs(mkfs)?;
    run(mkfs_command(device, mkfs))
}

/// Builds the command of [`mkfs`], for callers that run it themselves.
#[must_use]
pub fn mkfs_command(device: &Path, mkfs: &MkfsSpec) -> Command {
    let options: Vec<&str> = mkfs.options.split_whitespace().collect();
    let mut command = tool(format!("mkfs.{}", mkfs.fs));
    match mkfs.fs.as_str() {
        "ext2" | "ext3" | "ext4" => {
            command.args(["-F", "-q"]);
            if !options.iter().any(|option| option.starts_with("-E")) {
                command.args(["-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard"]);
            }
        }
        "xfs" | "btrfs" => {
            command.args(["-f", "-q"]);
        }
        "f2fs" => {
            command.arg("-f");
        }
        // It asks whether to go on, except for two of them.
        "reiserfs" => {
            command.args(["-q", "-ff"]);
        }
        _ => {}
    }
    command.args(options).arg(device);
    command
}

/// Mounts a device as `mount.dir` and `mount.options` say. The directory must exist.
///
/// # Errors
/// [`Error::Command`] with what `mount` said last, [`Error::Interrupted`].
pub fn mount(device: &Path, mount: &MountSpec) -> Result<(), Error> {
    run(mount_command(device, mount))
}

/// Builds the command of [`mount`], for callers that run it themselves.
#[must_use]
pub fn mount_command(device: &Path, mount: &MountSpec) -> Command {
    let mut command = tool("mount");
    if !mount.options.is_empty() {
        command.arg("-o").arg(&mount.options);
    }
    command.arg(device).arg(&mount.dir);
    command
}

fn run(mut command: Command) -> Result<(), Error> {
    let shown = command.get_program().to_string_lossy().into_owned();
    let failed = |reason: String| Error::Command { command: shown.clone(), reason };
    // After a kill, the child must not mount later, when everything seems to be cleaned up.
    // SAFETY: between fork and exec only prctl is called, which is async-signal-safe.
    unsafe {
        command.pre_exec(|| {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            Ok(())
        });
    }
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| failed(format!("{error}: install it")))?;
    let stderr = child.stderr.take();
    let reader = std::thread::spawn(move || {
        let mut said = Vec::new();
        if let Some(mut stderr) = stderr {
            // On failure only the message is incomplete.
            let _ = stderr.read_to_end(&mut said);
        }
        String::from_utf8_lossy(&said).into_owned()
    });
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if interrupt_flag::interrupted() => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(Error::Interrupted);
            }
            Ok(None) => std::thread::sleep(Duration::from_millis(2)),
            Err(error) => return Err(failed(error.to_string())),
        }
    };
    let said = reader.join().unwrap_or_default();
    if interrupt_flag::interrupted() {
        return Err(Error::Interrupted);
    }
    if status.success() {
        return Ok(());
    }
    let lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
    let reason = lines.collect::<Vec<_>>().join("; ");
    let reason = if reason.is_empty() { status.to_string() } else { reason };
    Err(failed(format!("{reason}: correct its options")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_is_on_a_mount() {
        assert!(mount_of(Path::new("/proc/self")).is_some_and(|about| about.starts_with("proc ")));
        assert!(mount_of(Path::new("/no/such")).is_some());
    }

    #[test]
    fn names_of_file_systems() {
        let check = |fs: &str| check_mkfs(&MkfsSpec { fs: fs.into(), options: String::new() });
        assert!(matches!(check("../ext4"), Err(Error::FileSystemName(_))));
        assert!(matches!(check("-x"), Err(Error::FileSystemName(_))));
        assert!(matches!(check("no-such-fs"), Err(Error::MissingTool(_))));
    }
}
