//! Who took part in a run, as each process says itself, and who did not, as the recorder saw.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::obstacle::Obstacle;

/// Programs that are named.
const NAMED: usize = 5;

/// What a process has said about itself in the run's figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Participant {
    /// Its number, in its own namespace.
    pub process: u32,
    /// The inode of that namespace.
    pub namespace: u64,
    /// The name of its program.
    pub program: String,
    /// Synchronizing calls that it made.
    pub calls: u64,
    /// Why it takes no part although the library is loaded; `None` if it does.
    pub obstacle: Option<Obstacle>,
}

/// A process that synchronized, as the recorder saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Its number.
    pub process: u32,
    /// The name of its program.
    pub program: String,
    /// Calls of fsync, fdatasync and msync.
    pub calls: u64,
    /// What a look at it found in the library's way; `None` if nothing, or if it had ended before.
    pub obstacle: Option<Obstacle>,
}

/// A program that was not reached, or that perhaps was not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Unreached {
    /// Its name, as the kernel has it: 15 bytes at most.
    pub program: String,
    /// Processes of it that were seen.
    pub processes: u32,
    /// Their synchronizing calls that ran as without luc; `None` if that is not known, since nobody recorded them.
    pub calls: Option<u64>,
    /// Why.
    pub obstacles: BTreeSet<Obstacle>,
}

/// Processes that were not reached, as programs: those with the most calls first, then with the most processes.
pub(crate) fn as_programs(
    unreached: impl IntoIterator<Item = (String, Option<u64>, Obstacle)>,
) -> Vec<Unreached> {
    let mut programs: BTreeMap<String, Unreached> = BTreeMap::new();
    for (program, calls, obstacle) in unreached {
        let found = programs.entry(program.clone()).or_default();
        found.program = program;
        found.processes += 1;
        found.calls = match (found.calls, calls) {
            (None, calls) | (calls, None) => calls,
            (Some(before), Some(calls)) => Some(before + calls),
        };
        found.obstacles.insert(obstacle);
    }
    let mut programs: Vec<_> = programs.into_values().collect();
    programs.sort_by_key(|found| std::cmp::Reverse((found.calls, found.processes)));
    programs.truncate(NAMED);
    programs
}

/// The programs of those seen that did not take part. `participants`: `None` if this run's figures do not say; then a process
/// was not reached if something was found in the library's way. `namespace` is the recorder's: processes of others have
/// other numbers, so those are told by their names.
pub(crate) fn unreached(
    seen: &[Seen],
    participants: Option<&[Participant]>,
    namespace: u64,
) -> Vec<Unreached> {
    let takes_part = |seen: &Seen| {
        let all = participants?;
        let same = all.iter().find(|one| {
            if one.namespace == namespace {
                one.process == seen.process
            } else {
                one.program == seen.program
            }
        });
        Some(same.map_or_else(
            || Err(seen.obstacle.unwrap_or(Obstacle::Unknown)),
            |one| one.obstacle.map_or(Ok(()), Err),
        ))
    };
    let obstacle = |seen: &Seen| match takes_part(seen) {
        Some(told) => told.err(),
        None => seen.obstacle,
    };
    as_programs(
        seen.iter()
            .filter(|seen| seen.calls > 0)
            .filter_map(|seen| Some((seen.program.clone(), Some(seen.calls), obstacle(seen)?))),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: u64 = 1;

    fn seen(process: u32, program: &str, calls: u64, obstacle: Option<Obstacle>) -> Seen {
        Seen {
            process,
            program: program.to_owned(),
            calls,
            obstacle,
        }
    }

    fn participant(process: u32, namespace: u64, program: &str) -> Participant {
        Participant {
            process,
            namespace,
            program: program.to_owned(),
            calls: 1,
            obstacle: None,
        }
    }

    #[test]
    fn who_takes_part_says_so_and_the_rest_is_named_with_its_reason() {
        let seen = [
            seen(10, "postgres", 40, Some(Obstacle::User)),
            seen(11, "postgres", 2, None),
            seen(12, "sqlite3", 7, None),
            seen(13, "boxed", 5, None),
            seen(14, "filtered", 9, None),
            seen(15, "idle", 0, Some(Obstacle::Static)),
        ];
        let filtered = Participant {
            obstacle: Some(Obstacle::Filter),
            ..participant(14, OWN, "filtered")
        };
        // The one in a namespace of its own has another number there.
        let told = [
            participant(12, OWN, "sqlite3"),
            participant(2, 9, "boxed"),
            filtered,
        ];
        let found = unreached(&seen, Some(&told), OWN);
        let names: Vec<_> = found
            .iter()
            .map(|found| (found.program.as_str(), found.processes, found.calls))
            .collect();
        assert_eq!(names, [("postgres", 2, Some(42)), ("filtered", 1, Some(9))]);
        let reasons = BTreeSet::from([Obstacle::User, Obstacle::Unknown]);
        assert_eq!(found[0].obstacles, reasons);
    }

    #[test]
    fn where_nobody_says_so_an_obstacle_is_needed() {
        let seen = [
            seen(10, "static", 4, Some(Obstacle::Static)),
            seen(11, "plain", 4, None),
        ];
        let found = unreached(&seen, None, OWN);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].program, "static");
    }
}
