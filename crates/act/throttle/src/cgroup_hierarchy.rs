//! Finds the cgroup v2 hierarchy, and checks whether its cgroups can be frozen.

use std::path::{Path, PathBuf};

use luc_host::mountinfo::{self, MountEntry};

use crate::ThrottleError;

/// The mounted hierarchy of cgroups, version 2.
#[derive(Clone, Debug)]
pub struct CgroupHierarchy {
    root: PathBuf,
}

impl CgroupHierarchy {
    /// Finds it, and checks that this process may freeze its cgroups.
    pub fn find() -> Result<Self, ThrottleError> {
        if !rustix::process::geteuid().is_root() {
            return Err(ThrottleError::Privileges);
        }
        let mounts = mountinfo::mounts()
            .map_err(ThrottleError::cgroup("read", Path::new(mountinfo::MOUNTINFO)))?;
        Ok(Self { root: root_of(&mounts)? })
    }

    /// Folder of the root cgroup.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Cgroup of a process, by `/proc/PID/cgroup`.
    ///
    /// # Errors
    ///
    /// [`ThrottleError::Cgroup`]: the process is gone.
    pub fn of_process(&self, process: u32) -> Result<PathBuf, ThrottleError> {
        let path = PathBuf::from(format!("/proc/{process}/cgroup"));
        let text = std::fs::read_to_string(&path).map_err(ThrottleError::cgroup("read", &path))?;
        let own = text.lines().find_map(|line| line.strip_prefix("0::/"));
        Ok(self.root.join(own.unwrap_or_default()))
    }
}

/// Mount point of the first cgroup2 mount that can be written.
fn root_of(mounts: &[MountEntry]) -> Result<PathBuf, ThrottleError> {
    let mut read_only = None;
    for mount in mounts.iter().filter(|mount| mount.kind == "cgroup2") {
        let is_read_only = |options: &str| options.split(',').any(|option| option == "ro");
        if is_read_only(&mount.options) || is_read_only(&mount.super_options) {
            read_only.get_or_insert_with(|| mount.mount_point.clone());
        } else {
            return Ok(mount.mount_point.clone());
        }
    }
    Err(read_only.map_or(ThrottleError::NoCgroup2, ThrottleError::ReadOnly))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Result<PathBuf, String> {
        root_of(&mountinfo::parse(text.as_bytes())).map_err(|error| error.to_string())
    }

    #[test]
    fn the_unified_mount_beside_version_1() {
        let text = "30 23 0:26 / /sys/fs/cgroup ro,nosuid - tmpfs tmpfs ro,mode=755\n\
                    31 30 0:27 / /sys/fs/cgroup/unified rw,nosuid - cgroup2 cgroup2 rw\n\
                    32 30 0:28 / /sys/fs/cgroup/freezer rw,nosuid - cgroup cgroup rw,freezer\n";
        assert_eq!(found(text), Ok(PathBuf::from("/sys/fs/cgroup/unified")));
    }

    #[test]
    fn version_1_alone_and_containers_are_refused_in_words() {
        let version_1 =
            "32 30 0:28 / /sys/fs/cgroup/freezer rw,nosuid - cgroup cgroup rw,freezer\n";
        let said = found(version_1).expect_err("no version 2");
        assert!(said.starts_with("no cgroup v2 hierarchy is mounted"), "{said}");
        let container = "31 30 0:27 / /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw\n";
        let said = found(container).expect_err("read-only");
        assert!(said.starts_with("/sys/fs/cgroup is read-only"), "{said}");
    }
}
