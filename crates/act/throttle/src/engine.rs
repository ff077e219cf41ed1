//! The engine: observes, asks the policy of each disk, freezes and thaws.

mod disk_controller;
mod disk_look;
mod engine_counters;
mod frozen_count;
mod shared_files;
mod task_properties;
mod thaw_inversions;
mod throttled_task;
mod waiting_tasks;

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::path::Path;

use luc_control::throttle::policy_input::{FreezeReason, TaskClass, TaskId, TaskSample};
use luc_probe::disk_contention::NotifyOn;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::cgroup::FreezableCgroup;
use crate::disk_observer::{DiskObserver, ObservedDevice};
use crate::frozen_record::FrozenRecord;
use crate::guardian_process::GuardianProcess;
use crate::kernel_clocks::now_ns;
use crate::learn_disk;
use crate::policy_choice::PolicyChoice;
use crate::priority_inversion::InversionSearch;
use crate::{CgroupHierarchy, ThrottleError};
use disk_controller::{ControllerId, DiskController};
pub use engine_counters::{EngineCounters, OrderCount};
use frozen_count::FrozenCount;
pub use task_properties::TaskProperties;
pub use throttled_task::FreezeTotals;
use throttled_task::ThrottledTask;

/// Longest interval between two looks, ns. The guardian takes a throttle that is silent for a second for dead.
const MAX_LOOK_INTERVAL_NS: u64 = 100_000_000;
/// Interval at which the throttle sends its heartbeat to the guardian and checks the guardian's thaws, ns.
const UPKEEP_INTERVAL_NS: u64 = 50_000_000;
/// Name of the guardian's cgroup, below that of the tasks.
pub(crate) const GUARDIAN: &str = "guardian";

#[derive(Clone, Debug)]
pub struct EngineOptions {
    pub policy: PolicyChoice,
    /// Names of the disks; empty: all disks.
    pub disks: Vec<String>,
    pub max_frozen_ns: u64,
    /// Smallest part of the time that batch gets beside protected tasks: 0 to 1.
    pub batch_floor: f64,
}

/// The throttle of one machine.
#[derive(Debug)]
pub struct ThrottleEngine {
    options: EngineOptions,
    hierarchy: CgroupHierarchy,
    observer: DiskObserver,
    controllers: Vec<DiskController>,
    tasks: BTreeMap<TaskId, ThrottledTask>,
    frozen: FrozenCount,
    /// Time of the next upkeep, ns.
    upkeep_ns: u64,
    next: u32,
    counters: EngineCounters,
    inversions: InversionSearch,
    record: FrozenRecord,
    /// `None` only while the engine ends.
    guardian: Option<GuardianProcess>,
}

impl ThrottleEngine {
    /// Loads the probe and starts the guardian, in a cgroup made for it below `parent`. `luc` is this program. `None`
    /// for a policy that never freezes a task.
    ///
    /// # Errors
    ///
    /// Unmet requirements of this machine, before anything is changed.
    pub fn start(
        hierarchy: &CgroupHierarchy,
        parent: &Path,
        luc: &Path,
        options: EngineOptions,
    ) -> Result<Option<Self>, ThrottleError> {
        if options.policy == PolicyChoice::Off {
            return Ok(None);
        }
        let observer = DiskObserver::open(&options.disks)?;
        let controllers = observer
            .disks()
            .iter()
            .filter_map(|disk| {
                let policy = options.policy.controller(
                    disk.has_arm,
                    options.max_frozen_ns,
                    options.batch_floor,
                    learn_disk::read_measured(disk.dev),
                )?;
                Some(DiskController::new(disk.clone(), policy))
            })
            .collect();
        let record = FrozenRecord::create()?;
        record.beat(now_ns())?;
        let guardian = FreezableCgroup::create(&parent.join(GUARDIAN))
            .and_then(|cgroup| GuardianProcess::start(luc, &record, cgroup))
            .inspect_err(|_| record.remove())?;
        Ok(Some(Self {
            options,
            hierarchy: hierarchy.clone(),
            observer,
            controllers,
            tasks: BTreeMap::new(),
            frozen: FrozenCount::default(),
            upkeep_ns: 0,
            next: 0,
            counters: EngineCounters::default(),
            inversions: InversionSearch::default(),
            record,
            guardian: Some(guardian),
        }))
    }

    pub fn add(
        &mut self,
        cgroup: FreezableCgroup,
        kind: TaskProperties,
    ) -> Result<TaskId, ThrottleError> {
        let class = kind.class;
        // A batch task gives notice of its first request only, so that it is frozen before its next one if it is out of
        // turn.
        let notify = NotifyOn {
            on_submit: class != TaskClass::Ignored,
            on_done: class == TaskClass::Protected,
        };
        let slot = self.observer.watch(&cgroup, notify)?;
        let entry = self.record.add(cgroup.path()).inspect_err(|_| {
            self.observer.unwatch(slot);
        })?;
        let id = TaskId(self.next);
        self.next += 1;
        self.tasks
            .insert(id, ThrottledTask::new(id, cgroup, kind, slot, entry, self.frozen.clone()));
        Ok(id)
    }

    /// Thaws a task that has ended, and stops observing it.
    pub fn end_task(&mut self, id: TaskId) -> Result<FreezeTotals, ThrottleError> {
        let now = now_ns();
        let Some(mut task) = self.tasks.remove(&id) else {
            return Ok(FreezeTotals::default());
        };
        for controller in &mut self.controllers {
            controller.users.remove(&id);
        }
        task.thaw(now, &self.record)?;
        self.record.forget(task.entry);
        self.observer.unwatch(task.slot);
        Ok(task.totals(now))
    }

    /// Totals of a task's freezes, and whether it is frozen.
    #[must_use]
    pub fn totals(&self, id: TaskId) -> Option<(FreezeTotals, bool)> {
        let task = self.tasks.get(&id)?;
        Some((task.totals(now_ns()), task.is_frozen()))
    }

    /// Beginning of a task's present freeze, ns, and the reason of its last freeze or thaw.
    #[must_use]
    pub fn state(&self, id: TaskId) -> (Option<u64>, Option<FreezeReason>) {
        self.tasks.get(&id).map_or((None, None), ThrottledTask::state)
    }

    #[must_use]
    pub fn counters(&self) -> &EngineCounters {
        &self.counters
    }

    #[must_use]
    pub fn observer(&self) -> &DiskObserver {
        &self.observer
    }

    /// Activity of a task on a disk.
    #[must_use]
    pub fn sample(&self, id: TaskId, disk: &ObservedDevice) -> Option<TaskSample> {
        let task = self.tasks.get(&id)?;
        let mut sample = task.sample();
        self.observer.fill(&mut sample, task.slot, disk);
        sample.remaining_bytes = task.remaining_bytes(sample.bytes);
        Some(sample)
    }

    /// Looks at the disks once and carries out the orders of the policies. Returns the latest time of the next look,
    /// ns.
    ///
    /// # Errors
    ///
    /// [`ThrottleError::Record`], [`ThrottleError::Process`]: everything is thawed then, by
    /// [`ThrottleEngine::thaw_all`] or by the guardian.
    pub fn look(&mut self) -> Result<u64, ThrottleError> {
        let now = now_ns();
        if now >= self.upkeep_ns {
            self.upkeep_ns = now + UPKEEP_INTERVAL_NS;
            self.upkeep(now)?;
        }
        self.heed_inversions(now)?;
        let mut look_again_ns = now + MAX_LOOK_INTERVAL_NS;
        for index in 0..self.controllers.len() {
            look_again_ns = look_again_ns.min(self.look_at(ControllerId(index), now)?);
        }
        look_again_ns = look_again_ns.min(self.inversions_look_ns(now));
        self.counters.looks += 1;
        self.counters.looking_ns += now_ns().saturating_sub(now);
        Ok(look_again_ns)
    }

    /// Sends the heartbeat to the guardian, and thaws tasks that were frozen as long as allowed.
    fn upkeep(&mut self, now: u64) -> Result<(), ThrottleError> {
        self.record.beat(now)?;
        if let Some(guardian) = &mut self.guardian
            && guardian.restart_if_gone(&self.record)?
        {
            self.counters.guardians_lost += 1;
        }
        if !self.frozen.any() {
            return Ok(());
        }
        self.heed_guardian(now)?;
        for task in self.tasks.values_mut() {
            if task.is_frozen_longer_than(self.options.max_frozen_ns, now) {
                task.thaw(now, &self.record)?;
                self.counters.thawed_at_limit += 1;
            }
        }
        Ok(())
    }

    /// Takes over the thaws that the guardian made.
    fn heed_guardian(&mut self, now: u64) -> Result<(), ThrottleError> {
        let deadlines = self
            .record
            .deadlines_ns()
            .map_err(ThrottleError::record(Path::new(crate::frozen_record::DIRECTORY)))?;
        for task in self.tasks.values_mut() {
            if task.is_frozen() && FrozenRecord::is_thawed(&deadlines, task.entry) {
                task.thaw(now, &self.record)?;
                self.counters.thawed_by_guardian += 1;
            }
        }
        Ok(())
    }

    /// Waits until `until_ns`, a notification, or until one of `others` is readable.
    pub fn wait<F: AsFd>(&mut self, until_ns: u64, others: &[F]) -> Result<(), ThrottleError> {
        let notified = wait(Some(self.observer.notified()), until_ns, others)?;
        if notified && self.observer.take_notifications() {
            for controller in &mut self.controllers {
                controller.look_at_all_ns = 0;
            }
        }
        Ok(())
    }

    pub fn thaw_all(&mut self) -> Result<(), ThrottleError> {
        let now = now_ns();
        for task in self.tasks.values_mut() {
            task.thaw(now, &self.record)?;
        }
        Ok(())
    }

    /// Thaws everything and ends the guardian.
    ///
    /// # Errors
    ///
    /// [`ThrottleError::Cgroup`]: its cgroup could not be removed.
    pub fn end(mut self) -> Result<(), ThrottleError> {
        self.thaw_all()?;
        let ended = self.guardian.take().map_or(Ok(()), |guardian| guardian.end(&self.hierarchy));
        self.record.remove();
        ended
    }
}

impl Drop for ThrottleEngine {
    fn drop(&mut self) {
        // This only matters after an error. The guardian does what fails here.
        let _ = self.thaw_all();
    }
}

/// Waits until `until_ns` or until a descriptor is readable. Returns whether `first` is readable.
pub(crate) fn wait<F: AsFd>(
    first: Option<std::os::fd::BorrowedFd<'_>>,
    until_ns: u64,
    others: &[F],
) -> Result<bool, ThrottleError> {
    let left_ns = until_ns.saturating_sub(now_ns());
    let timeout = Timespec {
        tv_sec: (left_ns / 1_000_000_000) as i64,
        tv_nsec: (left_ns % 1_000_000_000) as i64,
    };
    let mut fds: Vec<PollFd<'_>> = first
        .iter()
        .map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN))
        .chain(others.iter().map(|fd| PollFd::new(fd, PollFlags::IN)))
        .collect();
    match poll(&mut fds, Some(&timeout)) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(ThrottleError::process("waiting")(error.into())),
    }
    Ok(first.is_some() && fds[0].revents().contains(PollFlags::IN))
}
