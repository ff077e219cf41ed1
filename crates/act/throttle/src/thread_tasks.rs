//! Makes the threads of a task tasks of their own, so that the threads of one program take turns, too.
//!
//! Each thread gets a threaded cgroup (`cgroup.type`) below the task's, and its `cgroup.freeze` stops the thread
//! alone. A new thread begins in its parent thread's cgroup, so all cgroups are searched again and again. Meanwhile
//! the task's cgroup is of type `domain threaded`: it cannot give controllers of block I/O or memory to cgroups below
//! it.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use luc_control::throttle::policy_input::{TaskClass, TaskId};

use crate::cgroup::{FreezableCgroup, THREADS, read_ids};
use crate::engine::{FreezeTotals, TaskProperties, ThrottleEngine};
use crate::{ThrottleError, kernel_clocks};

/// Interval between two searches for new threads, ns.
pub(crate) const LOOK_INTERVAL_NS: u64 = 20_000_000;
/// Name prefix of the cgroups. The thread's id follows.
const CGROUP_PREFIX: &str = "luc-thread-";

/// A task whose threads take turns.
#[derive(Debug)]
pub(crate) struct ThreadTasks {
    task: PathBuf,
    threads: BTreeMap<u32, TaskId>,
    /// Totals of the threads that have ended.
    totals: FreezeTotals,
    look_ns: u64,
}

impl ThreadTasks {
    /// Makes tasks of the threads of the cgroup at `task`. Takes over cgroups that a killed throttle has left there.
    pub(crate) fn of(task: &Path) -> Self {
        Self {
            task: task.to_owned(),
            threads: BTreeMap::new(),
            totals: FreezeTotals::default(),
            look_ns: 0,
        }
    }

    fn folder(&self, thread: u32) -> PathBuf {
        self.task.join(format!("{CGROUP_PREFIX}{thread}"))
    }

    /// Gives new threads a cgroup and forgets those that have ended. Returns the time of the next look, ns.
    ///
    /// # Errors
    ///
    /// [`ThrottleError::Cgroup`]: the task's cgroup cannot have threaded ones. Those of [`ThrottleEngine::add`].
    pub(crate) fn look(&mut self, engine: &mut ThrottleEngine) -> Result<u64, ThrottleError> {
        let now_ns = kernel_clocks::now_ns();
        if now_ns < self.look_ns {
            return Ok(self.look_ns);
        }
        self.look_ns = now_ns + LOOK_INTERVAL_NS;
        for thread in members(&self.task) {
            self.adopt(engine, thread)?;
        }
        for folder in self.folders() {
            let Some(own) = thread_of(&folder) else {
                continue;
            };
            let members = members(&folder);
            if members.is_empty() {
                self.forget(engine, own)?;
                continue;
            }
            for thread in members {
                if thread != own || !self.threads.contains_key(&own) {
                    self.adopt(engine, thread)?;
                }
            }
        }
        Ok(self.look_ns)
    }

    /// The threads with their cgroups.
    pub(crate) fn tasks(&self) -> impl Iterator<Item = (PathBuf, TaskId)> {
        let threads = self.threads.iter();
        threads.map(|(thread, id)| (self.folder(*thread), *id))
    }

    /// Cgroups of threads, of this throttle and of killed ones.
    fn folders(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.task).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).filter(|path| thread_of(path).is_some()).collect()
    }

    fn adopt(&mut self, engine: &mut ThrottleEngine, thread: u32) -> Result<(), ThrottleError> {
        let folder = self.folder(thread);
        let failed = |what| ThrottleError::cgroup(what, &folder);
        match fs::create_dir(&folder) {
            Ok(()) => fs::write(folder.join("cgroup.type"), "threaded")
                .map_err(failed("make a threaded cgroup of"))?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            // The task has ended.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(failed("make")(error)),
        }
        if let Err(error) = fs::write(folder.join(THREADS), thread.to_string()) {
            // It has ended.
            let _ = fs::remove_dir(&folder);
            return match error.raw_os_error() {
                Some(libc::ESRCH) => Ok(()),
                _ => Err(failed("move a thread into")(error)),
            };
        }
        if let Entry::Vacant(place) = self.threads.entry(thread) {
            place.insert(
                engine
                    .add(FreezableCgroup::open(&folder)?, TaskProperties::of(TaskClass::Batch))?,
            );
        }
        Ok(())
    }

    fn forget(&mut self, engine: &mut ThrottleEngine, thread: u32) -> Result<(), ThrottleError> {
        if let Some(id) = self.threads.remove(&thread) {
            self.totals.add(engine.end_task(id)?);
        }
        // A thread that has just been born in it keeps it.
        let _ = fs::remove_dir(self.folder(thread));
        Ok(())
    }

    /// Moves all threads back into the task's cgroup. Returns the totals of their freezes.
    pub(crate) fn end(
        &mut self,
        engine: &mut ThrottleEngine,
    ) -> Result<FreezeTotals, ThrottleError> {
        for id in std::mem::take(&mut self.threads).into_values() {
            self.totals.add(engine.end_task(id)?);
        }
        self.clear();
        Ok(self.totals)
    }

    /// Removes the cgroups, which are thawed.
    pub(crate) fn clear(&self) {
        for folder in self.folders() {
            // Twice: a thread may be born while its maker is moved.
            for _ in 0..2 {
                for thread in members(&folder) {
                    let _ = fs::write(self.task.join(THREADS), thread.to_string());
                }
            }
            let _ = fs::remove_dir(&folder);
        }
    }
}

/// Threads in a cgroup; none if it is gone.
fn members(cgroup: &Path) -> Vec<u32> {
    read_ids(&cgroup.join(THREADS)).unwrap_or_default()
}

/// Whether a throttle has made this cgroup for a thread.
pub(crate) fn is_of_thread(path: &Path) -> bool {
    thread_of(path).is_some()
}

/// Thread of a cgroup that was made for one.
fn thread_of(path: &Path) -> Option<u32> {
    let name = path.file_name()?.to_str()?;
    name.strip_prefix(CGROUP_PREFIX)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_cgroups_of_threads_are_ours() {
        assert_eq!(thread_of(Path::new("/c/task-0/luc-thread-17")), Some(17));
        assert_eq!(thread_of(Path::new("/c/task-0/luc-thread-x")), None);
        assert_eq!(thread_of(Path::new("/c/task-0/other")), None);
    }
}
