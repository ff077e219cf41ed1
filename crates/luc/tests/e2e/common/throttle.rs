//! Parts that tests of `luc throttle` share.

#![allow(dead_code, reason = "each test program uses a part of it")]

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::EmulatedTestDisk;

/// Mount point of cgroup v2.
pub(crate) fn cgroups() -> PathBuf {
    let mounts = fs::read_to_string("/proc/mounts").expect("readable");
    let mounted = mounts
        .lines()
        .map(|line| line.split(' ').collect::<Vec<_>>())
        .find(|words| words[2] == "cgroup2");
    PathBuf::from(mounted.expect("cgroup v2")[1])
}

/// The cgroups of the tasks of a throttle.
pub(crate) fn tasks_of(throttle: u32) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![cgroups()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if !path.is_dir() {
                continue;
            }
            let is_task = entry.file_name().to_string_lossy().starts_with("task-");
            let is_of = path.parent().is_some_and(|parent| {
                parent.file_name() == Some(format!("luc-throttle-{throttle}").as_ref())
            });
            if is_task && is_of {
                found.push(path.clone());
            }
            folders.push(path);
        }
    }
    found
}

pub(crate) fn is_frozen(cgroup: &Path) -> bool {
    fs::read_to_string(cgroup.join("cgroup.freeze")).is_ok_and(|text| text.trim() == "1")
}

pub(crate) fn processes(cgroup: &Path) -> Vec<i32> {
    let text = fs::read_to_string(cgroup.join("cgroup.procs")).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

/// The name of the loop device of an emulated disk.
pub(crate) fn device(disk: &EmulatedTestDisk) -> String {
    let mounts = fs::read_to_string("/proc/mounts").expect("readable");
    let mount = disk.mount();
    let line = mounts.lines().find(|line| line.split(' ').nth(1) == Some(&mount));
    let name = line.and_then(|line| line.split(' ').next()).expect("mounted");
    name.trim_start_matches("/dev/").to_owned()
}
