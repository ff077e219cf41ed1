//! The threads' work, one file at a time.
//!
//! An episode is the calls of a thread on one file until it turns to another: it makes a file, writes and syncs it; or
//! it works on an existing file; or it removes one. Threads of one name form a group.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::DerivedCallCounts;
use super::read_trace::{TracedOperation, TracedOperationKind, TracedOperations};

/// Groups with fewer operations than this share of all are left out.
const MIN_SHARE: f64 = 0.005;

/// Threads of one name.
#[derive(Debug, Default)]
pub(super) struct ThreadNameGroup {
    pub(super) name: String,
    /// Threads at work at the same time, on average.
    pub(super) threads: u64,
    /// Episodes on files that the group made.
    pub(super) fresh: EpisodeLists,
    /// Episodes on files that existed.
    pub(super) old: EpisodeLists,
    /// Pause before each removal, us.
    pub(super) removal_pauses: Vec<u64>,
    pub(super) counts: DerivedCallCounts,
    /// Bytes written to each file that was made.
    pub(super) fresh_sizes: Vec<u64>,
    /// Known bytes of each file that existed.
    pub(super) old_sizes: Vec<u64>,
    /// The largest number of files at a time that the group had made or was still to remove.
    pub(super) live: u64,
    /// Whether the journal shows that writes made existing files longer.
    pub(super) appends: bool,
}

/// Episodes of one kind: an item of each list for each.
#[derive(Debug, Default)]
pub(super) struct EpisodeLists {
    pub(super) writes: Vec<u64>,
    pub(super) reads: Vec<u64>,
    pub(super) syncs: Vec<u64>,
    /// Time between calls and before the first, us.
    pub(super) pauses: Vec<u64>,
    pub(super) write_bytes: Vec<u64>,
    pub(super) read_bytes: Vec<u64>,
}

impl EpisodeLists {
    pub(super) fn count(&self) -> usize {
        self.writes.len()
    }
}

/// An episode under way.
#[derive(Debug, Default)]
struct Episode {
    is_fresh: bool,
    inode: u64,
    writes: u64,
    reads: u64,
    syncs: u64,
    pause_us: u64,
}

/// Returns all groups, the busiest first, without those below [`MIN_SHARE`].
pub(super) fn groups(traced: &TracedOperations) -> Vec<ThreadNameGroup> {
    let mut by_name: BTreeMap<&str, Vec<&[TracedOperation]>> = BTreeMap::new();
    let threads = traced.operations.chunk_by(|a, b| a.thread == b.thread);
    for operations in threads {
        let name = traced.names.get(&operations[0].thread).map_or("", String::as_str);
        by_name.entry(name).or_default().push(operations);
    }
    let least = (traced.operations.len() as f64 * MIN_SHARE) as u64;
    let mut groups: Vec<ThreadNameGroup> = by_name
        .into_iter()
        .map(|(name, threads)| group(name, &threads, &traced.allocations))
        .collect();
    hand_removals_over(&mut groups);
    groups.retain(|group| group.counts.kept() > least);
    groups.sort_by_key(|group| std::cmp::Reverse(group.counts.kept()));
    groups
}

/// Lets a group remove the files that it made and another group removed. Otherwise neither group would keep its
/// number of files.
fn hand_removals_over(groups: &mut [ThreadNameGroup]) {
    for giver in 0..groups.len() {
        for taker in 0..groups.len() {
            let DerivedCallCounts { creations, removals, .. } = groups[giver].counts;
            let wanting = &groups[taker].counts;
            let free = wanting.creations.saturating_sub(wanting.removals);
            let handed = removals.saturating_sub(creations).min(free);
            let left = groups[giver].removal_pauses.len() - handed as usize;
            let pauses = groups[giver].removal_pauses.split_off(left);
            groups[giver].counts.removals -= handed;
            groups[taker].counts.removals += handed;
            groups[taker].removal_pauses.extend(pauses);
        }
    }
}

fn group(
    name: &str,
    threads: &[&[TracedOperation]],
    allocations: &HashMap<u32, u64>,
) -> ThreadNameGroup {
    let mut group = ThreadNameGroup {
        name: name.to_owned(),
        threads: count_concurrent(threads),
        ..ThreadNameGroup::default()
    };
    let mut files = Files::default();
    for operations in threads {
        group.add(operations, &mut files);
    }
    files.note(threads);
    group.fresh_sizes = files.sizes(true);
    group.old_sizes = files.sizes(false);
    group.live = files.live;
    let allocated: u64 =
        threads.iter().filter_map(|operations| allocations.get(&operations[0].thread)).sum();
    let synced = |episodes: &EpisodeLists| {
        let both = episodes.writes.iter().zip(&episodes.syncs);
        both.filter(|(writes, syncs)| **writes > 0 && **syncs > 0).count() as u64
    };
    // Each file that was made and synced allocates once. Further allocations are of old files that grew.
    let (fresh, old) = (synced(&group.fresh), synced(&group.old));
    group.appends = old > 0 && 2 * allocated.saturating_sub(fresh) >= old;
    group
}

/// Counts the threads that are at work at the same time, on average over the time in which any is.
fn count_concurrent(threads: &[&[TracedOperation]]) -> u64 {
    let span = |operations: &&[TracedOperation]| {
        let begin = operations.first().map_or(0, |first| first.enter_ns);
        let end = operations.last().map_or(0, |last| last.exit_ns);
        (begin, end.max(begin + 1))
    };
    let spans: Vec<(u64, u64)> = threads.iter().map(span).collect();
    let begin = spans.iter().map(|span| span.0).min().unwrap_or(0);
    let end = spans.iter().map(|span| span.1).max().unwrap_or(1);
    let busy: u64 = spans.iter().map(|(begin, end)| end - begin).sum();
    let mean = busy as f64 / (end - begin).max(1) as f64;
    (mean.round() as u64).clamp(1, 1024)
}

impl ThreadNameGroup {
    /// Adds a thread's operations, in their order.
    fn add(&mut self, operations: &[TracedOperation], files: &mut Files) {
        let mut current: Option<Episode> = None;
        let mut last_ns = operations.first().map_or(0, |first| first.enter_ns);
        for operation in operations {
            let pause_us = operation.enter_ns.saturating_sub(last_ns) / 1000;
            last_ns = operation.exit_ns;
            match operation.what {
                TracedOperationKind::Other => self.counts.others += 1,
                TracedOperationKind::Remove => {
                    self.end(current.take());
                    self.counts.removals += 1;
                    self.removal_pauses.push(pause_us);
                }
                TracedOperationKind::Create => {
                    self.end(current.take());
                    self.counts.creations += 1;
                    files.made.insert(operation.inode);
                    current = Some(Episode {
                        is_fresh: true,
                        inode: operation.inode,
                        pause_us,
                        ..Episode::default()
                    });
                }
                TracedOperationKind::Write
                | TracedOperationKind::Read
                | TracedOperationKind::Sync => {
                    let is_same = |episode: &mut Episode| {
                        // The number of a file that was just made may not be known.
                        if episode.inode == 0 {
                            episode.inode = operation.inode;
                            files.made.insert(operation.inode);
                        }
                        episode.inode == operation.inode
                    };
                    if !current.as_mut().is_some_and(is_same) {
                        self.end(current.take());
                    }
                    let episode = current.get_or_insert_with(|| Episode {
                        inode: operation.inode,
                        ..Episode::default()
                    });
                    episode.pause_us += pause_us;
                    let is_fresh = episode.is_fresh;
                    match operation.what {
                        TracedOperationKind::Write => episode.writes += 1,
                        TracedOperationKind::Read => episode.reads += 1,
                        _ => episode.syncs += 1,
                    }
                    self.count(operation, is_fresh);
                }
            }
        }
        self.end(current);
    }

    fn count(&mut self, operation: &TracedOperation, is_fresh: bool) {
        let episodes = if is_fresh { &mut self.fresh } else { &mut self.old };
        match operation.what {
            TracedOperationKind::Write => {
                self.counts.writes += 1;
                episodes.write_bytes.push(operation.bytes.max(1));
            }
            TracedOperationKind::Read => {
                self.counts.reads += 1;
                episodes.read_bytes.push(operation.bytes.max(1));
            }
            _ => self.counts.syncs += 1,
        }
    }

    fn end(&mut self, episode: Option<Episode>) {
        let Some(episode) = episode else { return };
        let episodes = if episode.is_fresh { &mut self.fresh } else { &mut self.old };
        episodes.writes.push(episode.writes);
        episodes.reads.push(episode.reads);
        episodes.syncs.push(episode.syncs);
        episodes.pauses.push(episode.pause_us);
    }
}

/// Known facts about a group's files.
#[derive(Debug, Default)]
struct Files {
    made: HashSet<u64>,
    /// Bytes written and read, by file.
    moved: HashMap<u64, (u64, u64)>,
    live: u64,
}

impl Files {
    /// Adds up bytes, and how many files there were at a time.
    fn note(&mut self, threads: &[&[TracedOperation]]) {
        let mut all: Vec<&TracedOperation> = threads.iter().copied().flatten().collect();
        all.sort_by_key(|operation| operation.exit_ns);
        let (mut now, mut lowest, mut highest) = (0_i64, 0_i64, 0_i64);
        for operation in all {
            match operation.what {
                TracedOperationKind::Create => now += 1,
                TracedOperationKind::Remove => now -= 1,
                TracedOperationKind::Write => {
                    self.moved.entry(operation.inode).or_default().0 += operation.bytes
                }
                TracedOperationKind::Read => {
                    self.moved.entry(operation.inode).or_default().1 += operation.bytes
                }
                TracedOperationKind::Sync => {
                    self.moved.entry(operation.inode).or_default();
                }
                TracedOperationKind::Other => {}
            }
            lowest = lowest.min(now);
            highest = highest.max(now);
        }
        self.live = highest.abs_diff(lowest);
    }

    fn sizes(&self, made: bool) -> Vec<u64> {
        let of_kind = self.moved.iter().filter(|(inode, _)| self.made.contains(inode) == made);
        let mut sizes: Vec<u64> = of_kind.map(|(_, &(written, read))| written.max(read)).collect();
        sizes.sort_unstable();
        sizes
    }
}
