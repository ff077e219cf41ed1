//! Commands as tasks: each in a cgroup of its own, started together.

mod child;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use luc_control::throttle::sample::Class;
use luc_host::interrupt::interrupted;
use serde::Serialize;

use crate::cgroup::{Cgroup, MADE};
use crate::clock::now_ns;
use crate::engine::{Engine, EngineOptions, OrderCount, TaskKind, wait};
use crate::threads::Threads;
use crate::{Hierarchy, PolicyChoice, ThrottleError};
use child::Child;

/// How often a run looks for Ctrl-C where no policy wants to look, ns.
const LOOK_EVERY_NS: u64 = 100_000_000;
/// What tasks have to end after Ctrl-C, before they are killed.
const PATIENCE: Duration = Duration::from_secs(5);

/// A command to be run.
#[derive(Clone, Debug)]
pub struct Task {
    pub command: OsString,
    /// What may be done to it.
    pub class: Class,
    /// Bytes that it will read and write, if known.
    pub size_bytes: Option<u64>,
    /// What 99 of 100 of its waits for a disk are to take at most, ns; only of class protected.
    pub p99_ns: Option<u64>,
}

/// How commands are run.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Who may use a disk when.
    pub engine: EngineOptions,
    /// Files of each task's cgroup and what is written into them before it starts, such as `io.max`.
    pub settings: Vec<(String, String)>,
    /// Threads of batch tasks take turns as tasks do.
    pub tell_threads_apart: bool,
    /// Tasks' standard output goes to /dev/null.
    pub discard_output: bool,
}

/// What became of the tasks.
#[derive(Clone, Debug, Serialize)]
pub struct RunOutcome {
    /// The policy, as it is given.
    pub policy: String,
    /// From the first start to the last end.
    pub makespan_s: f64,
    /// In the order in which they were given.
    pub tasks: Vec<TaskOutcome>,
    /// What was done to them, and why.
    pub orders: Vec<OrderCount>,
    /// Ctrl-C ended the run early.
    pub interrupted: bool,
}

/// What became of a task. Times are from the start of the run.
#[derive(Clone, Debug, Serialize)]
pub struct TaskOutcome {
    pub command: String,
    pub cgroup: PathBuf,
    /// When it was started.
    pub start_s: f64,
    pub finish_s: f64,
    pub seconds: f64,
    /// Its exit status; 128 and the signal's number if one ended it.
    pub status: i32,
    /// How long it was frozen.
    pub frozen_s: f64,
    /// For how long at most at a time.
    pub longest_frozen_s: f64,
    /// How often it was frozen.
    pub freezes: u64,
    /// Bytes that disks had moved for it when it ended; none where the cgroups have no io controller.
    pub bytes: Option<u64>,
}

/// A task that has moved less has hardly used a disk.
const LEAST_BYTES: u64 = 1 << 20;

impl RunOutcome {
    /// Tasks that hardly used a disk: of them the run says nothing.
    pub fn idle(&self) -> impl Iterator<Item = &TaskOutcome> {
        let is_idle = |task: &&TaskOutcome| task.bytes.is_some_and(|bytes| bytes < LEAST_BYTES);
        self.tasks.iter().filter(is_idle)
    }
}

/// Somebody who looks on while commands run.
pub trait Onlooker {
    /// A command is about to be started in this cgroup; the first has number 0.
    ///
    /// # Errors
    ///
    /// It cannot be watched: nothing goes on then.
    fn will_start(&mut self, task: &Task, cgroup: &Cgroup) -> Result<(), ThrottleError>;

    /// The command with this number was started at `at_ns` of CLOCK_MONOTONIC. Commands are started one after the
    /// other, when all have their cgroups.
    fn started(&mut self, number: usize, at_ns: u64);

    /// Looks, at least every 100 ms; returns when to be called again at the latest, ns of CLOCK_MONOTONIC.
    fn look(&mut self) -> u64;

    /// The command with this number has ended; its cgroup is there still.
    fn ended(&mut self, number: usize);

    /// Whether it has seen enough: the commands are then ended.
    fn is_content(&self) -> bool {
        false
    }
}

/// Runs `tasks` together and waits for all. `luc` is this program. The caller has installed
/// [`luc_host::interrupt`].
///
/// # Errors
///
/// What cannot be done here; nothing is frozen or left behind then.
pub fn run(luc: &Path, tasks: &[Task], options: &RunOptions) -> Result<RunOutcome, ThrottleError> {
    run_watched(luc, tasks, options, None)
}

/// As [`run`], while somebody looks on.
///
/// # Errors
///
/// As [`run`], and the onlooker's.
pub fn run_watched(
    luc: &Path,
    tasks: &[Task],
    options: &RunOptions,
    onlooker: Option<&mut dyn Onlooker>,
) -> Result<RunOutcome, ThrottleError> {
    let hierarchy = Hierarchy::find()?;
    let own = hierarchy.of_process(std::process::id())?;
    let parent = Cgroup::create(&own.join(format!("{MADE}{}", std::process::id())))?;
    let mut run = Run { hierarchy, parent, own, engine: None, children: Vec::new(), onlooker };
    let outcome = run.go(luc, tasks, options);
    let cleared = run.clear();
    let outcome = outcome?;
    cleared?;
    Ok(outcome)
}

/// A run and what it has to clear.
struct Run<'o> {
    hierarchy: Hierarchy,
    /// The cgroup of this process.
    own: PathBuf,
    parent: Cgroup,
    engine: Option<Engine>,
    children: Vec<Child>,
    onlooker: Option<&'o mut dyn Onlooker>,
}

impl Run<'_> {
    fn go(
        &mut self,
        luc: &Path,
        tasks: &[Task],
        options: &RunOptions,
    ) -> Result<RunOutcome, ThrottleError> {
        self.engine =
            Engine::start(&self.hierarchy, self.parent.path(), luc, options.engine.clone())?;
        self.parent.delegate_io()?;
        let mut ready = Vec::new();
        for (number, task) in tasks.iter().enumerate() {
            let cgroup = Cgroup::create(&self.parent.path().join(format!("task-{number}")))?;
            if let Some(onlooker) = &mut self.onlooker {
                onlooker.will_start(task, &cgroup)?;
            }
            let cgroup = child::Place::new(cgroup, &options.settings)?;
            ready.push((task, cgroup));
        }
        let start_ns = now_ns();
        for (number, (task, place)) in ready.into_iter().enumerate() {
            let (child, cgroup) = Child::start(&task.command, place, options.discard_output)?;
            if let Some(onlooker) = &mut self.onlooker {
                onlooker.started(number, child.start_ns);
            }
            self.children.push(child);
            let is_apart = options.tell_threads_apart && task.class == Class::Batch;
            if is_apart
                && self.engine.is_some()
                && let Some(child) = self.children.last_mut()
            {
                child.threads = Some(Threads::of(cgroup.path()));
            } else if let Some(engine) = &mut self.engine {
                let kind = TaskKind {
                    class: task.class,
                    size_bytes: task.size_bytes,
                    p99_ns: task.p99_ns,
                };
                let id = engine.add(cgroup, kind)?;
                if let Some(child) = self.children.last_mut() {
                    child.id = Some(id);
                }
            }
        }
        let was_interrupted = self.wait_for_all()? && interrupted();
        Ok(self.outcome(&options.engine.policy, start_ns, was_interrupted))
    }

    /// Whether it was interrupted.
    fn wait_for_all(&mut self) -> Result<bool, ThrottleError> {
        let mut give_up_ns = None;
        while self.children.iter().any(Child::is_running) {
            let is_over = interrupted() || self.onlooker.as_ref().is_some_and(|by| by.is_content());
            if is_over && give_up_ns.is_none() {
                // Whoever is to end has to run.
                if let Some(engine) = &mut self.engine {
                    engine.thaw_all()?;
                }
                self.signal(libc::SIGTERM);
                give_up_ns = Some(now_ns() + PATIENCE.as_nanos() as u64);
            }
            if give_up_ns.is_some_and(|at| now_ns() > at) {
                self.signal(libc::SIGKILL);
            }
            let until_ns = match &mut self.engine {
                Some(engine) if give_up_ns.is_none() => {
                    let mut until_ns = engine.look()?;
                    for child in &mut self.children {
                        until_ns = until_ns.min(child.look_at_threads(engine)?);
                    }
                    until_ns
                }
                _ => now_ns() + LOOK_EVERY_NS,
            };
            let until_ns = match &mut self.onlooker {
                Some(onlooker) => until_ns.min(onlooker.look()),
                None => until_ns,
            };
            let pidfds: Vec<_> = self.children.iter().filter_map(Child::pidfd).collect();
            match &mut self.engine {
                Some(engine) => engine.wait(until_ns, &pidfds)?,
                None => {
                    wait(None, until_ns, &pidfds)?;
                }
            }
            self.reap()?;
        }
        Ok(give_up_ns.is_some())
    }

    /// Notes whose command has ended.
    fn reap(&mut self) -> Result<(), ThrottleError> {
        for (number, child) in self.children.iter_mut().enumerate() {
            if !child.has_just_ended()? {
                continue;
            }
            if let Some(onlooker) = &mut self.onlooker {
                onlooker.ended(number);
            }
            if let Some(engine) = &mut self.engine {
                child.take_totals(engine)?;
            }
        }
        Ok(())
    }

    fn signal(&self, signal: libc::c_int) {
        for child in &self.children {
            child.signal(signal);
        }
    }

    fn outcome(&self, policy: &PolicyChoice, start_ns: u64, interrupted: bool) -> RunOutcome {
        let seconds = |ns: u64| ns as f64 / 1e9;
        let since = |ns: u64| seconds(ns.saturating_sub(start_ns));
        let tasks: Vec<TaskOutcome> = self
            .children
            .iter()
            .map(|child| TaskOutcome {
                command: child.command.clone(),
                cgroup: child.cgroup.clone(),
                start_s: since(child.start_ns),
                finish_s: since(child.finish_ns),
                seconds: seconds(child.finish_ns.saturating_sub(child.start_ns)),
                status: child.status,
                frozen_s: seconds(child.totals.frozen_ns),
                longest_frozen_s: seconds(child.totals.longest_ns),
                freezes: child.totals.freezes,
                bytes: child.bytes,
            })
            .collect();
        RunOutcome {
            policy: policy.to_string(),
            makespan_s: tasks.iter().map(|task| task.finish_s).fold(0.0, f64::max),
            tasks,
            orders: self
                .engine
                .as_ref()
                .map(|engine| engine.counters().order_counts())
                .unwrap_or_default(),
            interrupted,
        }
    }

    /// Thaws, kills what still runs after an error, and removes the cgroups. Processes that a finished command has left
    /// in the background go on in the cgroup of this process.
    fn clear(&mut self) -> Result<(), ThrottleError> {
        let ended = self.engine.take().map_or(Ok(()), Engine::end);
        self.signal(libc::SIGKILL);
        for child in &mut self.children {
            child.wait();
            child.clear_threads();
        }
        let mut removed = Ok(());
        for folder in std::fs::read_dir(self.parent.path())
            .into_iter()
            .flatten()
            .flatten()
            .filter(|entry| entry.path().is_dir())
        {
            let one = Cgroup::open(&folder.path()).and_then(|cgroup| cgroup.remove(&self.own));
            removed = removed.and(one);
        }
        ended.and(removed).and(self.parent.remove(&self.own))
    }
}
