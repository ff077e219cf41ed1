//! Inversions: somebody waits for something that a frozen task holds.
//!
//! Kernel locks cannot be held by a frozen task, but what user space shares can be: file locks, and whatever one
//! process gives another by a futex, a pipe or a socket. While anything is frozen, it is looked for every
//! `LOOK_EVERY_NS`, and once more when somebody is heard to wait for a file lock:
//!
//! - `file_locks`: processes that wait for a file lock of a frozen task, or try to take it (`refusals`), by
//!   `/proc/locks` (`locks`).
//! - `links`: threads of tasks that wait for a frozen task with which they share a pipe, a socket
//!   (`sockets`) or memory, by `/proc` (`processes`). `waiters` says which tasks share something with frozen ones.
//!   Whether a thaw would help them is remembered in `pair`.

mod candidate;
mod file_locks;
mod found;
mod links;
mod locks;
mod pair;
mod processes;
mod refusals;
mod sockets;
mod waiters;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::path::{Path, PathBuf};

use crate::Hierarchy;
use crate::observer::Observer;
pub(crate) use candidate::Candidate;
use file_locks::FileLocks;
pub use found::Resource;
pub(crate) use found::{Inversion, LOOK_EVERY_NS};
use links::{Kind, Links};

/// Tasks that waited for each other are treated as one for this long, ns.
pub(crate) const COUPLED_NS: u64 = 3_600_000_000_000;
/// The same inversion is told again after this time, ns.
const TELL_EVERY_NS: u64 = 10_000_000_000;
/// Notices that nobody took, at most; older ones are forgotten.
const MOST_NOTICES: usize = 256;

/// A frozen task was thawed since somebody waited for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The cgroup that was thawed.
    pub holder: PathBuf,
    /// The cgroup of whoever waited, where it is known.
    pub waiter: Option<PathBuf>,
    /// What was waited for.
    pub resource: Resource,
    /// How often that was so since it was told last.
    pub times: u64,
}

impl fmt::Display for Notice {
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

/// What is remembered of inversions.
#[derive(Debug, Default)]
pub(crate) struct Inversions {
    /// When they are looked for next, ns.
    look_ns: u64,
    file_locks: FileLocks,
    links: Links,
    notices: VecDeque<Notice>,
    told: BTreeMap<(PathBuf, Option<PathBuf>, Resource), Told>,
}

/// What was told of a pair.
#[derive(Clone, Copy, Debug, Default)]
struct Told {
    at_ns: u64,
    /// How often it was so since.
    times: u64,
}

impl Inversions {
    /// When to look next, ns.
    pub(crate) fn look_ns(&self) -> u64 {
        let again_ns = self.links.again_ns().unwrap_or(self.look_ns);
        self.look_ns.min(again_ns)
    }

    /// Whether it is time to look.
    pub(crate) fn is_due(&self, observer: &Observer, now_ns: u64) -> bool {
        now_ns >= self.look_ns() || self.file_locks.has_news(observer, now_ns)
    }

    /// Who waits for a frozen task now. `changes` counts freezes and thaws.
    pub(crate) fn look<'a>(
        &mut self,
        hierarchy: &Hierarchy,
        observer: &Observer,
        candidates: impl Fn() -> Vec<Candidate<'a>>,
        changes: u64,
        now_ns: u64,
    ) -> Vec<Inversion> {
        let mut found = self.file_locks.look(hierarchy, observer, &candidates, changes, now_ns);
        let links = if now_ns >= self.look_ns {
            self.look_ns = now_ns + LOOK_EVERY_NS;
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
                    Kind::Pipe => Resource::Pipe,
                    Kind::Socket => Resource::Socket,
                    Kind::Memory => Resource::Futex,
                },
                is_usual: link.is_usual,
            });
        }
        found
    }

    /// Notes that the holder was thawed, for the log.
    pub(crate) fn note(&mut self, holder: &Path, inversion: &Inversion, now_ns: u64) {
        let waiter = &inversion.waiter_cgroup;
        let key = (holder.to_owned(), waiter.clone(), inversion.resource);
        self.told.retain(|other, told| {
            *other == key || now_ns.saturating_sub(told.at_ns) < TELL_EVERY_NS
        });
        let told = self.told.entry(key).or_default();
        told.times += 1;
        if told.at_ns > 0 && now_ns.saturating_sub(told.at_ns) < TELL_EVERY_NS {
            return;
        }
        if self.notices.len() == MOST_NOTICES {
            self.notices.pop_front();
        }
        self.notices.push_back(Notice {
            holder: holder.to_owned(),
            waiter: waiter.clone(),
            resource: inversion.resource,
            times: told.times,
        });
        *told = Told { at_ns: now_ns, times: 0 };
    }

    /// What was noted and not yet taken, oldest first.
    pub(crate) fn take_notices(&mut self) -> Vec<Notice> {
        self.notices.drain(..).collect()
    }
}

#[cfg(test)]
mod tests {
    use luc_control::throttle::sample::TaskId;

    use super::*;

    fn inversion() -> Inversion {
        Inversion {
            holder: TaskId(1),
            waiter: None,
            waiter_cgroup: Some(PathBuf::from("/w")),
            resource: Resource::FileLock,
            is_usual: true,
        }
    }

    #[test]
    fn the_same_is_told_once_in_ten_seconds_with_how_often() {
        let mut inversions = Inversions::default();
        for round in 0..100 {
            let now_ns = 1 + round * 250_000_000;
            inversions.note(Path::new("/h"), &inversion(), now_ns);
        }
        let told: Vec<u64> = inversions.take_notices().iter().map(|notice| notice.times).collect();
        assert_eq!(told, [1, 40, 40]);
        assert!(inversions.take_notices().is_empty());
    }

    #[test]
    fn a_notice_names_both_cgroups_and_why() {
        let mut inversions = Inversions::default();
        inversions.note(Path::new("/h"), &inversion(), 1);
        assert_eq!(
            inversions.take_notices()[0].to_string(),
            "/h is thawed (inversion): /w waits for a file lock of it"
        );
    }
}
