//! Freezes batch while protected tasks wait, and for a learned quiet time afterwards.
//!
//! The time between two requests of a protected task is a *gap*. Batch requests in a gap delay the request that ends
//! it. A gap is *closed* to batch by the quiet time, or *open*. The 99th percentile target of the task decides which
//! gaps are open ([`GapShare`]). Without a target, the time owed to batch decides.

mod gap_share;

use std::collections::{BTreeMap, VecDeque};

use super::super::policy_input::{TaskClass, TaskId, TaskSample};
use gap_share::GapShare;

pub(super) const MAX_QUIET_NS: u64 = 50_000_000;
/// Number of gaps remembered for each task.
const MAX_GAPS: usize = 32;
/// Part of the gaps that the quiet time should cover, in tenths.
const QUIET_COVERAGE_TENTHS: usize = 9;
/// Time without a request before a protected task no longer counts as present, ns.
const PRESENCE_TIMEOUT_NS: u64 = 1_000_000_000;
/// Window over which the debt to batch is counted, ns.
const DEBT_WINDOW_NS: f64 = 1e9;
/// Part of the largest possible debt at which gaps are opened to batch.
const GAP_DEBT_FRACTION: f64 = 0.5;

/// State of one protected task.
#[derive(Clone, Debug, Default)]
struct Client {
    /// Times from its last completion to its next request, ns.
    gaps: VecDeque<u64>,
    quiet_ns: u64,
    is_waiting: bool,
    /// Beginning of its present or last wait, ns.
    wait_since_ns: u64,
    /// Rule for open gaps, if the task has a 99th percentile target.
    share: Option<GapShare>,
    /// Whether batch may use the present gap.
    is_open: bool,
    /// Time since when nothing is outstanding, ns; 0: it has made no request.
    idle_since_ns: u64,
    last_submit_ns: u64,
}

impl Client {
    fn look(&mut self, sample: &TaskSample, now_ns: u64) {
        let is_waiting = sample.outstanding > 0;
        let has_submitted = sample.last_submit_ns > self.last_submit_ns;
        if has_submitted && !self.is_waiting {
            if self.idle_since_ns > 0 {
                self.add_gap(sample.last_submit_ns.saturating_sub(self.idle_since_ns));
            }
            self.wait_since_ns = sample.last_submit_ns;
        }
        if sample.p99_ns.is_none() {
            (self.share, self.is_open) = (None, false);
        }
        if !is_waiting && (self.is_waiting || has_submitted) {
            self.idle_since_ns = now_ns;
            if let Some(p99_ns) = sample.p99_ns {
                let share = self.share.get_or_insert_default();
                share.note(now_ns.saturating_sub(self.wait_since_ns) > p99_ns);
                self.is_open = share.is_next_open();
            }
        }
        self.is_waiting = is_waiting;
        self.last_submit_ns = sample.last_submit_ns;
    }

    /// Learns the quiet time from a gap. The quiet time covers most short gaps. It is 0 if most gaps are longer than
    /// `MAX_QUIET_NS`, where waiting only costs.
    fn add_gap(&mut self, gap_ns: u64) {
        if self.gaps.len() == MAX_GAPS {
            self.gaps.pop_front();
        }
        self.gaps.push_back(gap_ns);
        let mut short: Vec<u64> =
            self.gaps.iter().copied().filter(|gap| *gap <= MAX_QUIET_NS).collect();
        short.sort_unstable();
        let covered = short.len() * QUIET_COVERAGE_TENTHS / 10;
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
            self.idle_since_ns + if self.is_open { 0 } else { self.quiet_ns }
        }
    }
}

/// Demand of protected tasks, and the debt to batch.
#[derive(Clone, Debug, Default)]
pub(super) struct TaskProtection {
    clients: BTreeMap<TaskId, Client>,
    /// Time owed to batch, ns; negative if batch had more than its floor.
    owed_ns: f64,
    /// Whether the debt is being paid in gaps.
    is_paying: bool,
    /// Whether the debt is paid even while protected tasks wait, because there are too few gaps.
    is_insisting: bool,
    is_present: bool,
}

impl TaskProtection {
    /// Takes the samples of the protected tasks.
    pub(super) fn look(&mut self, tasks: &[TaskSample], now_ns: u64) {
        let protected = || tasks.iter().filter(|task| task.class == TaskClass::Protected);
        self.clients.retain(|id, _| protected().any(|task| task.task == *id));
        for task in protected() {
            self.clients.entry(task.task).or_default().look(task, now_ns);
        }
        self.is_present = self.clients.values().any(|client| {
            let idle_ns = now_ns.saturating_sub(client.idle_since_ns);
            client.is_waiting || (client.idle_since_ns > 0 && idle_ns < PRESENCE_TIMEOUT_NS)
        });
    }

    /// Updates the debt for the time since the last look. Nothing is owed beside tasks with a 99th percentile target.
    pub(super) fn account(
        &mut self,
        elapsed_ns: u64,
        batch_ran: bool,
        batch_waits: bool,
        floor: f64,
    ) {
        let is_owed = self.clients.values().any(|client| client.share.is_none());
        let floor = if is_owed { floor } else { 0.0 };
        let elapsed_ns = elapsed_ns as f64;
        if batch_ran {
            self.owed_ns -= elapsed_ns * (1.0 - floor);
        } else if batch_waits {
            self.owed_ns += elapsed_ns * floor;
        }
        let most_ns = DEBT_WINDOW_NS * floor;
        self.owed_ns = self.owed_ns.clamp(-most_ns, most_ns);
        if self.owed_ns <= 0.0 {
            (self.is_paying, self.is_insisting) = (false, false);
        } else {
            self.is_paying |= self.owed_ns >= GAP_DEBT_FRACTION * most_ns;
            self.is_insisting |= self.owed_ns >= most_ns;
        }
    }

    /// Whether protected tasks use the disk now or did in the last second.
    pub(super) fn is_present(&self) -> bool {
        self.is_present
    }

    /// End of the freeze of batch, ns; `u64::MAX` while a protected request is outstanding.
    pub(super) fn holds_until_ns(&self) -> u64 {
        if self.is_insisting {
            return 0;
        }
        if self.is_paying {
            let is_waiting = self.clients.values().any(|client| client.is_waiting);
            return if is_waiting { u64::MAX } else { 0 };
        }
        self.clients.values().map(Client::holds_until_ns).max().unwrap_or(0)
    }

    /// Longest learned quiet time, ns: batch stays frozen this long after a protected request.
    pub(super) fn quiet_ns(&self) -> u64 {
        self.clients.values().map(|client| client.quiet_ns).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn client(outstanding: u32, last_submit_ns: u64) -> TaskSample {
        TaskSample {
            class: TaskClass::Protected,
            outstanding,
            last_submit_ns,
            ..TaskSample::new(TaskId(7))
        }
    }

    /// Runs a client that submits at these times. Each request takes 5 ms.
    fn run_client(submits_ms: &[u64]) -> TaskProtection {
        let mut protect = TaskProtection::default();
        for at in submits_ms {
            protect.look(&[client(1, at * MS)], at * MS);
            protect.look(&[client(0, at * MS)], (at + 5) * MS);
        }
        protect
    }

    #[test]
    fn a_waiting_client_holds_batch_and_the_quiet_time_is_learned() {
        let mut protect = run_client(&[10, 20, 30, 40]);
        assert!((5 * MS..8 * MS).contains(&protect.quiet_ns()), "{}", protect.quiet_ns());
        assert_eq!(protect.holds_until_ns(), 45 * MS + protect.quiet_ns());
        protect.look(&[client(1, 50 * MS)], 50 * MS);
        assert_eq!(protect.holds_until_ns(), u64::MAX);
    }

    #[test]
    fn gaps_that_are_too_long_are_not_waited_for() {
        let protect = run_client(&[10, 200, 400, 600]);
        assert_eq!(protect.quiet_ns(), 0);
        let mixed = run_client(&[10, 20, 30, 40, 50, 300, 310, 320]);
        assert!(mixed.quiet_ns() >= 5 * MS, "most are short");
    }

    #[test]
    fn a_request_that_came_and_went_between_two_looks_counts() {
        let mut protect = run_client(&[10]);
        protect.look(&[client(0, 20 * MS)], 30 * MS);
        assert!(protect.quiet_ns() > 0);
        assert_eq!(protect.holds_until_ns(), 30 * MS + protect.quiet_ns());
    }

    #[test]
    fn batch_is_paid_its_floor() {
        let mut protect = run_client(&[10]);
        protect.look(&[client(1, 20 * MS)], 20 * MS);
        let mut ran_ms = 0;
        for _ in 0..10_000 {
            let runs = protect.holds_until_ns() == 0;
            ran_ms += u64::from(runs);
            protect.account(MS, runs, true, 0.1);
        }
        assert!((900..=1_100).contains(&ran_ms), "{ran_ms} of 10000");
    }

    #[test]
    fn batch_is_paid_in_gaps_where_there_are_some() {
        let mut protect = run_client(&[10, 20, 30, 40]);
        let mut ran_ms = 0;
        for ms in 50..10_050 {
            let since_ms = ms % 20;
            if since_ms == 0 {
                protect.look(&[client(1, ms * MS)], ms * MS);
            } else if since_ms == 10 {
                protect.look(&[client(0, (ms - 10) * MS)], ms * MS);
            }
            let runs = protect.holds_until_ns() <= ms * MS;
            assert!(!runs || since_ms >= 10, "while the client waits");
            ran_ms += u64::from(runs);
            protect.account(MS, runs, true, 0.1);
        }
        assert!((900..=1_100).contains(&ran_ms), "{ran_ms} of 10000");
    }

    #[test]
    fn as_many_gaps_are_open_as_the_percentile_allows() {
        // A wait after an open gap is long at every fifth time.
        let mut protect = TaskProtection::default();
        let (mut open, mut long, mut at) = (0, 0, 10 * MS);
        for _ in 0..20_000 {
            let is_open = protect.holds_until_ns() <= at;
            open += u64::from(is_open);
            let is_long = is_open && open % 5 == 0;
            long += u64::from(is_long);
            let sample =
                |outstanding| TaskSample { p99_ns: Some(20 * MS), ..client(outstanding, at) };
            protect.look(&[sample(1)], at);
            let done = at + if is_long { 25 * MS } else { 8 * MS };
            protect.look(&[sample(0)], done);
            protect.account(18 * MS, is_open, true, 0.1);
            at = done + 5 * MS;
        }
        assert!((80..=180).contains(&long), "{long} of 20000 are long");
        assert!(open >= 500, "{open}");
    }

    #[test]
    fn a_client_that_ended_no_longer_counts() {
        let mut protect = run_client(&[10]);
        assert!(protect.is_present());
        protect.look(&[], 20 * MS);
        assert!(!protect.is_present());
        assert_eq!(protect.holds_until_ns(), 0);
    }
}
