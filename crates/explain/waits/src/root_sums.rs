//! Times by root. They sum to the time that was asked about.

use std::collections::BTreeMap;

use luc_events::WaitCause;

use crate::wait_root::{FoundRoots, RootKind, WaitRoot};

/// Time of one root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RootTime {
    /// Root that the time has in common.
    pub root: WaitRoot,
    /// Its time in all.
    pub ns: u64,
}

/// Time of one root, by the cause of the wait at the end of the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RootCauseTime {
    /// Cause of the wait; `None` if the thread ran, or no thread waited.
    pub cause: Option<WaitCause>,
    /// Its time in all.
    pub ns: u64,
}

/// Times by root, of one question or of many.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RootSums {
    of_causes_ns: BTreeMap<RootCause, u64>,
}

/// Root, and cause of the wait at the end of the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct RootCause {
    root: WaitRoot,
    cause: Option<WaitCause>,
}

impl RootSums {
    /// Sums the parts of one question.
    #[must_use]
    pub fn of(found: &FoundRoots) -> Self {
        let mut sums = Self::default();
        sums.add(found);
        sums
    }

    /// Adds the parts of one more question.
    pub fn add(&mut self, found: &FoundRoots) {
        for part in &found.parts {
            self.grow(RootCause { root: part.root, cause: part.cause }, part.span.length_ns());
        }
    }

    /// Adds all times of other sums.
    pub fn add_all(&mut self, other: &Self) {
        for (&cause, &ns) in &other.of_causes_ns {
            self.grow(cause, ns);
        }
    }

    /// Returns the time of a root.
    #[must_use]
    pub fn get(&self, root: &WaitRoot) -> u64 {
        self.causes(root).iter().fold(0, |sum, time| sum.saturating_add(time.ns))
    }

    /// Returns the time of a root by the cause of the wait, the longest first. It tells a flush from a commit.
    #[must_use]
    pub fn causes(&self, root: &WaitRoot) -> Vec<RootCauseTime> {
        let first = RootCause { root: *root, cause: None };
        let of_root = self.of_causes_ns.range(first..).take_while(|(one, _)| one.root == *root);
        let mut times: Vec<RootCauseTime> =
            of_root.map(|(one, &ns)| RootCauseTime { cause: one.cause, ns }).collect();
        times.sort_by_key(|time| std::cmp::Reverse(time.ns));
        times
    }

    /// Returns the time of all roots.
    #[must_use]
    pub fn total_ns(&self) -> u64 {
        self.sum_of(|_| true)
    }

    /// Returns the time in which threads had nothing to do.
    #[must_use]
    pub fn input_ns(&self) -> u64 {
        self.sum_of(|kind| kind == RootKind::Input)
    }

    /// Returns the time of unknown root.
    #[must_use]
    pub fn unknown_ns(&self) -> u64 {
        self.sum_of(|kind| matches!(kind, RootKind::Unknown(_)))
    }

    /// Returns the time of the roots of some kinds.
    #[must_use]
    pub fn sum_of(&self, is_summed: impl Fn(RootKind) -> bool) -> u64 {
        let summed = self.of_causes_ns.iter().filter(|(one, _)| is_summed(one.root.kind));
        summed.fold(0, |sum, (_, &ns)| sum.saturating_add(ns))
    }

    /// Returns all roots, those with the most time first.
    #[must_use]
    pub fn by_time(&self) -> Vec<RootTime> {
        let mut times: Vec<RootTime> = Vec::new();
        for (one, &ns) in &self.of_causes_ns {
            match times.last_mut() {
                Some(last) if last.root == one.root => last.ns = last.ns.saturating_add(ns),
                _ => times.push(RootTime { root: one.root, ns }),
            }
        }
        times.sort_by_key(|time| std::cmp::Reverse(time.ns));
        times
    }

    fn grow(&mut self, cause: RootCause, ns: u64) {
        let sum_ns = self.of_causes_ns.entry(cause).or_default();
        *sum_ns = sum_ns.saturating_add(ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph_ids::TraceIndex;
    use crate::time_span::TimeSpan;
    use crate::wait_root::{RootPart, UnknownReason};

    fn root(kind: RootKind) -> WaitRoot {
        WaitRoot { kind, service: None, name: None }
    }

    fn found(parts: &[(RootKind, Option<WaitCause>, u64)]) -> FoundRoots {
        let part = |&(kind, cause, ns): &(RootKind, Option<WaitCause>, u64)| RootPart {
            root: root(kind),
            span: TimeSpan::new(0, ns),
            clock: TraceIndex(0),
            thread: None,
            cause,
            other: None,
            end: None,
            queue: None,
            busy: None,
            link: None,
        };
        FoundRoots { parts: parts.iter().map(part).collect(), links: Vec::new() }
    }

    #[test]
    fn times_add_up_by_root_and_by_cause() {
        let unknown = RootKind::Unknown(UnknownReason::NoWaker);
        let first = found(&[
            (RootKind::Fsync, Some(WaitCause::Flush), 70),
            (RootKind::Fsync, Some(WaitCause::CommitWait), 20),
            (RootKind::Fsync, None, 5),
            (RootKind::Input, None, 40),
        ]);
        let second = found(&[(RootKind::Fsync, Some(WaitCause::Flush), 30), (unknown, None, 1)]);
        let mut sums = RootSums::of(&first);
        sums.add_all(&RootSums::of(&second));
        let time = |kind, ns| RootTime { root: root(kind), ns };
        let expected = [time(RootKind::Fsync, 125), time(RootKind::Input, 40), time(unknown, 1)];
        assert_eq!(sums.by_time(), expected);
        let fsync = root(RootKind::Fsync);
        let causes = sums.causes(&fsync);
        let causes: Vec<_> = causes.iter().map(|time| (time.cause, time.ns)).collect();
        let [flush, commit] = [WaitCause::Flush, WaitCause::CommitWait].map(Some);
        assert_eq!(causes, [(flush, 100), (commit, 20), (None, 5)]);
        assert_eq!(sums.get(&fsync), 125);
        assert_eq!((sums.total_ns(), sums.input_ns(), sums.unknown_ns()), (166, 40, 1));
    }
}
