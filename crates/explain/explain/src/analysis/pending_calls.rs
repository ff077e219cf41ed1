//! Calls that have ended, kept until all that they waited for is known.
//!
//! What a call waited for may be noted a little later than its end: a commit's last tracepoint, the bytes of the
//! current 10 ms. So a call stays here for [`CALL_DELAY_NS`].

use std::collections::VecDeque;

use luc_events::tables::{FileCall, FsyncCall};

use crate::accounted_threads::AccountedThread;
use crate::call_split::SplitWait;
use crate::owners::OwnerId;

/// Delay after a call's end until its commits are known.
const CALL_DELAY_NS: u64 = 100_000_000;
/// Calls that are due are taken out together at steps of this length, which costs less than one by one.
const STRIDE_NS: u64 = 5_000_000;

/// Calls in order of arrival, with their waits.
#[derive(Debug)]
pub(super) struct PendingCalls {
    pending: VecDeque<Pending>,
    /// Waits in the calls of `pending`, call by call.
    waits: VecDeque<SplitWait>,
    /// Time at which calls are due again.
    next_due_ns: u64,
}

#[derive(Debug)]
struct Pending {
    row: CallRow,
    owner: OwnerId,
    /// Number of its waits, which are at the front of [`PendingCalls::waits`] when it is the first.
    waits: usize,
}

#[derive(Debug)]
pub(super) enum CallRow {
    Sync(FsyncCall),
    Call(FileCall),
}

impl CallRow {
    fn exit_ns(&self) -> u64 {
        match self {
            Self::Sync(row) => row.exit_ns,
            Self::Call(row) => row.exit_ns,
        }
    }
}

impl Default for PendingCalls {
    fn default() -> Self {
        Self { pending: VecDeque::new(), waits: VecDeque::new(), next_due_ns: u64::MAX }
    }
}

impl PendingCalls {
    /// Number of calls in it.
    pub(super) fn len(&self) -> usize {
        self.pending.len()
    }

    pub(super) fn is_due(&self, now_ns: u64) -> bool {
        now_ns >= self.next_due_ns
    }

    /// Makes calls due no later than those that ended at `end_ns`.
    pub(super) fn expect(&mut self, end_ns: u64) {
        self.next_due_ns = self.next_due_ns.min(due_ns(end_ns));
    }

    /// Takes in a call that began at `enter_ns`, with the waits of `thread` inside it. Returns these waits.
    pub(super) fn push<'a>(
        &'a mut self,
        row: CallRow,
        enter_ns: u64,
        owner: OwnerId,
        thread: &mut AccountedThread,
    ) -> impl Iterator<Item = &'a SplitWait> + use<'a> {
        self.expect(row.exit_ns());
        let waits = thread.take_waits(enter_ns, &mut self.waits);
        self.pending.push_back(Pending { row, owner, waits });
        self.waits.range(self.waits.len() - waits..)
    }

    /// Releases the first call, if it ended long enough before `now_ns`. Its waits replace the content of `waits`.
    pub(super) fn pop(
        &mut self,
        now_ns: u64,
        waits: &mut Vec<SplitWait>,
    ) -> Option<(CallRow, OwnerId)> {
        let is_over = |first: &Pending| first.row.exit_ns().saturating_add(CALL_DELAY_NS) <= now_ns;
        if !self.pending.front().is_some_and(is_over) {
            let first = self.pending.front();
            self.next_due_ns = first.map_or(u64::MAX, |first| due_ns(first.row.exit_ns()));
            return None;
        }
        let first = self.pending.pop_front()?;
        waits.clear();
        waits.extend(self.waits.drain(..first.waits));
        Some((first.row, first.owner))
    }
}

/// Returns the time at which a call that ended at `end_ns` is due.
fn due_ns(end_ns: u64) -> u64 {
    end_ns.saturating_add(CALL_DELAY_NS + STRIDE_NS)
}
