//! Callers that need the device flushed but no commit share a flush that a commit makes anyway.
//!
//! A commit flushes a device with a volatile cache twice: before its last block and after it. While the
//! second of these is pending, the block layer merges every other flush request into it, and it holds
//! requests that come during the first one back for it (`blk_kick_flush()` in block/blk-flush.c, condition
//! C2). So a caller whose own flush is sent while the commit's first one is under way costs nothing, and
//! is back when the commit ends. Sent together with the commit's callers it would be served before the
//! commit's log blocks are written, which then wait for it; sent on its own it delays the next commit.
//!
//! Such a caller waits for the round like everybody else, also when the commit of the one before would
//! still take it: transactions of several synchronizations (SQLite makes four) stay in step that way.
//! Measured with eight SQLite writers, sending at once took back between none and all of the gain.

use core::sync::atomic::Ordering::Relaxed;

use super::hold_time::HoldLimits;
use super::shared_layout::Rounds;
use crate::call_path_syscalls;

/// The flush is sent when this part of the commit's time has gone by: a commit spends almost half of its
/// time, or with forced unit access almost all of it, on the first flush.
const SEND_PART: u64 = 4;

impl Rounds {
    /// Waits until the commit of the released round `generation` should be at its first flush. Whether
    /// there is such a commit at all: a round of callers that only need a flush goes at once.
    pub(super) fn wait_for_flush(&self, generation: u32, limits: &HoldLimits) -> bool {
        let Some(send_ns) = self.flush_at_ns(generation, call_path_syscalls::now_ns(), limits)
        else {
            return false;
        };
        // A signal cuts the sleep short: the flush is sent early, which costs time and nothing else.
        call_path_syscalls::sleep_until(send_ns);
        true
    }

    /// When a caller of the released round `generation` sends its flush; `None` if nobody in it needs a commit.
    pub(super) fn flush_at_ns(
        &self,
        generation: u32,
        now_ns: u64,
        limits: &HoldLimits,
    ) -> Option<u64> {
        let times = self.generation(generation);
        if times.committers.load(Relaxed) == 0 {
            return None;
        }
        let commit_ns = self.plan.commit_ns.load(Relaxed);
        let released_ns = times.released_ns.load(Relaxed);
        let longest_ns = now_ns.saturating_add(limits.in_flight_ns());
        Some(longest_ns.min(released_ns.saturating_add(commit_ns / SEND_PART)))
    }
}
