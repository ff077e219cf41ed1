//! Priority inversions: a task waits for something that a frozen task holds.
//!
//! A frozen task cannot hold kernel locks. But it can hold objects that user space shares: file locks, and whatever
//! one process gives another by a futex, a pipe or a socket. While anything is frozen, inversions are searched for
//! every `LOOK_INTERVAL_NS`. News of a wait for a file lock starts a search at once:
//!
//! - `file_locks` finds processes that wait for a file lock of a frozen task, by `/proc/locks` (`proc_locks`). It also
//!   finds those that try to take one again and again (`refused_thaws`).
//! - `task_links` finds threads that wait for a frozen task, by `/proc` (`shared_objects`). They share a pipe, a socket
//!   (`unix_sockets`) or memory with it. `linked_tasks` lists the tasks that share something with frozen ones.
//!   `linked_pair` remembers whether a thaw helped them.
//! - `thaw_backoff` makes thaws that do not help ever rarer.

mod file_locks;
mod linked_pair;
mod linked_tasks;
mod proc_locks;
mod refused_thaws;
mod search_types;
mod shared_objects;
mod task_links;
mod thaw_backoff;
mod unix_sockets;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::path::{Path, PathBuf};

use crate::CgroupHierarchy;
use crate::disk_observer::DiskObserver;
use file_locks::FileLockSearch;
pub use search_types::AwaitedObject;
pub(crate) use search_types::{Inversion, InversionTask, LOOK_INTERVAL_NS};
use shared_objects::LinkKind;
use task_links::TaskLinks;

/// Time for which tasks that waited for each other are treated as one, ns.
pub(crate) const COUPLED_NS: u64 = 3_600_000_000_000;
/// Time after which the same inversion is reported again, ns.
const NOTICE_INTERVAL_NS: u64 = 10_000_000_000;
/// Largest number of notices kept. Older ones are dropped.
const MAX_NOTICES: usize = 256;

/// Notice that a frozen task was thawed because of a wait for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InversionNotice {
    /// The cgroup that was thawed.
    pub holder: PathBuf,
    /// Cgroup of the waiter, if it is known.
    pub waiter: Option<PathBuf>,
    /// Kind of object that was waited for.
    pub resource: AwaitedObject,
    /// Number of thaws for the same holder, waiter and kind since the last notice.
    pub times: u64,
}

impl fmt::Display for InversionNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is thawed (inversion): ", self.holder.display())?;
        match &self.waiter {
            Some(waiter) => write!(f, "{} waits", waiter.display())?,
            None => f.write_str("somebody waits")?,
        }
        write!(f, " for {} of it", self.resource.name())?;
        if self.times > 1 {
            write!(f, ", {} times", self.times)?;
        }
        Ok(())
    }
}

/// State of the search for inversions.
#[derive(Debug, Default)]
pub(crate) struct InversionSearch {
    /// Time of the next search, ns.
    look_ns: u64,
    file_locks: FileLockSearch,
    links: TaskLinks,
    notices: VecDeque<InversionNotice>,
    reports: BTreeMap<(PathBuf, Option<PathBuf>, AwaitedObject), LastReport>,
}

/// Last report of an inversion.
#[derive(Clone, Copy, Debug, Default)]
struct LastReport {
    at_ns: u64,
    /// Number of thaws since the report.
    times: u64,
}

impl InversionSearch {
    /// Time of the next search, ns.
    pub(crate) fn look_ns(&self) -> u64 {
        self.links.relook_ns().map_or(self.look_ns, |relook_ns| relook_ns.min(self.look_ns))
    }

    /// Whether it is time to search.
    pub(crate) fn is_due(&self, observer: &DiskObserver, now_ns: u64) -> bool {
        now_ns >= self.look_ns() || self.file_locks.has_news(observer, now_ns)
    }

    /// Finds the waits for frozen tasks. `changes` counts freezes and thaws.
    pub(crate) fn look<'a>(
        &mut self,
        hierarchy: &CgroupHierarchy,
        observer: &DiskObserver,
        candidates: impl Fn() -> Vec<InversionTask<'a>>,
        changes: u64,
        now_ns: u64,
    ) -> Vec<Inversion> {
        let mut found = self.file_locks.look(hierarchy, observer, &candidates, changes, now_ns);
        let links = if now_ns >= self.look_ns {
            self.look_ns = now_ns + LOOK_INTERVAL_NS;
            self.links.look(&candidates, changes, now_ns)
        } else if now_ns >= self.look_ns() {
            self.links.look_again(now_ns)
        } else {
            Vec::new()
        };
        let candidates = if links.is_empty() { Vec::new() } else { candidates() };
        for link in links {
            let waiter = candidates.iter().find(|candidate| candidate.id == link.waiter);
            found.push(Inversion {
                holder: link.holder,
                waiter: Some(link.waiter),
                waiter_cgroup: waiter.map(|candidate| candidate.cgroup.path().to_owned()),
                resource: match link.kind {
                    LinkKind::Pipe => AwaitedObject::Pipe,
                    LinkKind::Socket => AwaitedObject::Socket,
                    LinkKind::Memory => AwaitedObject::Futex,
                },
                should_couple: link.should_couple,
            });
        }
        found
    }

    /// Notes the thaw of a holder, for the log.
    pub(crate) fn note_thaw(&mut self, holder: &Path, inversion: &Inversion, now_ns: u64) {
        let waiter = &inversion.waiter_cgroup;
        let key = (holder.to_owned(), waiter.clone(), inversion.resource);
        let is_recent =
            |report: &LastReport| now_ns.saturating_sub(report.at_ns) < NOTICE_INTERVAL_NS;
        self.reports.retain(|other, report| *other == key || is_recent(report));
        let report = self.reports.entry(key).or_default();
        report.times += 1;
        if report.at_ns > 0 && is_recent(report) {
            return;
        }
        if self.notices.len() == MAX_NOTICES {
            self.notices.pop_front();
        }
        self.notices.push_back(InversionNotice {
            holder: holder.to_owned(),
            waiter: waiter.clone(),
            resource: inversion.resource,
            times: report.times,
        });
        *report = LastReport { at_ns: now_ns, times: 0 };
    }

    /// Takes the notices since the last call, oldest first.
    pub(crate) fn take_notices(&mut self) -> Vec<InversionNotice> {
        self.notices.drain(..).collect()
    }
}

#[cfg(test)]
mod tests {
    use luc_control::throttle::policy_input::TaskId;

    use super::*;

    fn inversion() -> Inversion {
        Inversion {
            holder: TaskId(1),
            waiter: None,
            waiter_cgroup: Some(PathBuf::from("/w")),
            resource: AwaitedObject::FileLock,
            should_couple: true,
        }
    }

    #[test]
    fn the_same_is_told_once_in_ten_seconds_with_how_often() {
        let mut inversions = InversionSearch::default();
        for round in 0..100 {
            let now_ns = 1 + round * 250_000_000;
            inversions.note_thaw(Path::new("/h"), &inversion(), now_ns);
        }
        let times: Vec<u64> = inversions.take_notices().iter().map(|notice| notice.times).collect();
        assert_eq!(times, [1, 40, 40]);
        assert!(inversions.take_notices().is_empty());
    }

    #[test]
    fn a_notice_names_both_cgroups_and_why() {
        let mut inversions = InversionSearch::default();
        inversions.note_thaw(Path::new("/h"), &inversion(), 1);
        assert_eq!(
            inversions.take_notices()[0].to_string(),
            "/h is thawed (inversion): /w waits for a file lock of it"
        );
    }
}
