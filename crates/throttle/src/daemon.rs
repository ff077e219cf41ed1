//! The daemon: cgroups by pattern as tasks, for as long as they are there.

mod metrics;
mod notify;
mod status;

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use luc_control::throttle::sample::{Class, TaskId};
use luc_host::interrupt::interrupted;
use rustix::fd::OwnedFd;

use crate::cgroup::Cgroup;
use crate::clock::now_ns;
use crate::config::Config;
use crate::engine::{Engine, EngineOptions};
use crate::{Hierarchy, PolicyChoice, ThrottleError, exempt};
use notify::Notifier;
pub use status::{STATUS, Status, TaskStatus};

/// How often cgroups are looked for, and the status is written, ns.
const RESCAN_EVERY_NS: u64 = 1_000_000_000;
/// The daemon's own cgroup, for its guardian.
const OWN: &str = "luc-throttle";

/// A daemon that runs.
#[derive(Debug)]
struct Daemon {
    hierarchy: Hierarchy,
    config: Config,
    engine: Engine,
    parent: Cgroup,
    /// Tasks by their cgroup.
    tasks: BTreeMap<PathBuf, Watched>,
    /// Cgroups that match and are not to be frozen: said once.
    refused: BTreeSet<PathBuf>,
}

#[derive(Clone, Copy, Debug)]
struct Watched {
    id: TaskId,
    class: Class,
    /// The cgroup's number: another one may have come under its name.
    cgroup_id: u64,
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
    let parent = hierarchy.root().join(OWN);
    let parent = match Cgroup::open(&parent) {
        // What a killed daemon has left.
        Ok(left) => left,
        Err(_) => Cgroup::create(&parent)?,
    };
    let guardian = parent.path().join(crate::engine::GUARDIAN);
    if let Ok(left) = Cgroup::open(&guardian) {
        left.remove(hierarchy.root())?;
    }
    let options = EngineOptions {
        policy,
        disks: config.disks.clone(),
        max_frozen_ns: config.max_frozen_ns,
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
        config,
        engine,
        parent,
        tasks: BTreeMap::new(),
        refused: BTreeSet::new(),
    };
    let outcome = daemon.serve(say);
    outcome.and(daemon.end())
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
        let gone: Vec<PathBuf> = self
            .tasks
            .iter()
            .filter(|(path, task)| {
                wanted.get(*path).is_none_or(|class| *class != task.class)
                    || std::fs::metadata(path).is_ok_and(|now| now.ino() != task.cgroup_id)
            })
            .map(|(path, _)| path.clone())
            .collect();
        for path in gone {
            if let Some(task) = self.tasks.remove(&path) {
                self.engine.ended(task.id)?;
            }
        }
        self.refused.retain(|path| wanted.contains_key(path));
        for (path, class) in wanted {
            if self.tasks.contains_key(&path) || self.refused.contains(&path) {
                continue;
            }
            if class == Class::Batch
                && let Some(reason) = exempt::reason(&self.hierarchy, &path)
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
            match self.engine.add(cgroup, class, None) {
                Ok(id) => {
                    let task = Watched {
                        id,
                        class,
                        cgroup_id,
                    };
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

    /// Cgroups that a rule matches, by the first; of one below another only the upper one.
    fn wanted(&self) -> BTreeMap<PathBuf, Class> {
        let mut wanted: BTreeMap<PathBuf, Class> = BTreeMap::new();
        for rule in &self.config.rules {
            let pattern = self.hierarchy.root().join(&rule.pattern);
            let found = glob::glob(&pattern.to_string_lossy());
            for path in found.into_iter().flatten().flatten() {
                if path.is_dir() && !path.starts_with(self.parent.path()) {
                    wanted.entry(path).or_insert(rule.class);
                }
            }
        }
        let below_another = |path: &Path| {
            path.ancestors()
                .skip(1)
                .any(|above| wanted.contains_key(above))
        };
        // A protected task in a batch one could be frozen with it; both are then told apart by the innermost.
        let left_out: Vec<PathBuf> = wanted
            .iter()
            .filter(|(path, class)| **class != Class::Protected && below_another(path))
            .map(|(path, _)| path.clone())
            .collect();
        for path in left_out {
            wanted.remove(&path);
        }
        wanted
    }

    /// Writes what `luc throttle status` and Prometheus read.
    fn publish(&self, say: &mut dyn FnMut(&str)) {
        let status = Status::of(&self.engine, &self.tasks());
        if let Err(error) = status.write() {
            say(&format!("the status cannot be written: {error}"));
        }
        if let Some(path) = &self.config.metrics
            && let Err(error) = metrics::write(path, &status)
        {
            say(&format!("{}: {error}", path.display()));
        }
    }

    fn tasks(&self) -> Vec<(PathBuf, TaskId, Class)> {
        let root = self.hierarchy.root();
        let name = |path: &Path| path.strip_prefix(root).unwrap_or(path).to_owned();
        let tasks = self.tasks.iter();
        tasks
            .map(|(path, task)| (name(path), task.id, task.class))
            .collect()
    }

    fn end(self) -> Result<(), ThrottleError> {
        let ended = self.engine.end();
        status::remove();
        ended.and(self.parent.remove(self.hierarchy.root()))
    }
}
