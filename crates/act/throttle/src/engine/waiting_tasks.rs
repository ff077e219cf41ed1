//! Detects tasks that wait for a disk without a request of their own there.
//!
//! A disk has few places for requests (`nr_requests`, tags). Threads without a place sleep uninterruptibly. Their
//! requests do not exist yet, so they count nowhere else.

use std::fs;
use std::path::Path;

use crate::cgroup::FreezableCgroup;

/// Largest numbers of processes, and of threads of each, that are checked.
const MAX_PROCESSES: usize = 16;
const MAX_THREADS: usize = 64;

/// Whether a thread of the cgroup sleeps uninterruptibly.
pub(super) fn is_waiting(cgroup: &FreezableCgroup) -> bool {
    let threads = cgroup.single_threads().unwrap_or_default();
    let own = |thread: u32| Path::new("/proc").join(thread.to_string());
    if threads.into_iter().any(|thread| sleeps_in_disk(&own(thread))) {
        return true;
    }
    let processes = cgroup.processes().unwrap_or_default();
    processes.into_iter().take(MAX_PROCESSES).any(|process| {
        let threads = fs::read_dir(Path::new("/proc").join(process.to_string()).join("task"));
        let mut threads = threads.into_iter().flatten().flatten().take(MAX_THREADS);
        threads.any(|thread| sleeps_in_disk(&thread.path()))
    })
}

/// Whether the thread with this folder in `/proc` sleeps uninterruptibly.
fn sleeps_in_disk(folder: &Path) -> bool {
    let stat = fs::read_to_string(folder.join("stat")).unwrap_or_default();
    parse_state(&stat) == Some('D')
}

/// Parses the state in `/proc/PID/stat`. It follows the name in parentheses, which may itself contain some.
fn parse_state(stat: &str) -> Option<char> {
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.chars().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_is_passed_over() {
        assert_eq!(parse_state("7 (a) D (b) S 1 7"), Some('S'));
        assert_eq!(parse_state("7 (dd) D 1 7"), Some('D'));
        assert_eq!(parse_state(""), None);
    }
}
