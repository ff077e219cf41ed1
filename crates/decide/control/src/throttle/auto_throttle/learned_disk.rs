//! Learns solo rates, the speed-up of running together, and the cost of a switch, by observation.

use super::super::policy_input::TaskId;
use super::super::vector_points::LossCurve;
use super::DiskMeasurement;
use super::policy_task::{PolicyTask, TaskTable};

/// Time after a switch at which its cost is measured, ns.
const SWITCH_MEASUREMENT_NS: u64 = 200_000_000;
/// Shortest pause in learning after a change of the running set, ns.
const MIN_SETTLE_NS: u64 = 4_000_000;
/// Nothing is learned while other tasks take more than this part of the disk's time.
const MAX_OTHERS_FRACTION: f64 = 0.1;
/// Observation time that an earlier measurement counts as, ns.
const MEASURED_WEIGHT_NS: u64 = 400_000_000;
/// Observation time after which a task's own rate is trusted, ns. Requests of others in flight distort the first
/// moments.
const MIN_TRUSTED_NS: f64 = 100e6;
/// A task alone keeps the disk busy if it reaches this part of its device rate.
const MIN_BUSY_FRACTION: f64 = 0.8;
/// Time constant of the smoothed speed-up, ns.
const SMOOTHING_NS: f64 = 1e9;
/// Assumed sequential rate of an unknown disk, bytes per nanosecond. A task of unknown rate is assumed to be fast, so
/// that it runs and shows its rate.
const DEFAULT_BYTES_PER_NS: f64 = 0.1;

/// A turn that is observed from its beginning.
#[derive(Clone, Copy, Debug)]
struct ObservedTurn {
    task: TaskId,
    began_ns: u64,
    bytes: u64,
}

/// Everything learned about a disk.
#[derive(Clone, Debug)]
pub(super) struct LearnedDisk {
    pub(super) curve: LossCurve,
    switch_ns: f64,
    /// Time of the last change of the running set, ns.
    changed_ns: u64,
    turn: Option<ObservedTurn>,
    /// Smoothed speed-up of the running set.
    speed_up: Option<f64>,
    /// Highest device rate of a task that was alone and kept the disk busy, bytes per nanosecond. It is at least the
    /// typical rate. Tasks that pause are left out: the drive reads ahead meanwhile, so they seem too fast.
    best_rate: f64,
}

impl LearnedDisk {
    pub(super) fn new(switch_ns: u64) -> Self {
        Self {
            curve: LossCurve::default(),
            switch_ns: switch_ns as f64,
            changed_ns: 0,
            turn: None,
            speed_up: None,
            best_rate: DEFAULT_BYTES_PER_NS,
        }
    }

    /// Takes an earlier measurement as a start.
    pub(super) fn believe(&mut self, measured: &DiskMeasurement, now_ns: u64) {
        self.switch_ns = measured.switch_ns as f64;
        for (tasks, speed_up) in &measured.speed_ups {
            self.curve.add(*tasks, *speed_up, MEASURED_WEIGHT_NS, now_ns);
        }
    }

    pub(super) fn switch_ns(&self) -> u64 {
        self.switch_ns as u64
    }

    pub(super) fn speed_up(&self) -> Option<f64> {
        self.speed_up
    }

    /// Notes a change of the running set. Nothing is learned until it has settled.
    pub(super) fn change(&mut self, table: &TaskTable, now_ns: u64) {
        self.changed_ns = now_ns;
        let mut running = table.competing().filter(|task| !task.is_frozen);
        self.turn = match (running.next(), running.next()) {
            (Some(task), None) => {
                Some(ObservedTurn { task: task.id(), began_ns: now_ns, bytes: task.last.bytes })
            }
            _ => None,
        };
    }

    /// Whether an interval that began at `began_ns` is late enough after the last change.
    fn is_settled(&self, began_ns: u64) -> bool {
        began_ns >= self.changed_ns + MIN_SETTLE_NS.max(2 * self.switch_ns())
    }

    /// Learns from the time since the last look.
    pub(super) fn look(&mut self, table: &mut TaskTable, elapsed_ns: u64, now_ns: u64) {
        let running: Vec<TaskId> =
            table.competing().filter(|task| !task.is_frozen).map(PolicyTask::id).collect();
        // The request of a task that was frozen just now is still served, and moves the arm away.
        if table.iter().any(|task| task.is_frozen && task.had_outstanding) {
            self.changed_ns = now_ns;
        }
        if elapsed_ns == 0 || !self.is_settled(now_ns - elapsed_ns.min(now_ns)) {
            return;
        }
        let others = table.iter().filter(|task| !running.contains(&task.id()));
        let others_ns: u64 = others.map(|task| task.served_ns).sum();
        if others_ns as f64 > MAX_OTHERS_FRACTION * elapsed_ns as f64 || running.is_empty() {
            return;
        }
        if let [alone] = running[..] {
            self.learn_solo(table, alone, elapsed_ns);
            self.judge_switch(table, alone, now_ns);
            self.smooth_speed_up(1.0, elapsed_ns);
            return;
        }
        let ratio = |task: &TaskId| {
            let task = table.get(*task)?;
            Some(task.moved_bytes as f64 / elapsed_ns as f64 / task.solo.per_ns()?)
        };
        if let Some(speed_up) = running.iter().map(ratio).sum::<Option<f64>>() {
            self.curve.add(running.len(), speed_up, elapsed_ns, now_ns);
            self.smooth_speed_up(speed_up, elapsed_ns);
        }
    }

    fn learn_solo(&mut self, table: &mut TaskTable, task: TaskId, elapsed_ns: u64) {
        if let Some(task) = table.get_mut(task) {
            task.solo.add(task.moved_bytes, elapsed_ns);
            task.solo_requests += task.moved_requests;
            task.solo_device.add(task.moved_bytes, task.served_ns);
            let rate = task.solo_device.per_ns_after(MIN_TRUSTED_NS);
            if let (Some(rate), Some(with_pauses)) = (rate, task.solo.per_ns())
                && with_pauses >= MIN_BUSY_FRACTION * rate
            {
                self.best_rate = self.best_rate.max(rate);
            }
        }
    }

    /// Measures the cost of a switch: the time since the thaw, less the time that the moved bytes take at the solo
    /// rate.
    fn judge_switch(&mut self, table: &TaskTable, task: TaskId, now_ns: u64) {
        let Some(turn) = self.turn.filter(|turn| turn.task == task) else {
            return;
        };
        let elapsed_ns = now_ns.saturating_sub(turn.began_ns);
        let task = table.get(task).map(|task| (task.last.bytes, task.solo.per_ns()));
        if let Some((bytes, Some(rate))) = task.filter(|_| elapsed_ns >= SWITCH_MEASUREMENT_NS) {
            let worth_ns = bytes.saturating_sub(turn.bytes) as f64 / rate;
            let cost_ns = (elapsed_ns as f64 - worth_ns).clamp(0.0, elapsed_ns as f64);
            self.switch_ns += (cost_ns - self.switch_ns) / 4.0;
            self.turn = None;
        }
    }

    fn smooth_speed_up(&mut self, speed_up: f64, elapsed_ns: u64) {
        let before = self.speed_up.unwrap_or(speed_up);
        let weight = (elapsed_ns as f64 / SMOOTHING_NS).min(1.0);
        self.speed_up = Some(before + (speed_up - before) * weight);
    }

    /// Device time for the bytes that a task has yet to move, ns.
    pub(super) fn lacking_ns(&self, table: &TaskTable, task: TaskId) -> Option<u64> {
        let task = table.get(task)?;
        let bytes = task.last.remaining_bytes?;
        let own = task.solo_device.per_ns_after(MIN_TRUSTED_NS);
        Some((bytes as f64 / own.unwrap_or(self.best_rate)) as u64)
    }
}
