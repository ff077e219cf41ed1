//! The daemon: cgroups by pattern as tasks, for as long as they are there.

mod lock;
mod metrics;
mod notify;
mod publish;
mod status;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use luc_control::throttle::sample::{Class, TaskId};
use luc_host::interrupt::interrupted;
use rustix::fd::OwnedFd;

use crate::cgroup::Cgroup;
use crate::clock::now_ns;
use crate::config::{Config, Kind};
use crate::engine::{Engine, EngineOptions, TaskKind};
use crate::resident::stay_resident;
use crate::threads::Threads;
use crate::{Hierarchy, PolicyChoice, ThrottleError, exempt};
use lock::Lock;
use notify::Notifier;
use publish::Publisher;
pub use status::{DiskStatus, Status, TaskStatus, UseStatus, path as status_path};

/// How often cgroups are looked for, and the status is written, ns.
const RESCAN_EVERY_NS: u64 = 1_000_000_000;
/// The daemon's own cgroup, for its guardian; its process id follows.
const OWN: &str = "luc-throttle-";

/// A daemon that runs.
#[derive(Debug)]
struct Daemon {
    hierarchy: Hierarchy,
    config: Config,
    engine: Engine,
    parent: Cgroup,
    publisher: Publisher,
    /// Tasks by their cgroup.
    tasks: BTreeMap<PathBuf, Watched>,
    /// Whether a rule makes threads tasks.
    has_threads: bool,
    /// Cgroups that match and are not to be frozen: said once.
    refused: BTreeSet<PathBuf>,
}

#[derive(Debug)]
struct Watched {
    work: Work,
    rule: Kind,
    /// The cgroup's number: another one may have come under its name.
    cgroup_id: u64,
}

/// What of a cgroup takes turns.
#[derive(Debug)]
enum Work {
    Whole(TaskId),
    Threads(Threads),
}

/// Runs until SIGINT, SIGTERM or SIGHUP; the caller has installed [`luc_host::interrupt`]. `luc` is this program, `say`
/// gets a line for the log now and then.
///
/// # Errors
///
/// What cannot be done here. Nothing is frozen then.
pub fn run(
    luc: &Path,
    config: Config,
    policy: PolicyChoice,
    say: &mut dyn FnMut(&str),
) -> Result<(), ThrottleError> {
    let hierarchy = Hierarchy::find()?;
    let _lock = Lock::take(&luc_host::run_dir::path().join("throttle"))?;
    clear_left(hierarchy.root());
    let parent = Cgroup::create(&hierarchy.root().join(format!("{OWN}{}", std::process::id())))?;
    let options = EngineOptions {
        policy,
        disks: config.disks.clone(),
        max_frozen_ns: config.max_frozen_ns,
        batch_floor: config.batch_floor,
    };
    let started = Engine::start(&hierarchy, parent.path(), luc, options);
    let engine = match started {
        Ok(Some(engine)) => engine,
        other => {
            parent.remove(hierarchy.root())?;
            return other.map(|_| ());
        }
    };
    let mut daemon = Daemon {
        hierarchy,
        publisher: Publisher::start(config.metrics.clone()),
        config,
        engine,
        parent,
        tasks: BTreeMap::new(),
        has_threads: false,
        refused: BTreeSet::new(),
    };
    if let Err(error) = stay_resident() {
        say(&format!("memory cannot be locked: {error}; a thaw may wait for a page from a disk"));
    }
    let outcome = daemon.serve(say);
    outcome.and(daemon.end())
}

/// Removes the cgroups of killed daemons and their guardians. One of a living process stays: it may be about to fill
/// it.
fn clear_left(root: &Path) {
    let entries = std::fs::read_dir(root).into_iter().flatten().flatten();
    for left in entries.filter(|entry| is_of_dead(&entry.file_name())) {
        // The kernel refuses both while a process is in the first.
        let guardian = std::fs::remove_dir(left.path().join(crate::engine::GUARDIAN));
        let _ = guardian.and(std::fs::remove_dir(left.path()));
    }
}

fn is_of_dead(name: &OsStr) -> bool {
    let process = name.to_str().and_then(|name| name.strip_prefix(OWN));
    process.is_some_and(|id| id.parse::<u32>().is_ok() && !Path::new("/proc").join(id).exists())
}

impl Daemon {
    fn serve(&mut self, say: &mut dyn FnMut(&str)) -> Result<(), ThrottleError> {
        let notifier = Notifier::from_environment();
        let nothing: [OwnedFd; 0] = [];
        let mut rescan_ns = 0;
        let mut is_ready = false;
        while !interrupted() {
            let now = now_ns();
            if now >= rescan_ns {
                self.rescan(say)?;
                self.publish(say);
                notifier.alive();
                rescan_ns = now + RESCAN_EVERY_NS;
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

    /// Adds cgroups that have come, forgets those that have gone.
    fn rescan(&mut self, say: &mut dyn FnMut(&str)) -> Result<(), ThrottleError> {
        let wanted = self.wanted();
        let spared = spared(&wanted);
        let gone: Vec<PathBuf> = self
            .tasks
            .iter()
            .filter(|(path, task)| {
                wanted.get(*path).is_none_or(|rule| *rule != task.rule)
                    || (task.rule.class == Class::Batch && spared_below(&spared, path).is_some())
                    || std::fs::metadata(path).is_ok_and(|now| now.ino() != task.cgroup_id)
            })
            .map(|(path, _)| path.clone())
            .collect();
        for path in gone {
            self.forget(&path)?;
        }
        self.refused.retain(|path| wanted.contains_key(path));
        self.has_threads = wanted.values().any(|rule| rule.threads);
        for (path, rule) in wanted {
            if self.tasks.contains_key(&path) || self.refused.contains(&path) {
                continue;
            }
            if rule.class == Class::Batch
                && let Some(reason) =
                    exempt::reason(&self.hierarchy, &path).or_else(|| spared_below(&spared, &path))
            {
                say(&format!("{} is never frozen: {reason}", path.display()));
                self.refused.insert(path);
                continue;
            }
            // It may have gone this moment.
            let Ok(cgroup) = Cgroup::open(&path) else {
                continue;
            };
            let cgroup_id = cgroup.id();
            let work = if rule.threads {
                Ok(Work::Threads(Threads::of(&path)))
            } else {
                {
                    let kind = TaskKind { p99_ns: rule.p99_ns, ..TaskKind::of(rule.class) };
                    self.engine.add(cgroup, kind).map(Work::Whole)
                }
            };
            match work {
                Ok(work) => {
                    let task = Watched { work, rule, cgroup_id };
                    self.tasks.insert(path, task);
                }
                Err(error) => {
                    say(&format!("{} is left alone: {error}", path.display()));
                    self.refused.insert(path);
                }
            }
        }
        Ok(())
    }

    fn forget(&mut self, path: &Path) -> Result<(), ThrottleError> {
        match self.tasks.remove(path).map(|task| task.work) {
            Some(Work::Whole(id)) => self.engine.ended(id).map(|_| ()),
            Some(Work::Threads(mut threads)) => threads.end(&mut self.engine).map(|_| ()),
            None => Ok(()),
        }
    }

    /// Finds new threads. Returns when to look again, ns.
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
                Err(error) => {
                    say(&format!("{} is left alone: {error}", path.display()));
                    unfit.push(path.clone());
                }
            }
        }
        for path in unfit {
            self.forget(&path)?;
            self.refused.insert(path);
        }
        Ok(look_again_ns)
    }

    /// Cgroups that a rule matches, by the first; of one below another only the upper one.
    fn wanted(&self) -> BTreeMap<PathBuf, Kind> {
        self.config.cgroups(self.hierarchy.root(), self.parent.path())
    }

    /// Has written what `luc throttle status` and Prometheus read.
    fn publish(&self, say: &mut dyn FnMut(&str)) {
        self.publisher.publish(Status::of(&self.engine, &self.tasks()));
        for line in self.publisher.said() {
            say(&line);
        }
    }

    fn tasks(&self) -> Vec<(PathBuf, TaskId, Class)> {
        let root = self.hierarchy.root();
        let name = |path: &Path| path.strip_prefix(root).unwrap_or(path).to_owned();
        let mut all = Vec::new();
        for (path, task) in &self.tasks {
            let class = task.rule.class;
            match &task.work {
                Work::Whole(id) => all.push((name(path), *id, class)),
                Work::Threads(threads) => {
                    let threads = threads.tasks();
                    all.extend(threads.map(|(path, id)| (name(&path), id, class)));
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

/// Cgroups that are not to be frozen by name.
fn spared(wanted: &BTreeMap<PathBuf, Kind>) -> Vec<PathBuf> {
    let is_spared = |rule: &Kind| rule.class != Class::Batch;
    let spared = wanted.iter().filter(|(_, rule)| is_spared(rule));
    spared.map(|(path, _)| path.clone()).collect()
}

/// Why a cgroup cannot be frozen: another below it, which would be frozen with it, must not be.
fn spared_below(spared: &[PathBuf], path: &Path) -> Option<String> {
    let below = spared.iter().find(|other| other.starts_with(path))?;
    Some(format!("{} below it is not to be frozen", below.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cgroup_above_a_protected_one_is_spared() {
        let wanted = BTreeMap::from([
            (PathBuf::from("/c/batch"), Class::Batch),
            (PathBuf::from("/c/batch/db"), Class::Protected),
            (PathBuf::from("/c/batch-2"), Class::Batch),
            (PathBuf::from("/c/other/quiet"), Class::Ignored),
            (PathBuf::from("/c/other"), Class::Batch),
        ]);
        let kind = |class| Kind { class, threads: false, p99_ns: None };
        let wanted = wanted.into_iter().map(|(path, class)| (path, kind(class))).collect();
        let spared = spared(&wanted);
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
        clear_left(folder.path());
        assert!(!name(dead).exists());
        assert!(name(&own).exists() && name("luc-throttle-x").exists() && name("other").exists());
    }
}
