//! Descendants of the command that the library does not reach: it is not mapped, or a filter of system calls made it
//! leave. They are looked for while the command runs, since what has been named before the start are its own program's
//! limits only: a program may clean its environment (Postfix, sudo, cron), or start static ones.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::time::{Duration, Instant};

use luc_gate::environment::LIBRARY;
use luc_gate::seccomp;
use luc_host::descendants::with_descendants;

/// Time between two looks at a young command, and at one that has run for a while. A program that is being started has
/// no library yet, so one has to be without it at two looks.
pub(super) const INTERVAL: Duration = Duration::from_millis(250);
const LATER_INTERVAL: Duration = Duration::from_secs(2);
const YOUNG: Duration = Duration::from_secs(5);

/// Processes looked at at a time.
const PROCESSES: usize = 256;

/// Programs that are named.
const NAMED: usize = 5;

/// What is known of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It had no library at the last look.
    Suspected,
    /// It is counted.
    Unreached,
}

/// Looks for descendants that nothing reaches.
#[derive(Debug)]
pub(super) struct Lookout {
    own_filters: u32,
    known: HashMap<u32, State>,
    /// Processes by the name of their program.
    unreached: BTreeMap<String, u32>,
    began: Instant,
    looked: Option<Instant>,
}

/// A program that was not reached.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Unreached {
    /// Its name, as the kernel has it: 15 bytes at most.
    pub program: String,
    /// Processes of it that were seen.
    pub processes: u32,
}

impl Lookout {
    pub(super) fn new() -> Self {
        Self {
            own_filters: seccomp::filters().unwrap_or(0),
            known: HashMap::new(),
            unreached: BTreeMap::new(),
            began: Instant::now(),
            looked: None,
        }
    }

    /// Looks at the descendants of the command's process, if it is time to.
    pub(super) fn look(&mut self, process: u32) {
        let interval = if self.began.elapsed() < YOUNG {
            INTERVAL
        } else {
            LATER_INTERVAL
        };
        if self.looked.is_some_and(|at| at.elapsed() < interval) {
            return;
        }
        self.looked = Some(Instant::now());
        let mut known = HashMap::new();
        for process in with_descendants(process, PROCESSES) {
            let before = self.known.get(&process).copied();
            let now = if before == Some(State::Unreached) {
                State::Unreached
            } else if self.is_reached(process) {
                continue;
            } else if before == Some(State::Suspected) {
                *self.unreached.entry(name_of(process)).or_default() += 1;
                State::Unreached
            } else {
                State::Suspected
            };
            known.insert(process, now);
        }
        self.known = known;
    }

    /// The programs that were not reached, those with the most processes first.
    pub(super) fn found(self) -> Vec<Unreached> {
        let mut found: Vec<_> = self
            .unreached
            .into_iter()
            .map(|(program, processes)| Unreached { program, processes })
            .collect();
        found.sort_by_key(|unreached| std::cmp::Reverse(unreached.processes));
        found.truncate(NAMED);
        found
    }

    /// Whether the library takes part in a process. One that has ended needs none.
    fn is_reached(&self, process: u32) -> bool {
        let of_process = Path::new("/proc").join(process.to_string());
        match fs::read(of_process.join("maps")) {
            // A process of another user is one that gained privileges: its loader ignored the library.
            Err(error) => error.kind() != ErrorKind::PermissionDenied,
            // Without memory it has ended and not been waited for.
            Ok(maps) if maps.is_empty() => true,
            Ok(maps) => {
                let status = fs::read_to_string(of_process.join("status")).unwrap_or_default();
                contains(&maps, LIBRARY.as_bytes())
                    && seccomp::from_status(&status) <= self.own_filters
            }
        }
    }
}

fn contains(text: &[u8], wanted: &[u8]) -> bool {
    text.windows(wanted.len()).any(|part| part == wanted)
}

fn name_of(process: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
    luc_units::plain(name.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_process_without_the_library_is_named_at_the_second_look() {
        let mut child = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut lookout = Lookout::new();
        lookout.look(child.id());
        assert!(lookout.unreached.is_empty());
        lookout.looked = None;
        lookout.look(child.id());
        lookout.looked = None;
        lookout.look(child.id());
        child.kill().unwrap();
        child.wait().unwrap();
        let expected = Unreached {
            program: "cat".to_owned(),
            processes: 1,
        };
        assert_eq!(lookout.found(), [expected]);
    }

    #[test]
    fn a_process_that_has_ended_is_not() {
        let mut child = Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        assert!(Lookout::new().is_reached(child.id()));
    }
}
