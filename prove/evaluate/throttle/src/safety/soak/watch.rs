//! Durations of freezes, seen from outside.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

const LOOK_INTERVAL: Duration = Duration::from_millis(2);

#[derive(Debug, Default)]
struct Seen {
    /// Watched cgroups, without those that another program freezes.
    groups: BTreeMap<PathBuf, Option<Instant>>,
    longest: Duration,
}

/// A thread that looks at cgroups, ended with this value.
#[derive(Debug)]
pub(super) struct Watch {
    seen: Arc<Mutex<Seen>>,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    root: PathBuf,
}

impl Watch {
    pub(super) fn start(root: &Path) -> Self {
        let seen = Arc::<Mutex<Seen>>::default();
        let ends = Arc::<AtomicBool>::default();
        let (its_seen, its_ends) = (Arc::clone(&seen), Arc::clone(&ends));
        let thread = thread::spawn(move || {
            while !its_ends.load(Ordering::Relaxed) {
                look(&mut lock(&its_seen));
                thread::sleep(LOOK_INTERVAL);
            }
        });
        Self { seen, ends, thread: Some(thread), root: root.to_owned() }
    }

    pub(super) fn add(&self, group: &Path) {
        lock(&self.seen).groups.insert(group.to_owned(), None);
    }

    pub(super) fn remove(&self, group: &Path) {
        lock(&self.seen).groups.remove(group);
    }

    /// Longest time for which a cgroup was asked to be frozen, s.
    pub(super) fn longest_s(&self) -> f64 {
        lock(&self.seen).longest.as_secs_f64()
    }

    /// Number of this process' cgroups that are asked to be frozen now.
    pub(super) fn frozen_now(&self) -> usize {
        let own = format!("luc-evaluate-{}-", std::process::id());
        let entries = fs::read_dir(&self.root).into_iter().flatten().flatten();
        entries
            .filter(|entry| entry.file_name().to_string_lossy().starts_with(&own))
            .filter(|entry| is_frozen(&entry.path()))
            .count()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It does nothing that could panic.
            let _ = thread.join();
        }
    }
}

/// Locks the state, which is valid even if a thread panicked.
fn lock(seen: &Mutex<Seen>) -> std::sync::MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn look(seen: &mut Seen) {
    let mut longest = seen.longest;
    for (group, since) in &mut seen.groups {
        if is_frozen(group) {
            let begun = since.get_or_insert_with(Instant::now);
            longest = longest.max(begun.elapsed());
        } else {
            *since = None;
        }
    }
    seen.longest = longest;
}

pub(super) fn is_frozen(group: &Path) -> bool {
    fs::read_to_string(group.join("cgroup.freeze")).is_ok_and(|text| text.trim() == "1")
}
