//! Whether a task waits for a disk without a request of its own there.
//!
//! A disk with few places for requests (`nr_requests`, tags) makes those wait who have none. What they want is then no
//! request yet and counts nowhere; but they sleep uninterruptibly.

use std::fs;
use std::path::Path;

use crate::cgroup::Cgroup;

/// Processes, and threads of each, that are looked at, at most.
const MOST_PROCESSES: usize = 16;
const MOST_THREADS: usize = 64;

/// Whether a thread of the cgroup sleeps uninterruptibly.
pub(super) fn is_waiting(cgroup: &Cgroup) -> bool {
    let threads = cgroup.single_threads().unwrap_or_default();
    let own = |thread: u32| Path::new("/proc").join(thread.to_string());
    if threads.into_iter().any(|thread| sleeps_in_disk(&own(thread))) {
        return true;
    }
    let processes = cgroup.processes().unwrap_or_default();
    processes.into_iter().take(MOST_PROCESSES).any(|process| {
        let threads = fs::read_dir(Path::new("/proc").join(process.to_string()).join("task"));
        threads
            .into_iter()
            .flatten()
            .flatten()
            .take(MOST_THREADS)
            .any(|thread| sleeps_in_disk(&thread.path()))
    })
}

/// `folder` is a thread's in /proc.
fn sleeps_in_disk(folder: &Path) -> bool {
    let stat = fs::read_to_string(folder.join("stat")).unwrap_or_default();
    state(&stat) == Some('D')
}

/// The state in `/proc/PID/stat`, which follows the name in parentheses; the name may have some itself.
fn state(stat: &str) -> Option<char> {
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.chars().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_is_passed_over() {
        assert_eq!(state("7 (a) D (b) S 1 7"), Some('S'));
        assert_eq!(state("7 (dd) D 1 7"), Some('D'));
        assert_eq!(state(""), None);
    }
}
