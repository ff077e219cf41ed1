//! All cgroups and disks, where no daemon runs.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use luc_control::throttle::sample::{TaskId, TaskSample};
use luc_probe::contention::{MAX_TASKS, Notify, TaskSlot};

use super::sums::{DiskSums, Sums, TaskSums, UseSums};
use crate::clock::now_ns;
use crate::observer::Observer;
use crate::{Hierarchy, ThrottleError};

/// An observer of all cgroups with processes. Nobody is frozen, nothing gives notice.
#[derive(Debug)]
pub(super) struct Plain {
    root: PathBuf,
    observer: Observer,
    /// By folder: the cgroup's number, and its place.
    watched: BTreeMap<PathBuf, (u64, TaskSlot)>,
    unwatched: usize,
}

impl Plain {
    pub(super) fn open() -> Result<Self, ThrottleError> {
        let mut plain = Self {
            root: Hierarchy::find()?.root().to_owned(),
            observer: Observer::open(&[])?,
            watched: BTreeMap::new(),
            unwatched: 0,
        };
        plain.rescan();
        Ok(plain)
    }

    /// Finds cgroups that have come or gone.
    pub(super) fn rescan(&mut self) {
        let mut found = BTreeMap::new();
        populated(&self.root, &mut found);
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
            let slot = has_room.then(|| self.observer.watch_id(id, Notify::default()));
            match slot {
                Some(Ok(slot)) => {
                    self.watched.insert(path, (id, slot));
                }
                _ => self.unwatched += 1,
            }
        }
    }

    pub(super) fn sums(&self) -> Sums {
        let disks = self.observer.disks();
        let on = |slot: TaskSlot| {
            disks.iter().map(move |disk| {
                let mut sample = TaskSample::new(TaskId(0));
                self.observer.fill(&mut sample, slot, disk);
                UseSums::of(&sample)
            })
        };
        let tasks = self.watched.iter().map(|(path, &(_, slot))| TaskSums {
            cgroup: name(&self.root, path),
            on: on(slot).collect(),
            ..TaskSums::default()
        });
        Sums {
            at_ns: now_ns(),
            daemon: None,
            unwatched: self.unwatched,
            tasks: tasks.collect(),
            disks: disks
                .iter()
                .map(|disk| {
                    let sample = self.observer.disk(disk);
                    DiskSums {
                        name: disk.name.clone(),
                        busy_ns: sample.busy_ns,
                        bytes: sample.bytes,
                    }
                })
                .collect(),
        }
    }
}

fn name(root: &Path, path: &Path) -> String {
    match path.strip_prefix(root) {
        Ok(below) if !below.as_os_str().is_empty() => below.to_string_lossy().into_owned(),
        _ => "/".to_owned(),
    }
}

/// Cgroups with processes of their own, with their numbers. What goes meanwhile is left out.
fn populated(folder: &Path, found: &mut BTreeMap<PathBuf, u64>) {
    let processes = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    if !processes.is_empty()
        && let Ok(about) = fs::metadata(folder)
    {
        found.insert(folder.to_owned(), about.ino());
    }
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            populated(&entry.path(), found);
        }
    }
}
