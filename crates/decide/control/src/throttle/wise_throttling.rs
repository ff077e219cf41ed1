//! The paper's policy as printed (WiseThrottling, section 4): for comparison, not for use.
//!
//! At each check interval, tasks that are busy and due by their `dtimeslice` are candidates. While the sum of demands
//! or a Vector Point is violated, the candidate with the highest demand (*sensitivity*) is suspended. Otherwise the
//! tasks that were suspended longest are resumed, few at a time. Threads are tasks of their own here, so they count one
//! by one. The weak point of the policy is that it reads demand under contention (see the tests).

mod io_log_profile;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::policy_input::{
    FreezeAction, FreezeOrder, FreezeReason, TaskClass, TaskId, TaskSample, ThrottleDecision,
    ThrottlePolicy, ThrottleSample,
};
use super::vector_points::{BW_RATIO_LIMIT, VectorPoint, bw_ratio, find_violated};
pub use io_log_profile::{IoLogProfile, profile};

/// Order in which tasks are suspended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SuspendFirst {
    /// The task with the highest sensitivity, as in the paper.
    #[default]
    MostSensitive,
    /// The task with the lowest sensitivity (an ablation).
    LeastSensitive,
    /// The task that arrived first (an ablation).
    Oldest,
}

/// Settings of [`WisePolicy`], by the paper's names.
#[derive(Clone, Debug, PartialEq)]
pub struct WiseConfig {
    /// CHECK_INTERVAL, ns: 1 s and more.
    pub check_interval_ns: u64,
    /// IO_BUSY_THRESHOLD: rate above which a task is busy, bytes per second.
    pub busy_bytes_per_s: u64,
    /// Peak bandwidth of the disk, bytes per second.
    pub peak_bytes_per_s: f64,
    /// BW_Ratio: part of the peak that the sum of demands may reach.
    pub bw_ratio: f64,
    /// Vector Points of the disk.
    pub vector_points: Vec<VectorPoint>,
    /// TURNABLE_ext: number of idle inspections in a row after which a task is inspected more rarely.
    pub turnable_ext: u32,
    /// TURNABLE_sht: number of busy inspections in a row after which a task is inspected more often.
    pub turnable_sht: u32,
    /// X: factor by which `dtimeslice` changes then.
    pub factor: u64,
    /// RESUME_GROUP: largest part of the co-runners that is resumed at one check.
    pub resume_group: f64,
    /// Order in which candidates are suspended.
    pub suspend_first: SuspendFirst,
    /// Whether `dtimeslice` adapts to the task (SelfTuning_Adaptive_Dtimeslice).
    pub self_tuning: bool,
}

impl WiseConfig {
    /// The paper's settings, for a disk of this peak (bytes per second) with these Vector Points. The paper gives no
    /// threshold: 1 MB/s is assumed.
    #[must_use]
    pub fn paper(peak_bytes_per_s: f64, vector_points: Vec<VectorPoint>) -> Self {
        Self {
            check_interval_ns: 1_000_000_000,
            busy_bytes_per_s: 1_000_000,
            peak_bytes_per_s,
            bw_ratio: BW_RATIO_LIMIT,
            vector_points,
            turnable_ext: 10,
            turnable_sht: 5,
            factor: 2,
            resume_group: 0.25,
            suspend_first: SuspendFirst::default(),
            self_tuning: true,
        }
    }
}

/// A task's description `<dtimeslice, sensitivity>`, and the counters that adapt it.
#[derive(Clone, Copy, Debug)]
struct Description {
    dtimeslice: u64,
    initial_dtimeslice: u64,
    sensitivity: f64,
    /// Its present rate, bytes per second.
    demand: f64,
    idle: u32,
    busy: u32,
    /// Number of the check at which it was suspended.
    suspended: Option<u64>,
    bytes: u64,
}

/// The paper's policy for one disk.
#[derive(Clone, Debug)]
pub struct WisePolicy {
    config: WiseConfig,
    /// Initial `dtimeslice` of tasks, from the static module.
    profiles: BTreeMap<TaskId, u64>,
    tasks: BTreeMap<TaskId, Description>,
    /// Number of checks so far; `None` before the first look.
    checks: Option<u64>,
    checked_ns: u64,
}

impl WisePolicy {
    /// Creates a policy that has seen nothing yet.
    #[must_use]
    pub fn new(config: WiseConfig) -> Self {
        Self {
            config,
            profiles: BTreeMap::new(),
            tasks: BTreeMap::new(),
            checks: None,
            checked_ns: 0,
        }
    }

    /// Sets the initial `dtimeslice` of a task, as found by the static module. The default is 1.
    pub fn describe(&mut self, task: TaskId, dtimeslice: u64) {
        self.profiles.insert(task, dtimeslice.max(1));
    }

    /// Present `<dtimeslice, sensitivity>` of a task: check intervals, and bytes per second.
    #[must_use]
    pub fn description(&self, task: TaskId) -> Option<(u64, f64)> {
        self.tasks.get(&task).map(|task| (task.dtimeslice, task.sensitivity))
    }

    /// Reads the I/O of all tasks since the last check.
    fn read(&mut self, tasks: &[TaskSample], elapsed_ns: u64) {
        let elapsed_s = (elapsed_ns as f64 / 1e9).max(1e-9);
        self.tasks.retain(|id, _| {
            tasks.iter().any(|task| task.task == *id && task.class == TaskClass::Batch)
        });
        for sample in tasks.iter().filter(|task| task.class == TaskClass::Batch) {
            let initial = self.profiles.get(&sample.task).copied().unwrap_or(1);
            let task = self.tasks.entry(sample.task).or_insert(Description {
                dtimeslice: initial,
                initial_dtimeslice: initial,
                sensitivity: 0.0,
                demand: 0.0,
                idle: 0,
                busy: 0,
                suspended: None,
                bytes: sample.bytes,
            });
            task.demand = sample.bytes.saturating_sub(task.bytes) as f64 / elapsed_s;
            task.bytes = sample.bytes;
        }
    }

    fn is_busy(&self, task: &Description) -> bool {
        task.demand > self.config.busy_bytes_per_s as f64
    }

    /// Candidate_Queue_Setup (Fig. 18a): due, busy and running tasks, in order of suspension.
    fn candidates(&mut self, check: u64) -> Vec<TaskId> {
        let busy_above = self.config.busy_bytes_per_s as f64;
        let mut queue: Vec<(f64, TaskId)> = Vec::new();
        for (id, task) in &mut self.tasks {
            let is_due = check.is_multiple_of(task.dtimeslice) && task.suspended.is_none();
            if is_due && task.demand > busy_above {
                task.sensitivity = task.demand;
                queue.push((task.sensitivity, *id));
            }
        }
        match self.config.suspend_first {
            SuspendFirst::MostSensitive => queue.sort_by(|a, b| b.0.total_cmp(&a.0)),
            SuspendFirst::LeastSensitive => queue.sort_by(|a, b| a.0.total_cmp(&b.0)),
            // Numbers are given in the order of arrival.
            SuspendFirst::Oldest => queue.sort_by_key(|(_, id)| *id),
        }
        queue.into_iter().map(|(_, id)| id).collect()
    }

    /// Whether the running tasks ask for too much.
    fn is_violated(&self) -> bool {
        let running = self.tasks.values().filter(|task| task.suspended.is_none());
        let demands: Vec<f64> = running.map(|task| task.demand).collect();
        bw_ratio(&demands, self.config.peak_bytes_per_s) > self.config.bw_ratio
            || find_violated(&self.config.vector_points, &demands).is_some()
    }

    /// Coordination (Fig. 18b): suspends the most sensitive tasks while anything is violated, else resumes.
    fn coordinate(&mut self, candidates: &[TaskId], check: u64) -> Vec<FreezeOrder> {
        if !self.is_violated() {
            return self.resume();
        }
        let mut orders = Vec::new();
        for id in candidates {
            if !self.is_violated() {
                break;
            }
            if let Some(task) = self.tasks.get_mut(id) {
                task.suspended = Some(check);
                orders.push(order(*id, FreezeAction::Freeze));
            }
        }
        orders
    }

    /// Resumes the tasks that were suspended longest, at most a part of all.
    fn resume(&mut self) -> Vec<FreezeOrder> {
        let most = ((self.tasks.len() as f64 * self.config.resume_group) as usize).max(1);
        let mut suspended: Vec<(u64, TaskId)> =
            self.tasks.iter().filter_map(|(id, task)| Some((task.suspended?, *id))).collect();
        suspended.sort_unstable();
        suspended.truncate(most);
        let mut orders = Vec::new();
        for (_, id) in suspended {
            if let Some(task) = self.tasks.get_mut(&id) {
                task.suspended = None;
                orders.push(order(id, FreezeAction::Thaw));
            }
        }
        orders
    }

    /// SelfTuning_Adaptive_Dtimeslice (Fig. 16b), for tasks that were due and ran. The counters restart after each
    /// change.
    fn tune(&mut self, due: &[TaskId]) {
        for id in due {
            let Some(mut task) = self.tasks.get(id).copied() else {
                continue;
            };
            if self.is_busy(&task) {
                (task.busy, task.idle) = (task.busy + 1, 0);
                if task.busy >= self.config.turnable_sht {
                    task.dtimeslice =
                        (task.dtimeslice / self.config.factor.max(1)).max(task.initial_dtimeslice);
                    task.busy = 0;
                }
            } else {
                (task.busy, task.idle) = (0, task.idle + 1);
                if task.idle >= self.config.turnable_ext {
                    task.dtimeslice = task.dtimeslice.saturating_mul(self.config.factor.max(1));
                    task.idle = 0;
                }
            }
            self.tasks.insert(*id, task);
        }
    }

    fn check(&mut self, check: u64) -> Vec<FreezeOrder> {
        let is_due = |task: &Description| check.is_multiple_of(task.dtimeslice);
        if !self.tasks.values().any(is_due) {
            return Vec::new();
        }
        let due: Vec<TaskId> = self
            .tasks
            .iter()
            .filter(|(_, task)| is_due(task) && task.suspended.is_none())
            .map(|(id, _)| *id)
            .collect();
        let candidates = self.candidates(check);
        let orders = self.coordinate(&candidates, check);
        if self.config.self_tuning {
            self.tune(&due);
        }
        orders
    }
}

fn order(task: TaskId, action: FreezeAction) -> FreezeOrder {
    FreezeOrder { task, action, reason: FreezeReason::Rule }
}

impl ThrottlePolicy for WisePolicy {
    fn decide(&mut self, sample: &ThrottleSample<'_>) -> ThrottleDecision {
        let elapsed_ns = sample.now_ns.saturating_sub(self.checked_ns);
        let is_first = self.checks.is_none();
        let mut orders = Vec::new();
        if is_first || elapsed_ns >= self.config.check_interval_ns {
            self.read(sample.tasks, elapsed_ns);
            self.checked_ns = sample.now_ns;
            let check = self.checks.map_or(0, |checks| checks + 1);
            if !is_first {
                orders = self.check(check - 1);
            }
            self.checks = Some(check);
        }
        ThrottleDecision { orders, look_again_ns: self.checked_ns + self.config.check_interval_ns }
    }
}
