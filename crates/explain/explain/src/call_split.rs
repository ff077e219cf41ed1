//! Splits a call's time into parts that sum to it exactly.
//!
//! The call's waits, clipped to the call, show when its thread was blocked, runnable or running. A wait's cause gives
//! its part. A wait for a commit is cut where the journal's commits begin and end. Each piece goes to the commit that
//! ran then. A commit before the own one is the predecessor; the own one gives its phases.

use std::collections::VecDeque;

use luc_events::event_kinds::{CommitKind, WaitState};
use luc_events::tables::OffCpuWait;
use luc_events::{Pid, WaitCause};

use crate::call_time_parts::{CallTimePart, CallTimeParts};
use crate::journal_history::CommitContent;
use crate::saturating_grow::SaturatingGrow as _;

/// A wait, reduced to the columns that a split needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SplitWait {
    pub(crate) off_ns: u64,
    pub(crate) woken_ns: u64,
    pub(crate) on_ns: u64,
    pub(crate) cause: WaitCause,
    /// Thread that ended it; 0 if unseen.
    pub(crate) waker: Pid,
}

impl SplitWait {
    /// Takes the interval of a wait, with its times in order.
    pub(crate) fn of(row: &OffCpuWait) -> Self {
        let on_ns = row.on_ns.max(row.off_ns);
        let (woken_ns, cause) = if row.state == WaitState::Preempted {
            (row.off_ns, WaitCause::Preempted)
        } else if row.woken_ns == 0 {
            (on_ns, row.cause)
        } else {
            (row.woken_ns.clamp(row.off_ns, on_ns), row.cause)
        };
        Self { off_ns: row.off_ns, woken_ns, on_ns, cause, waker: row.waker }
    }

    fn clipped(self, enter_ns: u64, exit_ns: u64) -> Self {
        let clip = |at: u64| at.clamp(enter_ns, exit_ns);
        Self {
            off_ns: clip(self.off_ns),
            woken_ns: clip(self.woken_ns),
            on_ns: clip(self.on_ns),
            ..self
        }
    }
}

/// A call to split.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallSpan<'a> {
    pub(crate) enter_ns: u64,
    pub(crate) exit_ns: u64,
    pub(crate) thread: Pid,
    /// Waits of the call in order, without overlap.
    pub(crate) waits: &'a [SplitWait],
    pub(crate) commits: CallCommits,
}

/// Commits that matter to a call, as indexes into the history.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CallCommits {
    /// First commit that ended after the call began.
    pub(crate) first: usize,
    /// The commit that the call needed.
    pub(crate) own: Option<usize>,
}

/// Parts of a call's time. It is refilled for each call, so that its lists are allocated once.
#[derive(Debug, Default)]
pub(crate) struct CallSplit {
    pub(crate) parts: CallTimeParts,
    /// The parts in order.
    pub(crate) pieces: Vec<(CallTimePart, u64)>,
    /// Waits for commits, by index into the history.
    pub(crate) commits: Vec<(usize, u64)>,
    /// Times that somebody held the call up, by part; only parts that somebody causes.
    pub(crate) held: Vec<(CallTimePart, WaitHolder, u64)>,
}

/// The cause of a caller's wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitHolder {
    /// The actor that asked for a commit (index into the history).
    Commit(usize),
    /// The thread that released a lock.
    Thread(Pid),
}

impl CallSplit {
    /// Replaces it by the split of `span` over the commits in `history`.
    pub(crate) fn fill(&mut self, span: &CallSpan<'_>, history: &VecDeque<CommitContent>) {
        self.parts = CallTimeParts::default();
        self.pieces.clear();
        self.commits.clear();
        self.held.clear();
        let mut now_ns = span.enter_ns;
        for wait in span.waits {
            let wait = wait.clipped(now_ns.max(span.enter_ns), span.exit_ns.max(now_ns));
            self.add(CallTimePart::Running, wait.off_ns - now_ns);
            self.blocked(span, &wait, history);
            self.add(CallTimePart::Runnable, wait.on_ns - wait.woken_ns);
            now_ns = wait.on_ns;
        }
        self.add(CallTimePart::Running, span.exit_ns.saturating_sub(now_ns));
    }

    /// Appends `ns` of a part.
    fn add(&mut self, part: CallTimePart, ns: u64) {
        if ns == 0 {
            return;
        }
        self.parts.add(part, ns);
        match self.pieces.last_mut() {
            Some((last, sum)) if *last == part => sum.grow(ns),
            _ => self.pieces.push((part, ns)),
        }
    }

    fn blocked(
        &mut self,
        span: &CallSpan<'_>,
        wait: &SplitWait,
        history: &VecDeque<CommitContent>,
    ) {
        let part = CallTimePart::of(wait.cause);
        let by_commits = matches!(part, CallTimePart::UnknownCommit | CallTimePart::FastCommit);
        let names_commits = matches!(
            part,
            CallTimePart::WriteDelay | CallTimePart::LockUp | CallTimePart::Checkpoint
        );
        if !by_commits && !names_commits {
            let blocked_ns = wait.woken_ns - wait.off_ns;
            self.add(part, blocked_ns);
            if matches!(part, CallTimePart::DirectoryLock | CallTimePart::Lock)
                && !wait.waker.is_none()
            {
                self.held_by(part, WaitHolder::Thread(wait.waker), blocked_ns);
            }
            return;
        }
        let mut now_ns = wait.off_ns;
        for (index, commit) in history.iter().enumerate().skip(span.commits.first) {
            let row = &commit.row;
            if row.start_ns >= wait.woken_ns {
                break;
            }
            let from_ns = row.start_ns.max(now_ns);
            let to_ns = row.end_ns.min(wait.woken_ns);
            if to_ns <= from_ns {
                continue;
            }
            self.wait_for(index, to_ns - from_ns);
            if by_commits {
                self.add(gap(part, span, history, now_ns), from_ns - now_ns);
                self.commit(span, index, commit, from_ns, to_ns);
            } else {
                self.add(part, to_ns - now_ns);
                self.held_by(part, WaitHolder::Commit(index), to_ns - now_ns);
            }
            now_ns = to_ns;
        }
        let rest = if by_commits { gap(part, span, history, now_ns) } else { part };
        self.add(rest, wait.woken_ns - now_ns);
    }

    /// Appends a wait during which `commit` ran.
    fn commit(
        &mut self,
        span: &CallSpan<'_>,
        index: usize,
        commit: &CommitContent,
        from_ns: u64,
        to_ns: u64,
    ) {
        let row = &commit.row;
        let is_own = match row.kind {
            CommitKind::Fast => row.asked_by == span.thread || span.commits.own == Some(index),
            CommitKind::Full => span.commits.own == Some(index),
        };
        if !is_own {
            let part = match span.commits.own {
                Some(own) if own < index => CallTimePart::Done,
                _ => CallTimePart::Predecessor,
            };
            self.add(part, to_ns - from_ns);
            if part == CallTimePart::Predecessor {
                self.held_by(part, WaitHolder::Commit(index), to_ns - from_ns);
            }
            return;
        }
        if row.kind == CommitKind::Fast {
            self.add(CallTimePart::FastCommit, to_ns - from_ns);
            self.held_by(CallTimePart::FastCommit, WaitHolder::Commit(index), to_ns - from_ns);
            return;
        }
        // A phase whose beginning is not known has no length.
        let flushing_ns = if row.flushing_ns == 0 { row.start_ns } else { row.flushing_ns };
        let logging_ns = row.logging_ns.max(flushing_ns);
        let within = |begin: u64, end: u64| to_ns.min(end).saturating_sub(from_ns.max(begin));
        self.add(CallTimePart::Locking, within(0, flushing_ns));
        self.add(CallTimePart::Flushing, within(flushing_ns, logging_ns));
        self.add(CallTimePart::Logging, within(logging_ns, u64::MAX));
    }

    fn held_by(&mut self, part: CallTimePart, holder: WaitHolder, ns: u64) {
        if ns > 0 {
            self.held.push((part, holder, ns));
        }
    }

    fn wait_for(&mut self, index: usize, ns: u64) {
        match self.commits.last_mut() {
            Some((last, sum)) if *last == index => *sum += ns,
            _ => self.commits.push((index, ns)),
        }
    }
}

/// Returns the part of a wait for a commit while none ran. Before the own commit, it had not started yet; after it, the
/// caller had not been woken yet.
fn gap(
    part: CallTimePart,
    span: &CallSpan<'_>,
    history: &VecDeque<CommitContent>,
    at_ns: u64,
) -> CallTimePart {
    match span.commits.own.and_then(|own| history.get(own)) {
        _ if part == CallTimePart::FastCommit => CallTimePart::FastCommit,
        None => CallTimePart::UnknownCommit,
        Some(own) if at_ns >= own.row.end_ns => CallTimePart::Done,
        Some(_) => CallTimePart::Start,
    }
}

#[cfg(test)]
mod tests;
