//! Effects of a program on its own call while that is under way.

use crate::layout::Outcome;
use crate::program::{Op, Program};

/// Events between an asynchronous step and the end of its call.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Races {
    /// Whether its descriptor may be closed, or its memory unmapped.
    pub(crate) may_close: bool,
    /// Whether that may have happened before the call had begun.
    pub(crate) is_open: bool,
    /// Whether a file may have been opened before the call had begun, and got its number if that was free.
    pub(crate) may_open: bool,
    /// Whether its thread may end in it.
    pub(crate) may_end: bool,
}

impl Races {
    /// Returns the races of a step, in one outcome of its program.
    pub(crate) fn of(program: &Program, outcome: &Outcome, at: usize) -> Self {
        let step = &program.steps[at];
        let mut races = Self::default();
        if !step.is_async {
            return races;
        }
        let mut has_begun = false;
        for (other, result) in program.steps.iter().zip(&outcome.results).skip(at + 1) {
            let is_about = other.arguments[0] == i32::from(step.actor);
            if other.actor == step.actor || other.op == Op::Join && is_about {
                return races;
            }
            match other.op {
                Op::Settle => has_begun |= is_about && result.second != 0,
                Op::Close | Op::Dup2 | Op::Unmap => {
                    races.may_close = true;
                    races.is_open |= !has_begun;
                }
                Op::Open | Op::Special | Op::Dup => races.may_open |= !has_begun,
                // Any actor of a process with several may be named.
                Op::KillProcess | Op::Exec | Op::Exit => races.may_end = true,
                Op::Cancel => races.may_end |= is_about,
                _ => {}
            }
        }
        races
    }

    /// Returns the races in either of two outcomes.
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            may_close: self.may_close || other.may_close,
            is_open: self.is_open || other.is_open,
            may_open: self.may_open || other.may_open,
            may_end: self.may_end || other.may_end,
        }
    }
}
