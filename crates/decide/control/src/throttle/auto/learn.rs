//! What is learned from watching: solo rates, what running together is worth, and what a switch costs.

use super::super::sample::TaskId;
use super::super::vector_points::LossCurve;
use super::Measured;
use super::task::Table;

/// A switch is judged this long after it, ns.
const JUDGED_AFTER_NS: u64 = 200_000_000;
/// After a change of the running set, nothing is learned for at least this long, ns.
const SETTLE_NS: u64 = 4_000_000;
/// Nothing is learned while tasks that are none of ours take more than this part of the disk's time.
const OTHERS: f64 = 0.1;
/// What was measured before counts as if it had been watched for so long, ns.
const MEASURED_NS: u64 = 400_000_000;
/// What a task lacks is reckoned by its own rate once that was watched for this long, ns: requests of others that were
/// under way when it began spoil the first moments.
const TRUSTED_NS: f64 = 100e6;
/// A task that has the disk to itself keeps it busy where it is at it for this part of the time.
const BUSY: f64 = 0.8;
/// Half-life of the present speed-up that is shown, ns.
const SHOWN_NS: f64 = 1e9;
/// Sequential rate of a disk about which nothing is known, bytes per nanosecond. A task that has not shown its own is
/// taken for a fast one, even if slow ones were seen: it had better run, to show it.
const TYPICAL_RATE: f64 = 0.1;

/// A turn that is watched from its beginning.
#[derive(Clone, Copy, Debug)]
struct Turn {
    task: TaskId,
    began_ns: u64,
    bytes: u64,
}

/// What was learned of a disk.
#[derive(Clone, Debug)]
pub(super) struct Learned {
    pub(super) curve: LossCurve,
    switch_ns: f64,
    /// When the running set last changed, ns.
    changed_ns: u64,
    turn: Option<Turn>,
    /// Speed-up of what runs now, smoothed.
    speed_up: Option<f64>,
    /// Bytes per nanosecond of device time of the fastest task that had the disk to itself and kept it busy, and at least
    /// what is typical. For one that thinks the drive reads ahead meanwhile, so that it seems faster than any.
    best_rate: f64,
}

impl Learned {
    pub(super) fn new(switch_ns: u64) -> Self {
        Self {
            curve: LossCurve::default(),
            switch_ns: switch_ns as f64,
            changed_ns: 0,
            turn: None,
            speed_up: None,
            best_rate: TYPICAL_RATE,
        }
    }

    /// Takes what was measured before.
    pub(super) fn believe(&mut self, measured: &Measured, now_ns: u64) {
        self.switch_ns = measured.switch_ns as f64;
        for (tasks, speed_up) in &measured.speed_ups {
            self.curve.add(*tasks, *speed_up, MEASURED_NS, now_ns);
        }
    }

    pub(super) fn switch_ns(&self) -> u64 {
        self.switch_ns as u64
    }

    pub(super) fn speed_up(&self) -> Option<f64> {
        self.speed_up
    }

    /// The running set has changed: nothing is learned until it has settled.
    pub(super) fn change(&mut self, table: &Table, now_ns: u64) {
        self.changed_ns = now_ns;
        let mut running = table.competing().filter(|task| !task.is_frozen);
        self.turn = match (running.next(), running.next()) {
            (Some(task), None) => {
                Some(Turn { task: task.id(), began_ns: now_ns, bytes: task.last.bytes })
            }
            _ => None,
        };
    }

    /// Whether an interval that began at `began_ns` is after the dust of the last change.
    fn is_settled(&self, began_ns: u64) -> bool {
        began_ns >= self.changed_ns + SETTLE_NS.max(2 * self.switch_ns())
    }

    /// Learns from what was seen since the last look.
    pub(super) fn look(&mut self, table: &mut Table, elapsed_ns: u64, now_ns: u64) {
        let running: Vec<TaskId> =
            table.competing().filter(|task| !task.is_frozen).map(super::task::Task::id).collect();
        // The request of a task that was frozen just now is still served, and moves the arm away.
        let is_disturbed = table.iter().any(|task| task.is_frozen && task.had_outstanding);
        if is_disturbed {
            self.changed_ns = now_ns;
        }
        if elapsed_ns == 0 || !self.is_settled(now_ns - elapsed_ns.min(now_ns)) {
            return;
        }
        let others = table.iter().filter(|task| !running.contains(&task.id()));
        let others_ns: u64 = others.map(|task| task.served_ns).sum();
        let by_others = others_ns as f64 > OTHERS * elapsed_ns as f64;
        if by_others || running.is_empty() {
            return;
        }
        if let [alone] = running[..] {
            self.learn_solo(table, alone, elapsed_ns);
            self.judge_switch(table, alone, now_ns);
            self.show(1.0, elapsed_ns);
            return;
        }
        let ratio = |task: &TaskId| {
            let task = table.get(*task)?;
            Some(task.moved_bytes as f64 / elapsed_ns as f64 / task.solo.per_ns()?)
        };
        if let Some(speed_up) = running.iter().map(ratio).sum::<Option<f64>>() {
            self.curve.add(running.len(), speed_up, elapsed_ns, now_ns);
            self.show(speed_up, elapsed_ns);
        }
    }

    fn learn_solo(&mut self, table: &mut Table, task: TaskId, elapsed_ns: u64) {
        if let Some(task) = table.get_mut(task) {
            task.solo.add(task.moved_bytes, elapsed_ns);
            task.solo_requests += task.moved_requests;
            task.solo_device.add(task.moved_bytes, task.served_ns);
            let rate = task.solo_device.per_ns_after(TRUSTED_NS);
            if let (Some(rate), Some(with_pauses)) = (rate, task.solo.per_ns())
                && with_pauses >= BUSY * rate
            {
                self.best_rate = self.best_rate.max(rate);
            }
        }
    }

    /// Time from the thaw to the solo rate: what is lacking of the bytes that the time would have been good for.
    fn judge_switch(&mut self, table: &Table, task: TaskId, now_ns: u64) {
        let Some(turn) = self.turn.filter(|turn| turn.task == task) else {
            return;
        };
        let elapsed_ns = now_ns.saturating_sub(turn.began_ns);
        let task = table.get(task).map(|task| (task.last.bytes, task.solo.per_ns()));
        if let Some((bytes, Some(rate))) = task.filter(|_| elapsed_ns >= JUDGED_AFTER_NS) {
            let worth_ns = bytes.saturating_sub(turn.bytes) as f64 / rate;
            let cost_ns = (elapsed_ns as f64 - worth_ns).clamp(0.0, elapsed_ns as f64);
            self.switch_ns += (cost_ns - self.switch_ns) / 4.0;
            self.turn = None;
        }
    }

    fn show(&mut self, speed_up: f64, elapsed_ns: u64) {
        let before = self.speed_up.unwrap_or(speed_up);
        let weight = (elapsed_ns as f64 / SHOWN_NS).min(1.0);
        self.speed_up = Some(before + (speed_up - before) * weight);
    }

    /// Device time for what a task yet has to move, ns.
    pub(super) fn lacking_ns(&self, table: &Table, task: TaskId) -> Option<u64> {
        let task = table.get(task)?;
        let bytes = task.last.remaining_bytes?;
        let own = task.solo_device.per_ns_after(TRUSTED_NS);
        Some((bytes as f64 / own.unwrap_or(self.best_rate)) as u64)
    }
}
