//! Compares what a program was told with LUC and without it.
//!
//! Two outcomes may differ only where the program races with itself: a descriptor that is closed, or a thread that
//! ends, while its call is under way. The steps say which races there are.

use serde::{Deserialize, Serialize};

use crate::layout::{Outcome, Progress, StepResult};
use crate::program::{Op, Program, Step};
use crate::races::Races;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DifferenceKind {
    /// A call returned something else.
    Result,
    /// A synchronization was interrupted, which ext4's never is.
    Interrupted,
    /// A call that had begun when its descriptor was closed returned an error. The kernel would say otherwise, but it
    /// is no lie.
    Closed,
    /// The program's exit status differs.
    Status,
    Hung,
    /// A call of a signal handler failed.
    Handler,
    /// A call returned 0, and the disk lacks what it promised.
    Lost,
}

/// A difference, with words for people.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Difference {
    pub(crate) kind: DifferenceKind,
    pub(crate) about: String,
}

impl Difference {
    pub(crate) fn new(kind: DifferenceKind, about: String) -> Self {
        Self { kind, about }
    }
}

/// Returns all differences, but for those that only follow from another one.
pub(crate) fn differences(program: &Program, plain: &Outcome, with: &Outcome) -> Vec<Difference> {
    if plain.is_hung {
        return Vec::new();
    }
    if with.is_hung {
        let at = with.results.iter().position(|one| one.progress == Progress::Begun);
        let step = at.map(|at| program.steps[at].to_string());
        let about = format!("not over after 20 s: {}", step.unwrap_or_default());
        return vec![Difference::new(DifferenceKind::Hung, about)];
    }
    let mut all = Vec::new();
    for (at, step) in program.steps.iter().enumerate() {
        let told = (&plain.results[at], &with.results[at]);
        let races = Races::of(program, plain, at).or(Races::of(program, with, at));
        let Some(kind) = difference(step, told.0, told.1, races) else {
            continue;
        };
        let about =
            format!("step {at}, {step}: {} without, {} with", describe(told.0), describe(told.1));
        all.push(Difference::new(kind, about));
        if kind == DifferenceKind::Result {
            return all;
        }
    }
    if plain.status != with.status {
        let about = format!("status {:#x} without, {:#x} with", plain.status, with.status);
        all.push(Difference::new(DifferenceKind::Status, about));
    }
    let handler = (plain.handler_error, with.handler_error);
    if handler.0 != handler.1 && ![handler.0, handler.1].contains(&libc::EBADF) {
        let kind = if handler.1 == libc::EINTR {
            DifferenceKind::Interrupted
        } else {
            DifferenceKind::Handler
        };
        let about = format!("a handler's fsync: errno {} without, {} with", handler.0, handler.1);
        all.push(Difference::new(kind, about));
    }
    all
}

fn describe(result: &StepResult) -> String {
    match result.progress {
        Progress::None => "not reached".to_owned(),
        Progress::Begun => "not over".to_owned(),
        Progress::Skipped => "left out".to_owned(),
        Progress::Done if result.has_jumped => "jumped out of".to_owned(),
        Progress::Done if result.value == -1 => format!("errno {}", result.error),
        Progress::Done if result.second != 0 => format!("{}, {}", result.value, result.second),
        Progress::Done => result.value.to_string(),
    }
}

fn difference(
    step: &Step,
    plain: &StepResult,
    with: &StepResult,
    races: Races,
) -> Option<DifferenceKind> {
    use Progress::{Begun, Done};
    if plain.has_jumped || with.has_jumped {
        return None;
    }
    if races.may_end && (plain.progress == Begun || with.progress == Begun) {
        return None;
    }
    if plain.progress != with.progress {
        return Some(DifferenceKind::Result);
    }
    if plain.progress != Done {
        return None;
    }
    let is_told = |result: &StepResult| match step.op {
        // A signal may come too late, and a child's second answer counts as its first.
        Op::Kill => 0,
        _ => result.value,
    };
    let is_child = matches!(step.op, Op::VforkSync);
    let equal = is_told(plain) == is_told(with)
        && plain.error == with.error
        && (!is_child || plain.second == with.second);
    if equal {
        return None;
    }
    let syncs = step.op.is_sync() || matches!(step.op, Op::VforkSync | Op::SpawnSync);
    let errno = |result: &StepResult| match step.op {
        Op::VforkSync => result.second,
        Op::SpawnSync => (result.value >> 8) as i32,
        _ if result.value == -1 => result.error,
        _ => 0,
    };
    let (plain, with) = (errno(plain), errno(with));
    if syncs && with == libc::EINTR {
        return Some(DifferenceKind::Interrupted);
    }
    let is_closed = |errno: i32| [libc::EBADF, libc::EINVAL, libc::ENOMEM].contains(&errno);
    if races.may_open && [plain, with].contains(&libc::EBADF) && [plain, with].contains(&0) {
        return None;
    }
    if races.is_open {
        // Either came first.
        let may = |errno: i32| errno == 0 || is_closed(errno);
        return (!may(plain) || !may(with)).then_some(DifferenceKind::Result);
    }
    if races.may_close && is_closed(plain) && with == 0 {
        // It had begun, but had no processor until the descriptor was closed.
        return None;
    }
    if races.may_close && is_closed(with) {
        return Some(DifferenceKind::Closed);
    }
    Some(DifferenceKind::Result)
}
