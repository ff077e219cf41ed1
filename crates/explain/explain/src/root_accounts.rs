//! Waits that are followed to their roots while rows come in.
//!
//! The accounts of threads have all time by cause. Only waits for other threads need more: who had the lock, or the
//! processor, and what that one did. Waits below 1 ms are not followed, as plain traces have only their sums.
//!
//! The rows have no messages. So a wait for events (`poll`, sockets, pipes) counts as a wait for work, whoever ended
//! it. Only another process of the same family that ends a `poll` had a lock: databases hand their locks over so.

use luc_events::WaitCause;
use luc_events::event_kinds::WaitState;
use luc_events::tables::{OffCpuWait, ThreadInfo};
use luc_waits::{GraphWait, RollingRoots, TimeSpan, TraceThreads, WaitEnd, WaitLabels};

use crate::accounted_threads::{AccountedThreads, MIN_FOLLOWED_NS, is_storage};
use crate::saturating_grow::SaturatingGrow as _;
use crate::wait_losses::{ActorLoss, Awaited, WaitLosses};

/// Time for which threads are ready, in all, from one look at who has the processor to the next.
const READY_SAMPLE_NS: u64 = 200_000_000;
/// Rounds of answers from one with looks to the next. A look takes a sort of all runs.
const LOOK_ROUNDS: u32 = 4;
/// Maximum number of looks in a round.
const MAX_LOOKS: usize = 128;
/// Maximum length of a look at who has the processor.
const MAX_LOOK_NS: u64 = 20_000_000;

/// Threads, their last waits, and what was found about those.
#[derive(Debug, Default)]
pub(crate) struct RootAccounts {
    threads: TraceThreads,
    rolling: RollingRoots,
    labels: WaitLabels,
    losses: WaitLosses,
    /// Time for which threads were ready since the last look at who has the processor.
    ready_ns: u64,
    /// Whether each question is a look at who has the processor, in the order of the questions.
    looks: Vec<bool>,
    /// Number of questions that are none.
    asked: usize,
    /// Number of times that questions were answered, or left out.
    rounds: u32,
}

impl RootAccounts {
    /// Sets the begin of the trace: earlier times do not count.
    pub(crate) fn begin_at(&mut self, start_ns: u64) {
        self.threads = TraceThreads::since(start_ns);
        self.rolling = RollingRoots::new(start_ns);
    }

    pub(crate) fn add_task(&mut self, row: &ThreadInfo) {
        self.threads.see(row);
    }

    pub(crate) fn add_wait(&mut self, row: &OffCpuWait, accounts: &AccountedThreads) {
        if is_brief(row) {
            return;
        }
        let Some(wait) = self.threads.wait(row) else { return };
        let wait = self.without_messages(wait);
        let ready = TimeSpan::new(wait.woken_ns.unwrap_or(wait.off_ns), wait.on_ns);
        let is_long = |span: TimeSpan| span.length_ns() >= MIN_FOLLOWED_NS;
        let blocked = TimeSpan::new(wait.off_ns, ready.from_ns());
        let is_followed = wait.waker.is_some()
            && (Awaited::of(wait.cause).is_some()
                || matches!(wait.cause, WaitCause::Futex | WaitCause::Other | WaitCause::Poll));
        if accounts.is_kernel(row.process) == Some(true) {
            // Others wait for these.
        } else if is_followed && is_long(blocked) {
            self.ask(&wait, TimeSpan::new(wait.off_ns, wait.on_ns), false);
        } else {
            match wait.cause {
                WaitCause::Stopped => self.losses.add_stop(&wait),
                // A timer ended it, or an interrupt.
                WaitCause::Futex if wait.waker.is_none() => self.losses.add_timeout(&wait),
                _ => {}
            }
            if is_long(ready) && wait.cause != WaitCause::Stopped {
                self.add_ready(&wait, ready);
            }
        }
        self.rolling.add_wait(wait);
        if self.rolling.is_due() {
            self.answer();
        }
    }

    fn ask(&mut self, wait: &GraphWait, span: TimeSpan, is_look: bool) {
        if self.rolling.ask(wait.thread, span) {
            self.looks.push(is_look);
            self.asked += usize::from(!is_look);
        }
    }

    /// Takes in time for which a thread was ready. Now and then it is asked who had the processor.
    fn add_ready(&mut self, wait: &GraphWait, ready: TimeSpan) {
        self.ready_ns.grow(ready.length_ns());
        let may_look =
            self.rounds.is_multiple_of(LOOK_ROUNDS) && self.looks.len() < self.asked + MAX_LOOKS;
        if self.ready_ns >= READY_SAMPLE_NS && may_look {
            self.ready_ns = 0;
            let look = ready.split(ready.to_ns().saturating_sub(MAX_LOOK_NS)).after;
            self.ask(wait, look, true);
        }
    }

    /// Follows the last waits.
    pub(crate) fn finish(&mut self) {
        self.answer();
    }

    /// Returns the losses so far. Waits of the last seconds may not have been followed yet.
    pub(crate) fn losses(&self, accounts: &AccountedThreads) -> Vec<ActorLoss> {
        self.losses.by_actor(&self.threads, accounts)
    }

    /// Leaves out the waker of a wait that a message ended.
    fn without_messages(&self, wait: GraphWait) -> GraphWait {
        let Some(waker) = wait.waker else { return wait };
        let is_for_events = match wait.cause {
            WaitCause::PipeSocket => true,
            // A server's first process hears of its children so.
            WaitCause::Poll => {
                !self.threads.are_relatives(waker, wait.thread)
                    || self.threads.is_parent(wait.thread, waker)
            }
            _ => false,
        };
        if is_for_events {
            GraphWait { waker: None, end: WaitEnd::Interrupt, ..wait }
        } else {
            wait
        }
    }

    fn answer(&mut self) {
        self.rounds = self.rounds.wrapping_add(1);
        if self.rolling.is_unasked() {
            self.rolling.forget();
            return;
        }
        let facts = self.threads.facts(&mut self.labels);
        let has_looks = self.looks.len() > self.asked;
        self.asked = 0;
        let Self { losses, looks, rolling, .. } = self;
        let mut looks = looks.drain(..);
        let answered = rolling.answer(&facts, has_looks, |thread, found| match looks.next() {
            Some(true) => losses.add_look(thread, found),
            _ => losses.add(thread, found, &facts),
        });
        drop(looks);
        // It fails on more rows than have indices, and fewer are kept.
        debug_assert!(answered.is_ok(), "{answered:?}");
    }
}

/// Returns whether a plain trace would only have the sum of this wait and others.
fn is_brief(row: &OffCpuWait) -> bool {
    row.on_ns.saturating_sub(row.off_ns) < MIN_FOLLOWED_NS
        && row.state != WaitState::Uninterruptible
        && !is_storage(row.cause)
}
