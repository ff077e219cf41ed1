//! Watches tasks on disks, without freezing them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use luc_control::throttle::forecast::fit_model::TaskActivity;
use luc_control::throttle::policy_input::{DiskSample, TaskClass};
use luc_probe::disk_contention::{NotifyOn, TaskSlot};

use super::advice_figures::ThrottleAdvice;
use super::cgroup_pressure::CgroupPressure;
use super::derive_advice::{ObservedDisk, ObservedTask, SlowdownPair};
use super::task_tally::{ActivityStep, TaskTally};
use crate::ThrottleError;
use crate::cgroup::FreezableCgroup;
use crate::config::TaskTreatment;
use crate::disk_observer::{DiskObserver, ObservedDevice};
use crate::kernel_clocks::now_ns;
use crate::learn_disk::DiskProfile;
use crate::learn_disk::disk_profile::DiskIdentity;
use crate::open_file_sizes::OpenFiles;
use crate::run_commands::{CommandTask, RunObserver};

const LOOK_INTERVAL_NS: u64 = 100_000_000;
/// Interval between two looks for a task's first request, ns.
const FIRST_REQUEST_INTERVAL_NS: u64 = 5_000_000;
/// Time after its start for which a task is looked at that often, ns.
const FIRST_REQUEST_TIMEOUT_NS: u64 = 2_000_000_000;
/// Time after a write for which the disk may be writing from its cache, ns.
const WRITE_CACHE_NS: u64 = 1_000_000_000;

/// Tasks and their activity so far.
pub struct AdviseWatch<'t> {
    observer: DiskObserver,
    disks: Vec<WatchedDisk>,
    tasks: Vec<WatchedTask>,
    began_ns: u64,
    looked_ns: u64,
    /// Time at which the watch has seen enough, ns; `None`: never.
    until_ns: Option<u64>,
    tick: Box<dyn FnMut(f64) + 't>,
}

#[derive(Debug, Default)]
struct WatchedDisk {
    first: DiskSample,
    last: DiskSample,
    /// Size in sectors of 512 bytes, if the system reports it.
    size_sectors: Option<f64>,
    /// Last time at which a task was seen to have written, ns; 0: never.
    written_ns: u64,
    /// Time for which one task slowed another, ns.
    slowed_ns: BTreeMap<SlowdownPair, f64>,
}

#[derive(Debug)]
struct WatchedTask {
    name: String,
    class: TaskClass,
    cgroup: FreezableCgroup,
    slot: TaskSlot,
    pressure: CgroupPressure,
    start_ns: u64,
    /// Its end, ns; `None` while it exists.
    end_ns: Option<u64>,
    think_ns: u64,
    /// Part of the think time before its first request, ns; `None` if it has had none.
    before_ns: Option<u64>,
    /// Part of the think time between the last two looks, ns.
    lately_ns: u64,
    /// Processor time that it has used, ns.
    processor_ns: u64,
    is_size_known: bool,
    tallies: Vec<TaskTally>,
}

impl std::fmt::Debug for AdviseWatch<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").field("tasks", &self.tasks).finish_non_exhaustive()
    }
}

impl<'t> AdviseWatch<'t> {
    /// Watches the named disks, or all disks. `tick` gets the seconds that have passed.
    pub fn open(disks: &[String], tick: Box<dyn FnMut(f64) + 't>) -> Result<Self, ThrottleError> {
        let observer = DiskObserver::open(disks)?;
        let disk = |disk: &ObservedDevice| {
            let first = observer.disk(disk);
            let size_bytes = DiskIdentity::of(disk.dev).ok().map(|identity| identity.size_bytes);
            WatchedDisk {
                first,
                last: first,
                size_sectors: size_bytes.map(|bytes| bytes as f64 / 512.0),
                ..WatchedDisk::default()
            }
        };
        let disks = observer.disks().iter().map(disk).collect();
        let now = now_ns();
        Ok(Self {
            observer,
            disks,
            tasks: Vec::new(),
            began_ns: now,
            looked_ns: now,
            until_ns: None,
            tick,
        })
    }

    /// Ends the commands after `for_ns` from now.
    pub(crate) fn only_for(&mut self, for_ns: u64) {
        self.until_ns = Some(now_ns() + for_ns);
    }

    /// Activity of each task on the first disk.
    pub(crate) fn seen_on_first(&self) -> Vec<TaskActivity> {
        self.tasks.iter().map(|task| self.observe(task, 0, None).seen).collect()
    }

    /// Mean position of the first task's data on the first disk, in sectors.
    pub(crate) fn sector_of_first(&self) -> Option<f64> {
        self.tasks.first()?.tallies.first()?.sector()
    }

    fn add(&mut self, name: String, class: TaskClass, cgroup: &Path) -> Result<(), ThrottleError> {
        let cgroup = FreezableCgroup::open(cgroup)?;
        let slot = self.observer.watch(&cgroup, NotifyOn::default())?;
        self.tasks.push(WatchedTask {
            name,
            class,
            pressure: CgroupPressure::of(cgroup.path()),
            cgroup,
            slot,
            start_ns: now_ns(),
            end_ns: None,
            think_ns: 0,
            before_ns: None,
            lately_ns: 0,
            processor_ns: 0,
            is_size_known: false,
            tallies: vec![TaskTally::default(); self.disks.len()],
        });
        Ok(())
    }

    /// Watches these cgroups from now on, and no longer those that are gone.
    pub(super) fn follow(&mut self, wanted: &BTreeMap<PathBuf, TaskTreatment>, root: &Path) {
        for (path, treatment) in wanted {
            let is_there =
                self.tasks.iter().any(|task| task.end_ns.is_none() && task.cgroup.path() == path);
            if is_there || treatment.class == TaskClass::Ignored {
                continue;
            }
            let name = path.strip_prefix(root).unwrap_or(path);
            // A cgroup that has just gone, or for which there is no room, is left out until the next look.
            let _ = self.add(name.display().to_string(), treatment.class, path);
        }
        let now = now_ns();
        for task in &mut self.tasks {
            // It worked before it was watched.
            task.before_ns.get_or_insert(0);
            if task.end_ns.is_none() && !wanted.contains_key(task.cgroup.path()) {
                task.end_ns = Some(now);
            }
        }
    }

    /// Whether a task has had its first request since the last look.
    fn has_begun(&self) -> bool {
        self.tasks.iter().any(|task| task.is_awaited() && self.observer.has_used_any(task.slot))
    }

    /// Looks once. Returns the time of the next look, ns.
    pub(super) fn look_now(&mut self) -> u64 {
        let now = now_ns();
        let elapsed_ns = now.saturating_sub(self.looked_ns);
        self.looked_ns = now;
        let before: Vec<Vec<TaskActivity>> = self
            .tasks
            .iter()
            .map(|task| task.tallies.iter().map(|tally| tally.seen).collect())
            .collect();
        let steps: Vec<Vec<ActivityStep>> =
            (0..self.tasks.len()).map(|task| self.look_at(task, elapsed_ns, now)).collect();
        for (number, disk) in self.disks.iter_mut().enumerate() {
            let sample = self.observer.disk(&self.observer.disks()[number]);
            let requests = sample.requests.saturating_sub(disk.last.requests);
            disk.last = sample;
            let of: Vec<ActivityStep> = steps.iter().map(|of| of[number]).collect();
            if of.iter().any(|step| step.has_written) {
                disk.written_ns = now;
            }
            let is_written = disk.written_ns > 0 && now < disk.written_ns + WRITE_CACHE_NS;
            for (task, step) in of.iter().enumerate() {
                if step.requests > 0 && step.requests >= requests && !is_written {
                    self.tasks[task].tallies[number].note_alone(&before[task][number]);
                }
            }
            blame(&of, &mut disk.slowed_ns);
        }
        (self.tick)(now.saturating_sub(self.began_ns) as f64 / 1e9);
        now + LOOK_INTERVAL_NS
    }

    /// Activity of a task on each disk since the last look.
    fn look_at(&mut self, number: usize, elapsed_ns: u64, now: u64) -> Vec<ActivityStep> {
        let task = &mut self.tasks[number];
        if task.end_ns.is_some() {
            return vec![ActivityStep::default(); self.disks.len()];
        }
        let mut steps: Vec<ActivityStep> = self
            .observer
            .disks()
            .iter()
            .zip(&mut task.tallies)
            .map(|(disk, tally)| tally.look(self.observer.sums(task.slot, disk)))
            .collect();
        let elapsed_ns = elapsed_ns.min(now.saturating_sub(task.start_ns));
        let active_ns = steps.iter().map(|step| step.active_ns).max().unwrap_or(0);
        let is_writing = steps.iter().any(|step| step.is_writing);
        let waited_ns = match task.pressure.take() {
            // A task that reads ahead has requests outstanding while it thinks. A task that syncs may wait for a
            // commit, which the kernel does not count as I/O.
            Some(waited) if is_writing => waited.io_ns.max(active_ns) + waited.processor_ns,
            Some(waited) => waited.io_ns + waited.processor_ns,
            None => active_ns,
        };
        task.lately_ns = elapsed_ns.saturating_sub(waited_ns);
        task.think_ns += task.lately_ns;
        task.processor_ns = task.pressure.processor_ns();
        if self.observer.has_used_any(task.slot) {
            task.before_ns.get_or_insert(task.think_ns);
        }
        for step in &mut steps {
            step.waited_ns = waited_ns.min(elapsed_ns);
        }
        let has_moved = steps.iter().any(|step| step.bytes > 0);
        if has_moved && !task.is_size_known {
            task.is_size_known = OpenFiles::of(&task.cgroup).remaining_bytes.is_some();
        }
        steps
    }

    #[must_use]
    pub fn advice(&self, max_frozen_ns: u64) -> ThrottleAdvice {
        let seen_ns = self.looked_ns.saturating_sub(self.began_ns);
        let disks = self.observer.disks().iter().zip(&self.disks);
        let disks = disks.enumerate().map(|(number, (disk, watched))| {
            let measured = crate::learn_disk::read_learned(disk.dev);
            let tasks = self.tasks.iter().map(|task| self.observe(task, number, measured.as_ref()));
            ObservedDisk {
                name: disk.name.clone(),
                has_arm: disk.has_arm,
                processors: std::thread::available_parallelism().map_or(1, usize::from),
                busy_ns: watched.last.busy_ns.saturating_sub(watched.first.busy_ns),
                bytes: watched.last.bytes.saturating_sub(watched.first.bytes),
                slowed_ns: watched.slowed_ns.clone(),
                tasks: tasks.collect(),
                measured,
            }
        });
        ThrottleAdvice::of(disks.collect(), seen_ns, max_frozen_ns)
    }

    fn observe(
        &self,
        task: &WatchedTask,
        disk: usize,
        measured: Option<&DiskProfile>,
    ) -> ObservedTask {
        let size_sectors = self.disks[disk].size_sectors;
        let tally = &task.tallies[disk];
        let end_ns = task.end_ns.unwrap_or(self.looked_ns);
        ObservedTask {
            name: task.name.clone(),
            queue_ns: tally.queue_ns,
            active_ns: tally.active_ns,
            seen: TaskActivity {
                place: size_sectors.zip(tally.sector()).map(|(size, sector)| sector / size),
                measured_bytes_per_s: measured
                    .zip(tally.sector())
                    .map(|(learned, sector)| learned.bytes_per_s_at(sector)),
                think_ns: task.think_ns,
                before_ns: task.before_ns.unwrap_or(0),
                after_ns: task.after_ns(),
                processor_ns: task.processor_ns,
                start_ns: task.start_ns.saturating_sub(self.began_ns),
                took_ns: end_ns.saturating_sub(task.start_ns),
                writes_last: tally.writes_last(),
                is_size_known: task.is_size_known,
                is_batch: task.class == TaskClass::Batch,
                ..tally.seen
            },
        }
    }
}

impl WatchedTask {
    /// Whether its first request is yet to come.
    fn is_awaited(&self) -> bool {
        self.before_ns.is_none() && self.end_ns.is_none()
    }

    /// Think time after its last request, ns: at most the time since the look before it ended.
    fn after_ns(&self) -> u64 {
        let last_ns = self.tallies.iter().map(TaskTally::last_complete_ns).max();
        match (self.end_ns, last_ns) {
            (Some(end_ns), Some(last_ns)) if last_ns > 0 => {
                end_ns.saturating_sub(last_ns).min(self.lately_ns)
            }
            _ => 0,
        }
    }
}

/// Attributes a task's waits to the other tasks that the disk served meanwhile, in proportion to their disk time.
fn blame(steps: &[ActivityStep], slowed_ns: &mut BTreeMap<SlowdownPair, f64>) {
    let all_ns: u64 = steps.iter().map(|step| step.device_ns).sum();
    for (slow, step) in steps.iter().enumerate() {
        let others_ns = all_ns - step.device_ns;
        let waited_ns = step.waited_ns.saturating_sub(step.device_ns).min(others_ns);
        if waited_ns == 0 {
            continue;
        }
        for (by, other) in steps.iter().enumerate() {
            if by != slow && other.device_ns > 0 {
                let part = other.device_ns as f64 / others_ns as f64;
                *slowed_ns.entry(SlowdownPair { slow, by }).or_default() += waited_ns as f64 * part;
            }
        }
    }
}

impl RunObserver for AdviseWatch<'_> {
    fn will_start(
        &mut self,
        task: &CommandTask,
        cgroup: &FreezableCgroup,
    ) -> Result<(), ThrottleError> {
        if self.tasks.is_empty() {
            self.began_ns = now_ns();
            self.looked_ns = self.began_ns;
        }
        let name = task.command.to_string_lossy().into_owned();
        self.add(name, task.class, cgroup.path())
    }

    fn started(&mut self, number: usize, at_ns: u64) {
        if let Some(task) = self.tasks.get_mut(number) {
            task.start_ns = at_ns;
        }
    }

    fn look(&mut self) -> u64 {
        let due_ns = self.looked_ns + LOOK_INTERVAL_NS;
        let now = now_ns();
        if now < due_ns && !self.has_begun() {
            let is_new = |task: &WatchedTask| now < task.start_ns + FIRST_REQUEST_TIMEOUT_NS;
            let is_awaited = self.tasks.iter().any(|task| task.is_awaited() && is_new(task));
            return if is_awaited { due_ns.min(now + FIRST_REQUEST_INTERVAL_NS) } else { due_ns };
        }
        self.look_now()
    }

    fn ended(&mut self, number: usize) {
        self.look_now();
        if let Some(task) = self.tasks.get_mut(number) {
            task.end_ns.get_or_insert_with(now_ns);
        }
    }

    fn is_content(&self) -> bool {
        self.until_ns.is_some_and(|until_ns| now_ns() >= until_ns)
    }
}
