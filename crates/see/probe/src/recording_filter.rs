//! Selects the threads and devices that are recorded. The kernel programs apply it.

use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use luc_events::{Cgroup, Dev};
use luc_units::OnPath as _;

use crate::ProbeError;
use crate::ring_records::{COMM, Config, DEVICES};

/// Threads that pass all of these are recorded. Commits, handles, data and requests are recorded for all
/// threads, since those who are recorded may wait for them; only `devices` limits these.
#[derive(Clone, Debug, Default)]
pub struct RecordingFilter {
    /// Record only these processes and their descendants.
    pub processes: Vec<u32>,
    /// Record only the children of this process that start during the recording, and `processes`.
    pub children: bool,
    /// Record only threads of this name, and threads of processes of this name.
    pub comm: Option<String>,
    /// Record only threads in this cgroup (version 2; its directory) or below.
    pub cgroup: Option<PathBuf>,
    /// Record only these file systems, with their disks.
    pub devices: Vec<Dev>,
}

impl RecordingFilter {
    /// Returns whether only a tree of processes is recorded.
    pub(crate) fn is_tree(&self) -> bool {
        self.children || !self.processes.is_empty()
    }

    /// Writes the filter into the programs' constants.
    pub(crate) fn fill(&self, config: &mut Config) -> Result<(), ProbeError> {
        config.own_process = std::process::id();
        config.tree = u32::from(self.is_tree());
        if let Some(comm) = &self.comm {
            if comm.is_empty() || comm.len() >= COMM || comm.contains('\0') {
                return Err(ProbeError::Filter(format!(
                    "'{comm}' is no thread's name: the kernel keeps 1 to {} bytes of it",
                    COMM - 1
                )));
            }
            config.comm_length = comm.len() as u32;
            config.comm[..comm.len()].copy_from_slice(comm.as_bytes());
        }
        if let Some(path) = &self.cgroup {
            config.cgroup = cgroup_id(path)?.0;
        }
        let mut devices = self.devices.clone();
        devices.extend(
            self.devices.iter().filter_map(|dev| crate::mounted_file_systems::disk_of(*dev)),
        );
        devices.sort_unstable();
        devices.dedup();
        if devices.len() > DEVICES {
            return Err(ProbeError::Filter(format!(
                "too many devices: at most {DEVICES} file systems and disks together"
            )));
        }
        config.device_count = devices.len() as u32;
        for (place, dev) in config.devices.iter_mut().zip(devices) {
            *place = dev.0;
        }
        Ok(())
    }

    /// Returns the present processes of the tree.
    pub(crate) fn tree_now(&self) -> Result<Vec<u32>, ProbeError> {
        if self.processes.is_empty() {
            return Ok(Vec::new());
        }
        let parents = parents()?;
        for process in &self.processes {
            if !parents.iter().any(|(known, _)| known == process) {
                return Err(ProbeError::Filter(format!("there is no process {process}: see `ps`")));
            }
        }
        Ok(descendants(&self.processes, &parents))
    }
}

impl fmt::Display for RecordingFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words: Vec<String> = Vec::new();
        if self.children {
            words.push("command".to_owned());
        }
        words.extend(self.processes.iter().map(|process| format!("pid {process}")));
        words.extend(self.comm.iter().map(|comm| format!("comm {comm}")));
        words.extend(self.cgroup.iter().map(|path| format!("cgroup {}", path.display())));
        words.extend(self.devices.iter().map(|dev| format!("device {dev}")));
        f.write_str(&words.join(", "))
    }
}

/// A cgroup's id: the inode number of its directory.
fn cgroup_id(path: &Path) -> Result<Cgroup, ProbeError> {
    let found = fs::metadata(path).map_err(ProbeError::io("look at cgroup", path))?;
    if !path.join("cgroup.procs").exists() {
        return Err(ProbeError::Filter(format!(
            "{} is no cgroup: name a directory below /sys/fs/cgroup",
            path.display()
        )));
    }
    Ok(Cgroup(found.ino()))
}

/// Every process and its parent.
fn parents() -> Result<Vec<(u32, u32)>, ProbeError> {
    let entries = fs::read_dir("/proc").map_err(ProbeError::io("list", "/proc"))?;
    Ok(entries
        .flatten()
        .filter_map(|entry| {
            let process: u32 = entry.file_name().to_str()?.parse().ok()?;
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            Some((process, parent_in(&stat)?))
        })
        .collect())
}

/// Returns the parent in a line of `/proc/PID/stat`, whose second field may have blanks and parentheses.
fn parent_in(stat: &str) -> Option<u32> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

/// `roots` and all that descends from them.
fn descendants(roots: &[u32], parents: &[(u32, u32)]) -> Vec<u32> {
    let mut found = roots.to_vec();
    let mut next = 0;
    while let Some(&above) = found.get(next) {
        next += 1;
        for &(process, parent) in parents {
            if parent == above && !found.contains(&process) {
                found.push(process);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_has_all_generations() {
        let parents = [(10, 1), (11, 10), (12, 11), (20, 1), (21, 20)];
        assert_eq!(descendants(&[10], &parents), [10, 11, 12]);
        assert_eq!(descendants(&[20, 21], &parents), [20, 21]);
    }

    #[test]
    fn a_name_with_parentheses_does_not_confuse() {
        assert_eq!(parent_in("7 (a) b (c)) S 3 7 7 0"), Some(3));
        assert_eq!(parent_in(""), None);
    }

    #[test]
    fn words_name_every_part() {
        let filter = RecordingFilter {
            processes: vec![7],
            children: true,
            comm: Some("db".to_owned()),
            cgroup: Some("/sys/fs/cgroup/x".into()),
            devices: vec![Dev::new(8, 1)],
        };
        assert_eq!(
            filter.to_string(),
            "command, pid 7, comm db, cgroup /sys/fs/cgroup/x, device 8:1"
        );
    }
}
