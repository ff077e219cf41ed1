//! Descendants of the command that the library perhaps does not reach. They are looked for while the command runs,
//! since before the start only its own program is known. A program may clean its environment (Postfix, sudo, cron),
//! or start static programs. Whether they synchronize at all is not known here.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use luc_host::descendants::with_descendants;

use crate::participants::{UnreachedProgram, group_by_program};
use crate::preload_obstacle::{PreloadObstacle, PreloadState, ProcessInspector, name_of};

/// Time between two looks at a young command. A starting program has no library yet, so a process counts only if it
/// lacks the library at two looks.
pub(super) const INTERVAL: Duration = Duration::from_millis(250);
const LATER_INTERVAL: Duration = Duration::from_secs(2);
const YOUNG_AGE: Duration = Duration::from_secs(5);

/// Maximum number of processes in a look.
const MAX_PROCESSES: usize = 256;

const MAX_SUSPECTS: usize = 65_536;

/// State of a descendant in the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SuspectState {
    /// An obstacle was there at the last look.
    Suspected,
    Counted,
}

/// Looks for descendants that the library does not reach.
#[derive(Debug)]
pub(super) struct UnreachedSearch {
    look: ProcessInspector,
    known: HashMap<u32, SuspectState>,
    suspects: Vec<(String, PreloadObstacle)>,
    began: Instant,
    looked: Option<Instant>,
}

impl UnreachedSearch {
    pub(super) fn new() -> Self {
        Self {
            look: ProcessInspector::new(),
            known: HashMap::new(),
            suspects: Vec::new(),
            began: Instant::now(),
            looked: None,
        }
    }

    /// Looks at the descendants of the command's process, if it is time to.
    pub(super) fn look(&mut self, process: u32) {
        let interval = if self.began.elapsed() < YOUNG_AGE { INTERVAL } else { LATER_INTERVAL };
        if self.looked.is_some_and(|at| at.elapsed() < interval) {
            return;
        }
        self.looked = Some(Instant::now());
        let mut known = HashMap::new();
        for process in with_descendants(process, MAX_PROCESSES) {
            let before = self.known.get(&process).copied();
            let now = if before == Some(SuspectState::Counted) {
                SuspectState::Counted
            } else {
                let PreloadState::Obstacle(obstacle) = self.look.at(process) else {
                    continue;
                };
                if before == Some(SuspectState::Suspected) && self.suspects.len() < MAX_SUSPECTS {
                    self.suspects.push((name_of(process), obstacle));
                    SuspectState::Counted
                } else {
                    SuspectState::Suspected
                }
            };
            known.insert(process, now);
        }
        self.known = known;
    }

    /// The programs that perhaps were not reached: those with the most processes first.
    pub(super) fn into_programs(self) -> Vec<UnreachedProgram> {
        let suspects = self.suspects.into_iter();
        group_by_program(suspects.map(|(program, obstacle)| (program, None, obstacle)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_process_without_the_library_is_suspected_at_the_second_look() {
        let mut child =
            Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let mut lookout = UnreachedSearch::new();
        lookout.look(child.id());
        assert!(lookout.suspects.is_empty());
        for _again in 0..2 {
            lookout.looked = None;
            lookout.look(child.id());
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let found = lookout.into_programs();
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].program.as_str(), found[0].processes), ("cat", 1));
        assert_eq!(found[0].calls, None);
    }
}
