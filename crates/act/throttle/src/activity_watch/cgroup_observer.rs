//! Observes all cgroups and disks if no daemon runs.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use luc_control::throttle::policy_input::{DiskSample, TaskId, TaskSample};
use luc_probe::disk_contention::{MAX_TASKS, NotifyOn, TaskSlot};

use super::activity_sums::{ActivitySums, WatchedDiskSums, WatchedTaskSums};
use crate::daemon::TaskDiskUse;
use crate::disk_observer::{DiskObserver, ObservedDevice};
use crate::kernel_clocks::now_ns;
use crate::{CgroupHierarchy, ThrottleError};

/// An observer of all cgroups with processes. It freezes nothing and gets no notifications.
#[derive(Debug)]
pub(super) struct CgroupObserver {
    root: PathBuf,
    observer: DiskObserver,
    /// Number and slot of each cgroup, by its folder.
    watched: BTreeMap<PathBuf, (u64, TaskSlot)>,
    unwatched: usize,
}

impl CgroupObserver {
    pub(super) fn open() -> Result<Self, ThrottleError> {
        let mut plain = Self {
            root: CgroupHierarchy::find()?.root().to_owned(),
            observer: DiskObserver::open(&[])?,
            watched: BTreeMap::new(),
            unwatched: 0,
        };
        plain.rescan();
        Ok(plain)
    }

    /// Finds new cgroups, and those that are gone.
    pub(super) fn rescan(&mut self) {
        let mut found = BTreeMap::new();
        find_populated(&self.root, &mut found);
        let observer = &mut self.observer;
        self.watched.retain(|path, (id, slot)| {
            let stays = found.get(path) == Some(id);
            if !stays {
                observer.unwatch(*slot);
            }
            stays
        });
        self.unwatched = 0;
        for (path, id) in found {
            if self.watched.contains_key(&path) {
                continue;
            }
            let has_room = self.watched.len() < MAX_TASKS;
            let slot = has_room.then(|| self.observer.watch_id(id, NotifyOn::default()));
            match slot {
                Some(Ok(slot)) => {
                    self.watched.insert(path, (id, slot));
                }
                _ => self.unwatched += 1,
            }
        }
    }

    pub(super) fn sums(&self) -> ActivitySums {
        let disks = self.observer.disks();
        let on = |slot: TaskSlot| {
            disks.iter().map(move |disk| {
                let mut sample = TaskSample::new(TaskId(0));
                self.observer.fill(&mut sample, slot, disk);
                TaskDiskUse::of(&sample)
            })
        };
        let of_disk = |disk: &ObservedDevice| {
            let DiskSample { busy_ns, bytes, .. } = self.observer.disk(disk);
            WatchedDiskSums { name: disk.name.clone(), busy_ns, bytes }
        };
        let tasks = self.watched.iter().map(|(path, &(_, slot))| WatchedTaskSums {
            cgroup: name(&self.root, path),
            on: on(slot).collect(),
            ..WatchedTaskSums::default()
        });
        ActivitySums {
            at_ns: now_ns(),
            daemon: None,
            unwatched: self.unwatched,
            tasks: tasks.collect(),
            disks: disks.iter().map(of_disk).collect(),
        }
    }
}

/// Name of a cgroup below the root; "/" for the root itself.
fn name(root: &Path, path: &Path) -> String {
    match path.strip_prefix(root) {
        Ok(below) if !below.as_os_str().is_empty() => below.to_string_lossy().into_owned(),
        _ => "/".to_owned(),
    }
}

/// Finds cgroups with processes of their own, with their numbers. Cgroups that disappear meanwhile are left out.
fn find_populated(folder: &Path, found: &mut BTreeMap<PathBuf, u64>) {
    let processes = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    if !processes.is_empty()
        && let Ok(about) = fs::metadata(folder)
    {
        found.insert(folder.to_owned(), about.ino());
    }
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            find_populated(&entry.path(), found);
        }
    }
}
