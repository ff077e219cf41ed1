//! Processes that took part in a run, by their own account, and those that did not, by the recorder.

use std::collections::{BTreeMap, BTreeSet};

use luc_gate::figures::RunFigures;
use luc_gate::figures::participants::{Participant, Participation};
use serde::Serialize;

use crate::preload_obstacle::PreloadObstacle;

/// Maximum number of programs that are named.
const MAX_PROGRAMS: usize = 5;

/// Processes that have entered the run's table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParticipantTable {
    /// Entries of the processes. A number comes again if its process has executed another program.
    pub participants: Vec<Participant>,
    /// Whether some found no room.
    pub is_full: bool,
}

impl ParticipantTable {
    /// Reads the table from the run's figures.
    #[must_use]
    pub fn read(figures: &RunFigures) -> Self {
        Self {
            participants: figures.participants.all().collect(),
            is_full: figures.participants.others().0 > 0,
        }
    }

    /// The calls of a process that went past the library, and the reason; `None` if the table knows all of them.
    fn missed(&self, seen: &SeenProcess) -> Option<(u64, PreloadObstacle)> {
        let is_own = |one: &&Participant| {
            one.process == seen.process && (one.namespace == seen.namespace || one.namespace == 0)
        };
        let own: Vec<&Participant> = self.participants.iter().filter(is_own).collect();
        let told: u64 = own.iter().map(|one| one.calls).sum();
        let calls = seen.calls.checked_sub(told).filter(|&calls| calls > 0)?;
        let said = own.iter().find_map(|one| match one.state {
            Participation::TakesPart => None,
            Participation::Filtered => Some(PreloadObstacle::Filter),
            Participation::OtherClock => Some(PreloadObstacle::Clock),
        });
        let obstacle = match said.or(seen.obstacle) {
            Some(obstacle) => obstacle,
            // It may be one of these, whom nobody could look at.
            None if self.is_full || self.has_elsewhere(seen) => return None,
            None => PreloadObstacle::Unknown,
        };
        Some((calls, obstacle))
    }

    /// Whether a process of the same name takes part in another namespace, where it has another number.
    fn has_elsewhere(&self, seen: &SeenProcess) -> bool {
        let is_named = |one: &Participant| {
            let name = one.name.split(|&byte| byte == 0).next();
            name == Some(seen.program.as_bytes())
        };
        let elsewhere = |one: &&Participant| one.namespace != seen.namespace;
        self.participants.iter().filter(elsewhere).any(is_named)
    }
}

/// A process that synchronized, as the recorder saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenProcess {
    /// Its number in its own namespace of processes.
    pub process: u32,
    pub namespace: u64,
    pub program: String,
    /// Calls of fsync, fdatasync and msync.
    pub calls: u64,
    /// Obstacle that a look at it found; `None` if it had ended before.
    pub obstacle: Option<PreloadObstacle>,
}

/// A program that was not reached, or that perhaps was not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct UnreachedProgram {
    /// Its name, as the kernel has it: 15 bytes at most.
    pub program: String,
    /// Number of its processes that were seen.
    pub processes: u32,
    /// Number of their synchronizing calls that ran as without luc; `None` if nobody recorded them.
    pub calls: Option<u64>,
    pub obstacles: BTreeSet<PreloadObstacle>,
}

/// Groups processes that were not reached by program: those with the most calls first, then with the most processes.
pub(crate) fn group_by_program(
    unreached: impl IntoIterator<Item = (String, Option<u64>, PreloadObstacle)>,
) -> Vec<UnreachedProgram> {
    let mut programs: BTreeMap<String, UnreachedProgram> = BTreeMap::new();
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
    programs.truncate(MAX_PROGRAMS);
    programs
}

/// Programs of the processes whose calls the table does not know.
pub(crate) fn find_unreached(
    seen: &[SeenProcess],
    table: &ParticipantTable,
) -> Vec<UnreachedProgram> {
    group_by_program(seen.iter().filter_map(|seen| {
        let (calls, obstacle) = table.missed(seen)?;
        Some((seen.program.clone(), Some(calls), obstacle))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: u64 = 1;

    fn seen(
        process: u32,
        program: &str,
        calls: u64,
        obstacle: Option<PreloadObstacle>,
    ) -> SeenProcess {
        SeenProcess { process, namespace: OWN, program: program.to_owned(), calls, obstacle }
    }

    fn participant(process: u32, name: &[u8], calls: u64) -> Participant {
        let mut padded = [0; 16];
        padded[..name.len()].copy_from_slice(name);
        Participant {
            process,
            namespace: OWN,
            name: padded,
            calls,
            state: Participation::TakesPart,
        }
    }

    fn names(found: &[UnreachedProgram]) -> Vec<(&str, u32, Option<u64>)> {
        found.iter().map(|found| (found.program.as_str(), found.processes, found.calls)).collect()
    }

    #[test]
    fn who_takes_part_says_so_and_the_rest_is_named_with_its_reason() {
        let seen = [
            seen(10, "postgres", 40, Some(PreloadObstacle::User)),
            seen(11, "postgres", 2, None),
            seen(12, "sqlite3", 7, Some(PreloadObstacle::Direct)),
            seen(13, "boxed", 5, None),
            seen(14, "filtered", 9, Some(PreloadObstacle::Filter)),
            // Its C library's calls are known, its own are not.
            seen(15, "cgo", 8, Some(PreloadObstacle::Go)),
            seen(16, "idle", 0, Some(PreloadObstacle::Static)),
        ];
        let table = ParticipantTable {
            participants: vec![
                participant(12, b"sqlite3", 9),
                Participant { namespace: 9, ..participant(2, b"boxed", 5) },
                Participant { state: Participation::Filtered, ..participant(14, b"filtered", 3) },
                participant(15, b"cgo", 1),
            ],
            is_full: false,
        };
        let found = find_unreached(&seen, &table);
        assert_eq!(
            names(&found),
            [("postgres", 2, Some(42)), ("cgo", 1, Some(7)), ("filtered", 1, Some(6))]
        );
        let reasons = BTreeSet::from([PreloadObstacle::User, PreloadObstacle::Unknown]);
        assert_eq!(found[0].obstacles, reasons);
    }

    #[test]
    fn where_the_table_is_full_an_obstacle_is_needed() {
        let seen =
            [seen(10, "static", 4, Some(PreloadObstacle::Static)), seen(11, "gone", 4, None)];
        let table = ParticipantTable { is_full: true, ..ParticipantTable::default() };
        assert_eq!(names(&find_unreached(&seen, &table)), [("static", 1, Some(4))]);
    }
}
