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

/// Majors of consoles and of serial lines, and of `/dev/console`.
const CONSOLES: [u32; 2] = [4, 5];

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
            if holds_console(process) {
                return Some(format!("process {process} in it ({}) has a console", name.trim()));
            }
            if process == 1 || PROGRAMS.contains(&name.trim()) {
                return Some(format!("process {process} in it is {}", name.trim()));
            }
        }
        let below = fs::read_dir(folder).into_iter().flatten().flatten();
        folders.extend(below.map(|entry| entry.path()).filter(|path| path.is_dir()));
    }
    None
}

/// Whether somebody logs in there: a virtual console, a serial line. Terminals of ssh and tmux are none.
fn holds_console(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    is_console(&stat)
}

/// `stat` is as in `/proc/PID/stat`: the terminal's number is the fifth word after the program's name.
fn is_console(stat: &str) -> bool {
    let terminal = stat
        .rsplit_once(')')
        .and_then(|(_, rest)| rest.split_whitespace().nth(4)?.parse::<u32>().ok())
        .unwrap_or(0);
    let major = (terminal >> 8) & 0xfff;
    CONSOLES.contains(&major)
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
    fn a_console_is_no_pseudo_terminal() {
        let stat = |terminal: u32| format!("7 (a ) b) S 1 7 7 {terminal} -1 4194304");
        assert!(is_console(&stat(4 << 8 | 1)));
        assert!(!is_console(&stat(136 << 8 | 3)));
        assert!(!is_console(&stat(0)) && !is_console(""));
    }

    #[test]
    fn this_process_and_its_parents_are_among_them() {
        let found = ancestors();
        assert!(found.contains(&std::process::id()));
        assert!(found.contains(&std::os::unix::process::parent_id()));
    }
}
