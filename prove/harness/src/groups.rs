//! Cgroups that are removed when their values are dropped.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::error::EvaluateError;

/// Prefix of the names; a process id and a number follow.
const PREFIX: &str = "luc-evaluate-";

/// A cgroup (version 2) that is removed when this value is dropped. Its processes must have ended by then.
#[derive(Debug)]
pub struct Group {
    pub path: PathBuf,
    /// Its id, as traces have it.
    pub id: u64,
}

impl Group {
    /// Makes a cgroup under `root`, the number `number` of this process.
    pub fn create(root: &Path, number: usize) -> Result<Self, EvaluateError> {
        let name = format!("{PREFIX}{}-{number}", std::process::id());
        let path = root.join(name);
        fs::create_dir(&path).map_err(EvaluateError::file("make", &path))?;
        let mut group = Self { path, id: 0 };
        let about =
            fs::metadata(&group.path).map_err(EvaluateError::file("look at", &group.path))?;
        group.id = about.ino();
        Ok(group)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir(&self.path) {
            eprintln!("luc-evaluate: {} is left: {error}", self.path.display());
        }
    }
}

/// Returns the mount point of version 2, cleared of cgroups that killed evaluations left; `None` if it is not mounted.
pub fn root() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let root = mounts.lines().find_map(|line| {
        let mut words = line.split(' ');
        let (path, kind) = (words.nth(1)?, words.next()?);
        (kind == "cgroup2").then(|| PathBuf::from(path))
    })?;
    // Only of processes that are gone; a cgroup in use cannot be removed anyway.
    let left = fs::read_dir(&root).ok()?.flatten().filter(|entry| {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('-').next());
        process.is_some_and(|process| !Path::new("/proc").join(process).exists())
    });
    for entry in left {
        let _: io::Result<()> = fs::remove_dir(entry.path());
    }
    Some(root)
}
