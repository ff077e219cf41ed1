//! What the supervisor remembers of each thread that synchronizes.

use std::collections::HashMap;

use crate::call::SeenWindows;
use crate::rounds::{Joined, Needs};

/// A thread that stands aside is looked at again after this many calls: fetching its descriptor costs as much as the
/// rest of a call.
const SKIPPED: u8 = 15;

/// Threads that have made no call for this long may be forgotten, in nanoseconds, once there are this many.
const FORGOTTEN_NS: u64 = 10_000_000_000;
const MANY: usize = 4096;

/// What a thread synchronized when it was last looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Target {
    /// It has not been looked at.
    #[default]
    Unknown,
    /// Nothing that can gain by company.
    Nothing,
    /// A file of this place.
    At(usize),
}

/// A call that was let go on and has not been seen to return.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Made {
    /// Its place.
    pub(crate) place: usize,
    /// What it needed, and so in which rounds it counts.
    pub(crate) needs: Needs,
    /// When it was made by the program.
    pub(crate) called_ns: u64,
    /// When it was let go on.
    pub(crate) answered_ns: u64,
    /// Its way through a round.
    pub(crate) joined: Option<Joined>,
}

/// A thread.
#[derive(Debug)]
pub(crate) struct Caller {
    /// Its target when last looked at.
    pub(crate) target: Target,
    /// What its call needed then.
    pub(crate) needs: Needs,
    /// Calls that need no look yet.
    skips: u8,
    /// The windows in which it was counted.
    pub(crate) seen: SeenWindows,
    /// Its last call.
    pub(crate) made: Option<Made>,
    last_ns: u64,
}

impl Caller {
    fn new(last_ns: u64) -> Self {
        Self {
            target: Target::Unknown,
            needs: Needs::Commit,
            skips: 0,
            seen: SeenWindows::new(),
            made: None,
            last_ns,
        }
    }

    /// Whether its next call may pass without a look. Counts it.
    pub(crate) fn skips_look(&mut self) -> bool {
        let skips = self.skips > 0;
        self.skips = self.skips.saturating_sub(1);
        skips
    }

    /// Notes what it synchronized; the next look is after `SKIPPED` further calls.
    pub(crate) fn looked_at(&mut self, target: Target) {
        if self.target != target {
            self.made = None;
        }
        self.target = target;
        self.skips = SKIPPED;
    }

    /// Has its next call looked at.
    pub(crate) fn look_again(&mut self) {
        self.skips = 0;
    }
}

/// All threads.
#[derive(Debug, Default)]
pub(crate) struct Callers {
    by_thread: HashMap<u32, Caller>,
    /// When some were forgotten last.
    forgot_ns: u64,
}

impl Callers {
    /// The thread of this number, which calls at `now_ns`.
    pub(crate) fn calls(&mut self, thread: u32, now_ns: u64) -> &mut Caller {
        let is_time = now_ns.saturating_sub(self.forgot_ns) >= FORGOTTEN_NS;
        if is_time && self.by_thread.len() >= MANY {
            self.forgot_ns = now_ns;
            self.by_thread
                .retain(|_, caller| now_ns.saturating_sub(caller.last_ns) < FORGOTTEN_NS);
        }
        let caller = self
            .by_thread
            .entry(thread)
            .or_insert_with(|| Caller::new(now_ns));
        caller.last_ns = now_ns;
        caller
    }

    /// The thread of this number, if it is remembered.
    pub(crate) fn get(&mut self, thread: u32) -> Option<&mut Caller> {
        self.by_thread.get_mut(&thread)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_call_in_sixteen_is_looked_at() {
        let mut callers = Callers::default();
        let caller = callers.calls(1, 0);
        let mut looks = 0;
        for _ in 0..160 {
            if !caller.skips_look() {
                looks += 1;
                caller.looked_at(Target::At(0));
            }
        }
        assert_eq!(looks, 10);
    }

    #[test]
    fn threads_that_are_gone_are_forgotten() {
        let mut callers = Callers::default();
        for thread in 0..MANY as u32 {
            callers.calls(thread, 0);
        }
        callers.calls(u32::MAX, FORGOTTEN_NS);
        assert_eq!(callers.by_thread.len(), 1);
    }
}
