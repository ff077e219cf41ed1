//! Batch steps back for protected tasks: while they wait, and for a learned quiet time after.
//!
//! The time from a protected task's request to its next is a *gap*. Batch that uses a gap is in the way of the request
//! that ends it, by what it has at the disk then. A gap is *closed* to batch by the quiet time, or *open*. Which are
//! open follows from the 99th percentile that the task is to have ([`Share`]), or else from what batch is owed.

mod share;

use std::collections::{BTreeMap, VecDeque};

use super::super::sample::{Class, TaskId, TaskSample};
use share::Share;

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
/// Batch is given gaps when it is owed this part of what it may be owed at most.
const PAID_BY_GAPS: f64 = 0.5;

/// One protected task.
#[derive(Clone, Debug, Default)]
struct Client {
    /// Gaps between its requests, ns: from nothing outstanding to the next.
    gaps: VecDeque<u64>,
    quiet_ns: u64,
    is_waiting: bool,
    /// Since when it waits, or when it last began to, ns.
    wait_since_ns: u64,
    /// Which gaps are open, where its waits are to be no longer than something.
    share: Option<Share>,
    /// Whether batch may use the present gap.
    is_open: bool,
    /// Since when nothing is outstanding; 0: never was anything.
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

    /// The quiet time covers the larger part of the gaps, or there is none: where most gaps are longer than batch can
    /// be asked to wait, waiting only costs.
    fn add_gap(&mut self, gap_ns: u64) {
        if self.gaps.len() == GAPS {
            self.gaps.pop_front();
        }
        self.gaps.push_back(gap_ns);
        let mut short: Vec<u64> =
            self.gaps.iter().copied().filter(|gap| *gap <= MAX_QUIET_NS).collect();
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
            self.idle_since_ns + if self.is_open { 0 } else { self.quiet_ns }
        }
    }
}

/// What protected tasks demand, and what batch is owed.
#[derive(Clone, Debug, Default)]
pub(super) struct Protect {
    clients: BTreeMap<TaskId, Client>,
    /// Time that batch is owed, ns; negative when it had more than its floor.
    owed_ns: f64,
    /// Whether batch is being paid what it is owed, by open gaps.
    is_paying: bool,
    /// Whether it is paid though protected tasks wait, since there are no gaps, or too few.
    is_insisting: bool,
    is_present: bool,
}

impl Protect {
    /// Looks at the protected tasks.
    pub(super) fn look(&mut self, tasks: &[TaskSample], now_ns: u64) {
        let protected = || tasks.iter().filter(|task| task.class == Class::Protected);
        if !self.clients.is_empty() {
            self.clients.retain(|id, _| protected().any(|task| task.task == *id));
        }
        for task in protected() {
            self.clients.entry(task.task).or_default().look(task, now_ns);
        }
        self.is_present = self.clients.values().any(|client| {
            let idle_ns = now_ns.saturating_sub(client.idle_since_ns);
            client.is_waiting || (client.idle_since_ns > 0 && idle_ns < PRESENT_NS)
        });
    }

    /// Pays for the time since the last look. Nothing is owed beside tasks whose waits are to be no longer than
    /// something.
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
        let most_ns = WINDOW_NS * floor;
        self.owed_ns = self.owed_ns.clamp(-most_ns, most_ns);
        if self.owed_ns <= 0.0 {
            (self.is_paying, self.is_insisting) = (false, false);
        } else {
            self.is_paying |= self.owed_ns >= PAID_BY_GAPS * most_ns;
            self.is_insisting |= self.owed_ns >= most_ns;
        }
    }

    /// Whether protected tasks use the disk, now or in the last second.
    pub(super) fn is_present(&self) -> bool {
        self.is_present
    }

    /// Until when batch is to be frozen, ns; `u64::MAX` while a protected request is out.
    pub(super) fn holds_until_ns(&self) -> u64 {
        if self.is_insisting {
            return 0;
        }
        if self.is_paying {
            let is_waited = self.clients.values().any(|client| client.is_waiting);
            return if is_waited { u64::MAX } else { 0 };
        }
        let longest = self.clients.values().map(Client::holds_until_ns).max();
        longest.unwrap_or(0)
    }

    /// How long batch is kept away after a protected request, ns: the longest of the learned quiet times.
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
        assert!((5 * MS..8 * MS).contains(&protect.quiet_ns()), "{}", protect.quiet_ns());
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
            protect.account(MS, runs, true, 0.1);
        }
        assert!((900..=1_100).contains(&ran_ms), "{ran_ms} of 10000");
    }

    #[test]
    fn batch_is_paid_in_gaps_where_there_are_some() {
        let mut protect = after(&[10, 20, 30, 40]);
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
        let mut protect = Protect::default();
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
        let mut protect = after(&[10]);
        assert!(protect.is_present());
        protect.look(&[], 20 * MS);
        assert!(!protect.is_present());
        assert_eq!(protect.holds_until_ns(), 0);
    }
}
