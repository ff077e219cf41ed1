//! Batch steps back for protected tasks: while they wait, and for a learned quiet time after.

use std::collections::{BTreeMap, VecDeque};

use super::super::sample::{Class, TaskId, TaskSample};

/// The longest quiet time, ns.
pub(super) const MAX_QUIET_NS: u64 = 50_000_000;
/// How many gaps are remembered.
const GAPS: usize = 32;
/// The part of the gaps that a quiet time should cover, in tenths.
const COVERED_TENTHS: usize = 9;
/// A protected task that did nothing for this long no longer counts as using the disk, ns.
const PRESENT_NS: u64 = 1_000_000_000;
/// What batch is owed is counted over this window, ns.
const WINDOW_NS: f64 = 1e9;

/// One protected task.
#[derive(Clone, Debug, Default)]
struct Client {
    /// Gaps between its requests, ns: from nothing outstanding to the next.
    gaps: VecDeque<u64>,
    quiet_ns: u64,
    is_waiting: bool,
    /// Since when nothing is outstanding; 0: never was anything.
    idle_since_ns: u64,
    last_submit_ns: u64,
}

impl Client {
    fn look(&mut self, sample: &TaskSample, now_ns: u64) {
        let is_waiting = sample.outstanding > 0;
        let has_submitted = sample.last_submit_ns > self.last_submit_ns;
        if self.idle_since_ns > 0 && has_submitted && !self.is_waiting {
            self.add_gap(sample.last_submit_ns.saturating_sub(self.idle_since_ns));
        }
        if !is_waiting && (self.is_waiting || has_submitted) {
            self.idle_since_ns = now_ns;
        }
        self.is_waiting = is_waiting;
        self.last_submit_ns = sample.last_submit_ns;
    }

    /// The quiet time covers the larger part of the gaps, or there is none: where most gaps are longer than batch can
    /// be asked to wait, waiting only costs.
    fn add_gap(&mut self, gap_ns: u64) {
        if self.gaps.len() == GAPS {
            self.gaps.pop_front();
        }
        self.gaps.push_back(gap_ns);
        let mut short: Vec<u64> = self
            .gaps
            .iter()
            .copied()
            .filter(|gap| *gap <= MAX_QUIET_NS)
            .collect();
        short.sort_unstable();
        let covered = short.len() * COVERED_TENTHS / 10;
        self.quiet_ns = match short.get(covered.min(short.len().saturating_sub(1))) {
            Some(gap_ns) if short.len() * 2 > self.gaps.len() => {
                (gap_ns + gap_ns / 8 + 1_000_000).min(MAX_QUIET_NS)
            }
            _ => 0,
        };
    }

    fn holds_until_ns(&self) -> u64 {
        if self.is_waiting {
            u64::MAX
        } else if self.idle_since_ns == 0 {
            0
        } else {
            self.idle_since_ns + self.quiet_ns
        }
    }
}

/// What protected tasks demand, and what batch is owed.
#[derive(Clone, Debug, Default)]
pub(super) struct Protect {
    clients: BTreeMap<TaskId, Client>,
    /// Time that batch is owed, ns; negative when it had more than its floor.
    owed_ns: f64,
    /// Whether batch is being paid what it is owed.
    is_paying: bool,
    is_present: bool,
}

impl Protect {
    /// Looks at the protected tasks.
    pub(super) fn look(&mut self, tasks: &[TaskSample], now_ns: u64) {
        let protected = || tasks.iter().filter(|task| task.class == Class::Protected);
        if !self.clients.is_empty() {
            self.clients
                .retain(|id, _| protected().any(|task| task.task == *id));
        }
        for task in protected() {
            self.clients
                .entry(task.task)
                .or_default()
                .look(task, now_ns);
        }
        self.is_present = self.clients.values().any(|client| {
            let idle_ns = now_ns.saturating_sub(client.idle_since_ns);
            client.is_waiting || (client.idle_since_ns > 0 && idle_ns < PRESENT_NS)
        });
    }

    /// Pays for the time since the last look. `grain_ns` is how much batch is given at a time, so that it gets
    /// somewhere.
    pub(super) fn account(
        &mut self,
        elapsed_ns: u64,
        batch_ran: bool,
        batch_waits: bool,
        floor: f64,
        grain_ns: u64,
    ) {
        let elapsed_ns = elapsed_ns as f64;
        if batch_ran {
            self.owed_ns -= elapsed_ns * (1.0 - floor);
        } else if batch_waits {
            self.owed_ns += elapsed_ns * floor;
        }
        self.owed_ns = self.owed_ns.clamp(-WINDOW_NS * floor, WINDOW_NS * floor);
        if self.owed_ns >= (grain_ns as f64).min(WINDOW_NS * floor) && floor > 0.0 {
            self.is_paying = true;
        } else if self.owed_ns <= 0.0 {
            self.is_paying = false;
        }
    }

    /// Whether protected tasks use the disk, now or in the last second.
    pub(super) fn is_present(&self) -> bool {
        self.is_present
    }

    /// Until when batch is to be frozen, ns; `u64::MAX` while a protected request is out.
    pub(super) fn holds_until_ns(&self) -> u64 {
        let longest = self.clients.values().map(Client::holds_until_ns).max();
        if self.is_paying {
            0
        } else {
            longest.unwrap_or(0)
        }
    }

    /// How long batch is kept away after a protected request, ns: the longest of the learned quiet times.
    pub(super) fn quiet_ns(&self) -> u64 {
        self.clients
            .values()
            .map(|client| client.quiet_ns)
            .max()
            .unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn client(outstanding: u32, last_submit_ns: u64) -> TaskSample {
        TaskSample {
            class: Class::Protected,
            outstanding,
            last_submit_ns,
            ..TaskSample::new(TaskId(7))
        }
    }

    /// A client that submits at these times, each request taking 5 ms.
    fn after(submits_ms: &[u64]) -> Protect {
        let mut protect = Protect::default();
        for at in submits_ms {
            protect.look(&[client(1, at * MS)], at * MS);
            protect.look(&[client(0, at * MS)], (at + 5) * MS);
        }
        protect
    }

    #[test]
    fn a_waiting_client_holds_batch_and_the_quiet_time_is_learned() {
        let mut protect = after(&[10, 20, 30, 40]);
        assert!(
            (5 * MS..8 * MS).contains(&protect.quiet_ns()),
            "{}",
            protect.quiet_ns()
        );
        assert_eq!(protect.holds_until_ns(), 45 * MS + protect.quiet_ns());
        protect.look(&[client(1, 50 * MS)], 50 * MS);
        assert_eq!(protect.holds_until_ns(), u64::MAX);
    }

    #[test]
    fn gaps_that_are_too_long_are_not_waited_for() {
        let protect = after(&[10, 200, 400, 600]);
        assert_eq!(protect.quiet_ns(), 0);
        let mixed = after(&[10, 20, 30, 40, 50, 300, 310, 320]);
        assert!(mixed.quiet_ns() >= 5 * MS, "most are short");
    }

    #[test]
    fn a_request_that_came_and_went_between_two_looks_counts() {
        let mut protect = after(&[10]);
        protect.look(&[client(0, 20 * MS)], 30 * MS);
        assert!(protect.quiet_ns() > 0);
        assert_eq!(protect.holds_until_ns(), 30 * MS + protect.quiet_ns());
    }

    #[test]
    fn batch_is_paid_its_floor() {
        let mut protect = after(&[10]);
        protect.look(&[client(1, 20 * MS)], 20 * MS);
        let mut ran_ms = 0;
        for _ in 0..10_000 {
            let runs = protect.holds_until_ns() == 0;
            ran_ms += u64::from(runs);
            protect.account(MS, runs, true, 0.1, 50 * MS);
        }
        assert!((900..=1_100).contains(&ran_ms), "{ran_ms} of 10000");
    }

    #[test]
    fn a_client_that_ended_no_longer_counts() {
        let mut protect = after(&[10]);
        assert!(protect.is_present());
        protect.look(&[], 20 * MS);
        assert!(!protect.is_present());
        assert_eq!(protect.holds_until_ns(), 0);
    }
}
