//! Users that keep a disk from being removed.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use luc_host::mountinfo::{self, MountEntry};
use luc_units::plain;

/// A user of a disk, and the advice that ends the use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DiskHolder {
    /// A process works in the file system, or has the device or a file open.
    Process { id: u32, name: String, path: PathBuf },
    /// It is mounted in another mount namespace, from which this process cannot unmount it.
    Elsewhere {
        /// A process in that namespace.
        id: u32,
        name: String,
        /// Mount point in that namespace.
        path: PathBuf,
    },
    /// A device is built on it, such as an LVM volume.
    Device(String),
    /// No process is seen that uses it.
    Unknown(PathBuf),
}

impl fmt::Display for DiskHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process { id, name, path } => write!(
                f,
                "process {id} ({}) uses {}: end it, or have it leave",
                plain(name),
                plain(&path.to_string_lossy())
            ),
            Self::Elsewhere { id, name, path } => {
                let path = plain(&path.to_string_lossy());
                write!(
                    f,
                    "process {id} ({}) has it mounted on {path} in a mount namespace of its own: end it, or \
                     `nsenter --target {id} --mount umount {path}`",
                    plain(name)
                )
            }
            Self::Device(name) => write!(f, "{name} is made of it: take that apart"),
            Self::Unknown(path) => write!(
                f,
                "{} is busy, and no process is seen that uses it: unmount what is mounted below it",
                plain(&path.to_string_lossy())
            ),
        }
    }
}

impl DiskHolder {
    /// Returns whether waiting rarely helps: mounts of other namespaces end with their programs.
    #[must_use]
    pub fn is_lasting(&self) -> bool {
        matches!(self, Self::Elsewhere { .. } | Self::Device(_))
    }

    /// Finds a user of the device, or of its file system mounted on `dir`.
    pub(crate) fn find(device: &Path, dir: Option<&Path>) -> Self {
        let unknown = || Self::Unknown(dir.unwrap_or(device).to_owned());
        let found = match dir {
            Some(_) => find_process(device, dir).or_else(|| find_elsewhere(device)),
            None => find_elsewhere(device).or_else(|| find_process(device, dir)),
        };
        found.or_else(|| device_above(device)).unwrap_or_else(unknown)
    }
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn name_of(id: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default();
    name.trim_end().to_owned()
}

fn device_above(device: &Path) -> Option<DiskHolder> {
    let holders = Path::new("/sys/class/block").join(device.file_name()?).join("holders");
    let entry = fs::read_dir(holders).ok()?.flatten().next()?;
    let name = entry.file_name().to_string_lossy().into_owned();
    Some(DiskHolder::Device(name))
}

fn find_elsewhere(device: &Path) -> Option<DiskHolder> {
    let number = fs::metadata(device).ok()?.rdev();
    let number = (rustix::fs::major(number), rustix::fs::minor(number));
    let is_it = |mount: &MountEntry| mount.device == number || Path::new(&mount.source) == device;
    let namespace = |id: &str| fs::read_link(format!("/proc/{id}/ns/mnt")).ok();
    let mut seen = BTreeSet::from([namespace("self")?]);
    processes().find_map(|id| {
        // A process that has ended in the meantime has no mounts.
        if !seen.insert(namespace(&id.to_string())?) {
            return None;
        }
        let mount = mountinfo::mounts_of(id).ok()?.into_iter().find(is_it)?;
        Some(DiskHolder::Elsewhere { id, name: name_of(id), path: mount.mount_point })
    })
}

/// Reads links only: looking at the files behind them could wait for a disk.
fn find_process(device: &Path, dir: Option<&Path>) -> Option<DiskHolder> {
    let uses = |link: PathBuf| {
        let path = fs::read_link(link).ok()?;
        (path == device || dir.is_some_and(|dir| path.starts_with(dir))).then_some(path)
    };
    let namespace = |id: u32| fs::read_link(format!("/proc/{id}/ns/mnt")).ok();
    let own = std::process::id();
    let seen = namespace(own)?;
    // Paths of other namespaces may name other files.
    let mut processes =
        processes().filter(|id| *id != own && namespace(*id).as_ref() == Some(&seen));
    processes.find_map(|id| {
        let about = Path::new("/proc").join(id.to_string());
        let places = ["cwd", "root", "exe"].map(|name| about.join(name));
        let open = ["fd", "map_files"].map(|name| fs::read_dir(about.join(name)));
        let open = open.into_iter().flatten().flatten().flatten();
        let path = places.into_iter().chain(open.map(|entry| entry.path())).find_map(uses)?;
        let name = name_of(id);
        // The kernel adds this to names of files that are gone.
        let path = match path.as_os_str().to_str() {
            Some(text) => PathBuf::from(OsStr::new(text.trim_end_matches(" (deleted)"))),
            None => path,
        };
        Some(DiskHolder::Process { id, name, path })
    })
}
