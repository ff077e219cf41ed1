//! Runs commands as tasks: each in its own cgroup, all started together.

mod running_command;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use luc_control::throttle::policy_input::TaskClass;
use luc_host::interrupt_flag::interrupted;
use serde::Serialize;

use crate::cgroup::{FreezableCgroup, MADE_PREFIX};
use crate::engine::{EngineOptions, OrderCount, TaskProperties, ThrottleEngine, wait};
use crate::kernel_clocks::now_ns;
use crate::thread_tasks::ThreadTasks;
use crate::{BATCH_FLOOR, CgroupHierarchy, PolicyChoice, ThrottleError};
use running_command::RunningCommand;

/// Interval between checks for Ctrl-C when no policy wants to look, ns.
const LOOK_INTERVAL_NS: u64 = 100_000_000;
/// Time that tasks have to end after Ctrl-C, before they are killed.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// A command to be run.
#[derive(Clone, Debug)]
pub struct CommandTask {
    pub command: OsString,
    /// Permission to freeze it.
    pub class: TaskClass,
    /// Bytes that it will read and write, if known.
    pub size_bytes: Option<u64>,
    /// Target for the 99th percentile of its waits for a disk, ns; only for a protected task.
    pub p99_ns: Option<u64>,
}

/// Settings of a run of commands under the throttle.
#[derive(Clone, Debug)]
pub struct ThrottledRunOptions {
    pub engine: EngineOptions,
    /// Files of each task's cgroup, such as `io.max`, and the values written to them before the task starts.
    pub settings: Vec<(String, String)>,
    /// Whether threads of batch tasks take turns like tasks.
    pub tell_threads_apart: bool,
    /// Whether the tasks' standard output goes to /dev/null.
    pub discard_output: bool,
}

impl CommandTask {
    pub(crate) fn new(command: OsString, class: TaskClass) -> Self {
        Self { command, class, size_bytes: None, p99_ns: None }
    }
}

impl ThrottledRunOptions {
    /// Options of a run that only observes: nothing is frozen, and output is discarded.
    pub(crate) fn unthrottled(disks: Vec<String>) -> Self {
        let engine = EngineOptions {
            policy: PolicyChoice::Off,
            disks,
            max_frozen_ns: 0,
            batch_floor: BATCH_FLOOR,
        };
        Self { engine, settings: Vec::new(), tell_threads_apart: false, discard_output: true }
    }
}

/// Outcome of a run of commands under the throttle.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ThrottledRunOutcome {
    /// The policy as the user gives it.
    pub policy: String,
    /// Seconds from the first start to the last end.
    pub makespan_s: f64,
    /// Outcomes in the order in which the tasks were given.
    pub tasks: Vec<TaskOutcome>,
    /// Numbers of freezes and thaws, by reason.
    pub orders: Vec<OrderCount>,
    /// Whether Ctrl-C ended the run early.
    pub interrupted: bool,
}

/// Outcome of a task. Times are from the start of the run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TaskOutcome {
    pub command: String,
    pub cgroup: PathBuf,
    pub start_s: f64,
    pub finish_s: f64,
    pub seconds: f64,
    /// Exit status; 128 plus the signal's number if a signal ended it.
    pub status: i32,
    pub frozen_s: f64,
    pub longest_frozen_s: f64,
    pub freezes: u64,
    /// Bytes that disks had moved for it when it ended; `None` if the cgroups have no io controller.
    pub bytes: Option<u64>,
}

/// Bytes below which a task has hardly used a disk.
const MIN_USED_BYTES: u64 = 1 << 20;

impl ThrottledRunOutcome {
    /// Tasks that hardly used a disk: the run says nothing about them.
    pub fn idle(&self) -> impl Iterator<Item = &TaskOutcome> {
        let is_idle = |task: &&TaskOutcome| task.bytes.is_some_and(|bytes| bytes < MIN_USED_BYTES);
        self.tasks.iter().filter(is_idle)
    }
}

/// Observer of a run.
pub trait RunObserver {
    /// Called before a command is started in this cgroup. The first one has number 0.
    ///
    /// # Errors
    ///
    /// The command cannot be watched: the run ends then.
    fn will_start(
        &mut self,
        task: &CommandTask,
        cgroup: &FreezableCgroup,
    ) -> Result<(), ThrottleError>;

    /// Called after the command with this number was started at `at_ns` of CLOCK_MONOTONIC. Commands are started one
    /// after the other, when all have their cgroups.
    fn started(&mut self, number: usize, at_ns: u64);

    /// Looks, at least every 100 ms. Returns the latest time of the next call, ns of CLOCK_MONOTONIC.
    fn look(&mut self) -> u64;

    /// Called after the command with this number has ended. Its cgroup still exists.
    fn ended(&mut self, number: usize);

    /// Whether the onlooker has seen enough. The commands are ended then.
    fn is_content(&self) -> bool {
        false
    }
}

/// Runs `tasks` together and waits for all of them. `luc` is this program. The caller has installed
/// [`luc_host::interrupt_flag`].
///
/// # Errors
///
/// Unmet requirements of this machine; nothing is frozen or left behind then.
pub fn run(
    luc: &Path,
    tasks: &[CommandTask],
    options: &ThrottledRunOptions,
) -> Result<ThrottledRunOutcome, ThrottleError> {
    run_watched(luc, tasks, options, None)
}

/// Like [`run`], with an onlooker.
///
/// # Errors
///
/// As [`run`], and those of the onlooker.
pub fn run_watched(
    luc: &Path,
    tasks: &[CommandTask],
    options: &ThrottledRunOptions,
    onlooker: Option<&mut dyn RunObserver>,
) -> Result<ThrottledRunOutcome, ThrottleError> {
    let hierarchy = CgroupHierarchy::find()?;
    let own = hierarchy.of_process(std::process::id())?;
    let parent =
        FreezableCgroup::create(&own.join(format!("{MADE_PREFIX}{}", std::process::id())))?;
    let mut run =
        CommandRun { hierarchy, parent, own, engine: None, children: Vec::new(), onlooker };
    let outcome = run.go(luc, tasks, options);
    let cleared = run.clear();
    outcome.and_then(|outcome| cleared.map(|()| outcome))
}

/// A run, with everything that it must clean up.
struct CommandRun<'o> {
    hierarchy: CgroupHierarchy,
    /// Cgroup of this process.
    own: PathBuf,
    parent: FreezableCgroup,
    engine: Option<ThrottleEngine>,
    children: Vec<RunningCommand>,
    onlooker: Option<&'o mut dyn RunObserver>,
}

impl CommandRun<'_> {
    fn go(
        &mut self,
        luc: &Path,
        tasks: &[CommandTask],
        options: &ThrottledRunOptions,
    ) -> Result<ThrottledRunOutcome, ThrottleError> {
        // 1. The throttle and a cgroup for each task.
        self.engine = ThrottleEngine::start(
            &self.hierarchy,
            self.parent.path(),
            luc,
            options.engine.clone(),
        )?;
        self.parent.delegate_io()?;
        let mut ready = Vec::new();
        for (number, task) in tasks.iter().enumerate() {
            let cgroup =
                FreezableCgroup::create(&self.parent.path().join(format!("task-{number}")))?;
            if let Some(onlooker) = &mut self.onlooker {
                onlooker.will_start(task, &cgroup)?;
            }
            ready.push((task, running_command::ReadyCgroup::new(cgroup, &options.settings)?));
        }
        // 2. All commands, one right after the other.
        let start_ns = now_ns();
        for (number, (task, place)) in ready.into_iter().enumerate() {
            let (child, cgroup) =
                RunningCommand::start(&task.command, place, options.discard_output)?;
            if let Some(onlooker) = &mut self.onlooker {
                onlooker.started(number, child.start_ns);
            }
            self.children.push(child);
            let (Some(engine), Some(child)) = (&mut self.engine, self.children.last_mut()) else {
                continue;
            };
            if options.tell_threads_apart && task.class == TaskClass::Batch {
                child.threads = Some(ThreadTasks::of(cgroup.path()));
            } else {
                let CommandTask { class, size_bytes, p99_ns, .. } = *task;
                child.id = Some(engine.add(cgroup, TaskProperties { class, size_bytes, p99_ns })?);
            }
        }
        // 3. Their end.
        let was_interrupted = self.wait_for_all()? && interrupted();
        Ok(self.outcome(&options.engine.policy, start_ns, was_interrupted))
    }

    /// Waits until all commands have ended. Returns whether the run was ended early.
    fn wait_for_all(&mut self) -> Result<bool, ThrottleError> {
        let mut give_up_ns = None;
        while self.children.iter().any(RunningCommand::is_running) {
            let is_over = interrupted() || self.onlooker.as_ref().is_some_and(|by| by.is_content());
            if is_over && give_up_ns.is_none() {
                // A task can only end while it runs.
                if let Some(engine) = &mut self.engine {
                    engine.thaw_all()?;
                }
                self.signal(libc::SIGTERM);
                give_up_ns = Some(now_ns() + SHUTDOWN_TIMEOUT.as_nanos() as u64);
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
                _ => now_ns() + LOOK_INTERVAL_NS,
            };
            let until_ns = match &mut self.onlooker {
                Some(onlooker) => until_ns.min(onlooker.look()),
                None => until_ns,
            };
            let pidfds: Vec<_> = self.children.iter().filter_map(RunningCommand::pidfd).collect();
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

    /// Notes the commands that have ended.
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

    fn outcome(
        &self,
        policy: &PolicyChoice,
        start_ns: u64,
        interrupted: bool,
    ) -> ThrottledRunOutcome {
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
        ThrottledRunOutcome {
            policy: policy.to_string(),
            makespan_s: tasks.iter().map(|task| task.finish_s).fold(0.0, f64::max),
            tasks,
            orders: self
                .engine
                .as_ref()
                .map_or_else(Vec::new, |engine| engine.counters().order_counts()),
            interrupted,
        }
    }

    /// Thaws, kills the commands that still run after an error, and removes the cgroups. Background processes of
    /// finished commands move to the cgroup of this process.
    fn clear(&mut self) -> Result<(), ThrottleError> {
        let ended = self.engine.take().map_or(Ok(()), ThrottleEngine::end);
        self.signal(libc::SIGKILL);
        for child in &mut self.children {
            child.wait();
            child.clear_threads();
        }
        let mut removed = Ok(());
        let entries = std::fs::read_dir(self.parent.path()).into_iter().flatten().flatten();
        for folder in entries.map(|entry| entry.path()).filter(|path| path.is_dir()) {
            let one = FreezableCgroup::open(&folder).and_then(|cgroup| cgroup.remove(&self.own));
            removed = removed.and(one);
        }
        ended.and(removed).and(self.parent.remove(&self.own))
    }
}
