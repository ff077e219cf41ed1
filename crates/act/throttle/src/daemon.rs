//! The daemon: throttles cgroups that match patterns, as long as they exist.

mod daemon_lock;
mod metrics;
mod publish_status;
mod systemd_notify;
mod throttle_status;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use luc_control::throttle::policy_input::{TaskClass, TaskId};
use luc_host::interrupt_flag::interrupted;
use rustix::fd::OwnedFd;

use crate::cgroup::FreezableCgroup;
use crate::config::{TaskTreatment, ThrottleConfig};
use crate::engine::{EngineOptions, TaskProperties, ThrottleEngine};
use crate::kernel_clocks::now_ns;
use crate::lock_in_memory::stay_resident;
use crate::thread_tasks::ThreadTasks;
use crate::{CgroupHierarchy, PolicyChoice, ThrottleError, exempt_cgroups};
use daemon_lock::DaemonLock;
use publish_status::StatusPublisher;
use systemd_notify::SystemdNotifier;
use throttle_status::ListedTask;
pub use throttle_status::{
    DiskStatus, TaskDiskUse, TaskStatus, ThrottleStatus, path as status_path,
};

/// Interval between searches for cgroups, and between writes of the status, ns.
const RESCAN_INTERVAL_NS: u64 = 1_000_000_000;

/// Number of searches after which all processes of batch are looked at again. Each costs a read of some 40 us.
const SEARCHES_PER_FULL_LOOK: u64 = 5;
/// Name prefix of the daemon's own cgroup, for its guardian. The daemon's process id follows.
const OWN_PREFIX: &str = "luc-throttle-";

#[derive(Debug)]
struct Daemon {
    hierarchy: CgroupHierarchy,
    config: ThrottleConfig,
    engine: ThrottleEngine,
    parent: FreezableCgroup,
    publisher: StatusPublisher,
    /// Tasks by their cgroup.
    tasks: BTreeMap<PathBuf, DaemonTask>,
    /// Whether a rule makes threads tasks.
    has_threads: bool,
    /// Number of searches for cgroups so far.
    searches: u64,
    /// Matching cgroups that are left alone, and the reason that was said last.
    refused: BTreeMap<PathBuf, String>,
}

#[derive(Debug)]
struct DaemonTask {
    work: Work,
    rule: TaskTreatment,
    /// Number of the cgroup: a new cgroup may have taken its name.
    cgroup_id: u64,
}

/// Parts of a cgroup that take turns.
#[derive(Debug)]
enum Work {
    Whole(TaskId),
    Threads(ThreadTasks),
}

/// Runs until SIGINT, SIGTERM or SIGHUP. The caller has installed [`luc_host::interrupt_flag`]. `luc` is this program;
/// `say` gets lines for the log.
///
/// # Errors
///
/// Unmet requirements of this machine. Nothing is frozen then.
pub fn run(
    luc: &Path,
    config: ThrottleConfig,
    policy: PolicyChoice,
    say: &mut dyn FnMut(&str),
) -> Result<(), ThrottleError> {
    let hierarchy = CgroupHierarchy::find()?;
    let _lock = DaemonLock::take(&luc_host::run_dir::path().join("throttle"))?;
    remove_leftovers(hierarchy.root());
    let parent = FreezableCgroup::create(
        &hierarchy.root().join(format!("{OWN_PREFIX}{}", std::process::id())),
    )?;
    let options = EngineOptions {
        policy,
        disks: config.disks.clone(),
        max_frozen_ns: config.max_frozen_ns,
        batch_floor: config.batch_floor,
    };
    let started = ThrottleEngine::start(&hierarchy, parent.path(), luc, options);
    let engine = match started {
        Ok(Some(engine)) => engine,
        other => {
            parent.remove(hierarchy.root())?;
            return other.map(|_| ());
        }
    };
    let mut daemon = Daemon {
        hierarchy,
        publisher: StatusPublisher::start(config.metrics.clone()),
        config,
        engine,
        parent,
        tasks: BTreeMap::new(),
        has_threads: false,
        searches: 0,
        refused: BTreeMap::new(),
    };
    if let Err(error) = stay_resident() {
        say(&format!("memory cannot be locked: {error}; a thaw may wait for a page from a disk"));
    }
    let outcome = daemon.serve(say);
    outcome.and(daemon.end())
}

/// Removes the cgroups of killed daemons and their guardians. A living process may be about to fill its cgroup, so that
/// stays.
fn remove_leftovers(root: &Path) {
    let entries = std::fs::read_dir(root).into_iter().flatten().flatten();
    for left in entries.filter(|entry| is_of_dead(&entry.file_name())) {
        // The kernel refuses both while a process is in the guardian's cgroup.
        let guardian = std::fs::remove_dir(left.path().join(crate::engine::GUARDIAN));
        let _ = guardian.and(std::fs::remove_dir(left.path()));
    }
}

/// Whether a cgroup's name is that of a daemon that has died.
fn is_of_dead(name: &OsStr) -> bool {
    let process = name.to_str().and_then(|name| name.strip_prefix(OWN_PREFIX));
    process.is_some_and(|id| id.parse::<u32>().is_ok() && !Path::new("/proc").join(id).exists())
}

impl Daemon {
    fn serve(&mut self, say: &mut dyn FnMut(&str)) -> Result<(), ThrottleError> {
        let notifier = SystemdNotifier::from_environment();
        let nothing: [OwnedFd; 0] = [];
        let mut rescan_ns = 0;
        let mut is_ready = false;
        while !interrupted() {
            let now = now_ns();
            if now >= rescan_ns {
                self.rescan(say)?;
                self.publish(say);
                notifier.alive();
                rescan_ns = now + RESCAN_INTERVAL_NS;
            }
            if !is_ready {
                notifier.ready();
                say(&format!("{} tasks", self.tasks.len()));
                is_ready = true;
            }
            let until_ns = self.engine.look()?.min(rescan_ns);
            let until_ns = until_ns.min(self.look_at_threads(say)?);
            for notice in self.engine.take_notices() {
                say(&notice.to_string());
            }
            self.engine.wait(until_ns, &nothing)?;
        }
        notifier.stopping();
        Ok(())
    }

    /// Adds new cgroups, and forgets those that are gone.
    fn rescan(&mut self, say: &mut dyn FnMut(&str)) -> Result<(), ThrottleError> {
        // 1. Tasks whose cgroup or rule has changed, or which may no longer be frozen.
        let wanted = self.config.cgroups(self.hierarchy.root(), self.parent.path());
        let spared = list_spared(&wanted);
        self.searches += 1;
        let is_full_look = self.searches.is_multiple_of(SEARCHES_PER_FULL_LOOK);
        let gone: Vec<PathBuf> = self
            .tasks
            .iter()
            .filter(|(path, task)| {
                wanted.get(*path).is_none_or(|rule| *rule != task.rule)
                    || (task.rule.class == TaskClass::Batch
                        && (spared_below(&spared, path).is_some()
                            || is_full_look
                                && exempt_cgroups::reason(&self.hierarchy, path).is_some()))
                    || std::fs::metadata(path).is_ok_and(|now| now.ino() != task.cgroup_id)
            })
            .map(|(path, _)| path.clone())
            .collect();
        for path in gone {
            self.forget(&path)?;
        }
        // 2. New cgroups, and those that were left alone: the reason may have gone.
        self.refused.retain(|path, _| wanted.contains_key(path));
        self.has_threads = wanted.values().any(|rule| rule.threads);
        for (path, rule) in wanted {
            if self.tasks.contains_key(&path) {
                continue;
            }
            if rule.class == TaskClass::Batch
                && let Some(reason) = exempt_cgroups::reason(&self.hierarchy, &path)
                    .or_else(|| spared_below(&spared, &path))
            {
                self.leave_alone(path, format!("is never frozen: {reason}"), say);
                continue;
            }
            // The cgroup may have just gone.
            let Ok(cgroup) = FreezableCgroup::open(&path) else {
                continue;
            };
            let cgroup_id = cgroup.id();
            let work = if rule.threads {
                Ok(Work::Threads(ThreadTasks::of(&path)))
            } else {
                let kind = TaskProperties { p99_ns: rule.p99_ns, ..TaskProperties::of(rule.class) };
                self.engine.add(cgroup, kind).map(Work::Whole)
            };
            match work {
                Ok(work) => {
                    self.tasks.insert(path, DaemonTask { work, rule, cgroup_id });
                }
                Err(error) => self.leave_alone(path, format!("is left alone: {error}"), say),
            }
        }
        Ok(())
    }

    /// Says why a cgroup is left alone, once for each reason.
    fn leave_alone(&mut self, path: PathBuf, reason: String, say: &mut dyn FnMut(&str)) {
        if self.refused.get(&path) != Some(&reason) {
            say(&format!("{} {reason}", path.display()));
            self.refused.insert(path, reason);
        }
    }

    fn forget(&mut self, path: &Path) -> Result<(), ThrottleError> {
        match self.tasks.remove(path).map(|task| task.work) {
            Some(Work::Whole(id)) => self.engine.end_task(id).map(|_| ()),
            Some(Work::Threads(mut threads)) => threads.end(&mut self.engine).map(|_| ()),
            None => Ok(()),
        }
    }

    /// Finds new threads. Returns the time of the next look, ns.
    fn look_at_threads(&mut self, say: &mut dyn FnMut(&str)) -> Result<u64, ThrottleError> {
        let mut look_again_ns = u64::MAX;
        if !self.has_threads {
            return Ok(look_again_ns);
        }
        let mut unfit = Vec::new();
        for (path, task) in &mut self.tasks {
            let Work::Threads(threads) = &mut task.work else {
                continue;
            };
            match threads.look(&mut self.engine) {
                Ok(again_ns) => look_again_ns = look_again_ns.min(again_ns),
                Err(error) => unfit.push((path.clone(), format!("is left alone: {error}"))),
            }
        }
        for (path, reason) in unfit {
            self.forget(&path)?;
            self.leave_alone(path, reason, say);
        }
        Ok(look_again_ns)
    }

    /// Publishes the status for `luc throttle status` and Prometheus.
    fn publish(&self, say: &mut dyn FnMut(&str)) {
        self.publisher.publish(ThrottleStatus::of(&self.engine, &self.tasks()));
        for line in self.publisher.take_errors() {
            say(&line);
        }
    }

    fn tasks(&self) -> Vec<ListedTask> {
        let root = self.hierarchy.root();
        let mut all = Vec::new();
        for (path, task) in &self.tasks {
            let listed = |path: &Path, id| ListedTask {
                cgroup: path.strip_prefix(root).unwrap_or(path).to_owned(),
                id,
                class: task.rule.class,
            };
            match &task.work {
                Work::Whole(id) => all.push(listed(path, *id)),
                Work::Threads(threads) => {
                    all.extend(threads.tasks().map(|(path, id)| listed(&path, id)));
                }
            }
        }
        all
    }

    fn end(mut self) -> Result<(), ThrottleError> {
        let paths: Vec<PathBuf> = self.tasks.keys().cloned().collect();
        for path in paths {
            self.forget(&path)?;
        }
        let ended = self.engine.end();
        drop(self.publisher);
        ended.and(self.parent.remove(self.hierarchy.root()))
    }
}

/// Lists the cgroups that no rule allows to freeze.
fn list_spared(wanted: &BTreeMap<PathBuf, TaskTreatment>) -> Vec<PathBuf> {
    let spared = wanted.iter().filter(|(_, rule)| rule.class != TaskClass::Batch);
    spared.map(|(path, _)| path.clone()).collect()
}

/// Reason why a cgroup cannot be frozen: a cgroup below it, which would be frozen with it, must not be.
fn spared_below(spared: &[PathBuf], path: &Path) -> Option<String> {
    let below = spared.iter().find(|other| other.starts_with(path))?;
    Some(format!("{} below it is not to be frozen", below.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cgroup_above_a_protected_one_is_spared() {
        let classes = [
            ("/c/batch", TaskClass::Batch),
            ("/c/batch/db", TaskClass::Protected),
            ("/c/batch-2", TaskClass::Batch),
            ("/c/other/quiet", TaskClass::Ignored),
            ("/c/other", TaskClass::Batch),
        ];
        let kind = |class| TaskTreatment { class, threads: false, p99_ns: None };
        let wanted = classes.map(|(path, class)| (PathBuf::from(path), kind(class)));
        let spared = list_spared(&BTreeMap::from(wanted));
        let is_spared = |path: &str| spared_below(&spared, Path::new(path)).is_some();
        assert!(is_spared("/c/batch") && is_spared("/c/other"));
        assert!(!is_spared("/c/batch-2"));
    }

    #[test]
    fn cgroups_of_killed_daemons_are_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let name = |name: &str| folder.path().join(name);
        let own = format!("luc-throttle-{}", std::process::id());
        // Above the highest process number that the kernel gives.
        let dead = "luc-throttle-4194305";
        for path in [&format!("{dead}/guardian"), &own, "luc-throttle-x", "other"] {
            std::fs::create_dir_all(name(path)).expect("made");
        }
        remove_leftovers(folder.path());
        assert!(!name(dead).exists());
        assert!(name(&own).exists() && name("luc-throttle-x").exists() && name("other").exists());
    }
}
