//! Cgroups that are never frozen, regardless of the configuration.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::CgroupHierarchy;
use crate::cgroup::{PROCESSES, read_ids};

/// Programs that are needed to log in, to see what is wrong, or to start anything. Names are cut to 15 characters, like
/// those of the kernel.
const EXEMPT_PROGRAMS: [&str; 14] = [
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

/// Major device numbers of consoles and serial lines, and of `/dev/console`.
const CONSOLE_MAJORS: [u32; 2] = [4, 5];

/// Reason why a cgroup must not be frozen; `None` if it may be. Checks its processes and those of cgroups below it.
#[must_use]
pub(crate) fn reason(hierarchy: &CgroupHierarchy, cgroup: &Path) -> Option<String> {
    if cgroup == hierarchy.root() {
        return Some("it is the root cgroup".to_owned());
    }
    let own = ancestors();
    let mut folders = vec![cgroup.to_owned()];
    while let Some(folder) = folders.pop() {
        for process in read_ids(&folder.join(PROCESSES)).unwrap_or_default() {
            if own.contains(&process) {
                return Some(format!("process {process} in it is luc or has started luc"));
            }
            let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
            let name = program_name(&stat);
            if is_console(&stat) {
                return Some(format!("process {process} in it ({name}) has a console"));
            }
            if process == 1 || EXEMPT_PROGRAMS.contains(&name) {
                return Some(format!("process {process} in it is {name}"));
            }
        }
        let below = fs::read_dir(folder).into_iter().flatten().flatten();
        folders.extend(below.map(|entry| entry.path()).filter(|path| path.is_dir()));
    }
    None
}

/// Returns the program's name in `/proc/PID/stat`, cut like those of the kernel.
fn program_name(stat: &str) -> &str {
    let name = stat.split_once('(').and_then(|(_, rest)| rest.rsplit_once(')'));
    name.map_or("", |(name, _)| name)
}

/// Whether the process of this `/proc/PID/stat` has a console for logins: a virtual console or a serial line.
///
/// Terminals of ssh and tmux do not count. The terminal's number is the fifth word after the program's name.
fn is_console(stat: &str) -> bool {
    let terminal = stat
        .rsplit_once(')')
        .and_then(|(_, rest)| rest.split_whitespace().nth(4)?.parse::<u32>().ok())
        .unwrap_or(0);
    let major = (terminal >> 8) & 0xfff;
    CONSOLE_MAJORS.contains(&major)
}

/// Lists this process and its ancestors.
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
    fn a_console_is_no_pseudo_terminal() {
        let stat = |terminal: u32| format!("7 (a ) b) S 1 7 7 {terminal} -1 4194304");
        assert!(is_console(&stat(4 << 8 | 1)));
        assert!(!is_console(&stat(136 << 8 | 3)));
        assert!(!is_console(&stat(0)) && !is_console(""));
        assert_eq!(program_name(&stat(0)), "a ) b");
        assert_eq!(program_name("7 a"), "");
    }

    #[test]
    fn this_process_and_its_parents_are_among_them() {
        let found = ancestors();
        assert!(found.contains(&std::process::id()));
        assert!(found.contains(&std::os::unix::process::parent_id()));
    }
}
