//! Cgroups that are never frozen, whatever the configuration says.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::Hierarchy;
use crate::cgroup::PROCESSES;

/// Programs without which nobody could log in, see what is wrong, or start anything. Names are cut to 15 characters, as
/// the kernel cuts them.
const PROGRAMS: [&str; 14] = [
    "init",
    "systemd",
    "systemd-journal",
    "systemd-udevd",
    "systemd-logind",
    "sshd",
    "dbus-daemon",
    "dbus-broker",
    "containerd",
    "containerd-shim",
    "dockerd",
    "crio",
    "kubelet",
    "login",
];

/// Why a cgroup is not to be frozen; `None` if it may be. Looks at its processes and at those below it.
#[must_use]
pub(crate) fn reason(hierarchy: &Hierarchy, cgroup: &Path) -> Option<String> {
    if cgroup == hierarchy.root() {
        return Some("it is the root cgroup".to_owned());
    }
    let own = ancestors();
    let mut folders = vec![cgroup.to_owned()];
    while let Some(folder) = folders.pop() {
        let processes = fs::read_to_string(folder.join(PROCESSES)).unwrap_or_default();
        for process in processes.lines().filter_map(|line| line.parse().ok()) {
            if own.contains(&process) {
                return Some(format!("process {process} in it is luc or has started luc"));
            }
            let name = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
            if process == 1 || PROGRAMS.contains(&name.trim()) {
                return Some(format!("process {process} in it is {}", name.trim()));
            }
        }
        let below = fs::read_dir(folder).into_iter().flatten().flatten();
        folders.extend(below.map(|entry| entry.path()).filter(|path| path.is_dir()));
    }
    None
}

/// This process and those that started it.
fn ancestors() -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    let mut process = std::process::id();
    while process != 0 && found.insert(process) {
        process = parent_of(process).unwrap_or(0);
    }
    found
}

fn parent_of(process: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_and_its_parents_are_among_them() {
        let found = ancestors();
        assert!(found.contains(&std::process::id()));
        assert!(found.contains(&std::os::unix::process::parent_id()));
    }
}
