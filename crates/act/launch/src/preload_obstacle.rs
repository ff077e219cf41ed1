//! Reasons why the library does not reach a process, by /proc. A process that was reached says so in the run's figures;
//! this is about the others.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use luc_gate::environment_names::LIBRARY;
use luc_gate::inspect::{self, Gateability};
use luc_gate::seccomp_filter;

/// Reason why a process takes no part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PreloadObstacle {
    /// It is started without a loader.
    Static,
    /// It is a Go program, which makes system calls by itself.
    Go,
    /// Another C library's loader loads it.
    OtherLoader,
    /// Its program is for another machine.
    OtherMachine,
    /// Its start added privileges.
    Privileges,
    /// It was started without the variables that name the library.
    Environment,
    /// It has another root directory, in which the library or the run's memory is missing.
    Root,
    /// Its loader has not loaded the library.
    NotLoaded,
    /// It is under a filter of system calls of its own.
    Filter,
    /// It runs as another user.
    User,
    /// It is in another time namespace, so its clock compares with nobody's.
    Clock,
    /// It has loaded the library and calls the kernel past it.
    Direct,
    /// It had ended before anybody looked.
    Unknown,
}

impl PreloadObstacle {
    /// The reason, as a clause about the process.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::Static => "linked statically",
            Self::Go => "a Go program, which calls the kernel by itself",
            Self::OtherLoader => "loaded by another C library's loader",
            Self::OtherMachine => "built for another machine",
            Self::Privileges => "its start added privileges",
            Self::Environment => "started with a cleaned environment",
            Self::Root => "in another root directory, without the library or the run's memory",
            Self::NotLoaded => "its loader left the library out",
            Self::Filter => "under a filter of system calls of its own",
            Self::User => "runs as another user, who may not open the run's memory",
            Self::Clock => "in another time namespace",
            Self::Direct => {
                "calls the kernel past its C library, or could not map the run's memory"
            }
            Self::Unknown => "it had ended before its reason could be looked for",
        }
    }
}

/// Result of a look at a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreloadState {
    /// It has ended, or executes no program yet.
    Gone,
    /// The library is loaded, and nothing is in its way.
    Loaded,
    Obstacle(PreloadObstacle),
}

/// Looks at processes, and compares them with this one.
#[derive(Clone, Debug)]
pub struct ProcessInspector {
    filters: u32,
    user: u32,
    clock: Option<PathBuf>,
}

impl ProcessInspector {
    /// Notes the filters, user and time namespace of this process.
    #[must_use]
    pub fn new() -> Self {
        Self {
            filters: seccomp_filter::filters().unwrap_or(0),
            user: rustix::process::geteuid().as_raw(),
            clock: fs::read_link("/proc/self/ns/time").ok(),
        }
    }

    /// Finds the reason why the library does not reach a process.
    #[must_use]
    pub fn at(&self, process: u32) -> PreloadState {
        let of_process = Path::new("/proc").join(process.to_string());
        let maps = match fs::read(of_process.join("maps")) {
            // Its memory may not be looked at: it has privileges that this one lacks.
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                return PreloadState::Obstacle(PreloadObstacle::Privileges);
            }
            Err(_) => return PreloadState::Gone,
            // Without memory it has ended and not been waited for.
            Ok(maps) if maps.is_empty() => return PreloadState::Gone,
            Ok(maps) => maps,
        };
        let obstacle = if contains(&maps, LIBRARY) {
            self.beside_the_library(&of_process)
        } else {
            Some(Self::without_the_library(&of_process))
        };
        obstacle.map_or(PreloadState::Loaded, PreloadState::Obstacle)
    }

    fn beside_the_library(&self, of_process: &Path) -> Option<PreloadObstacle> {
        let status = fs::read_to_string(of_process.join("status")).unwrap_or_default();
        if seccomp_filter::from_status(&status) > self.filters {
            return Some(PreloadObstacle::Filter);
        }
        if fs::read_link(of_process.join("ns/time")).ok() != self.clock {
            return Some(PreloadObstacle::Clock);
        }
        if matches!(inspect::program(&of_process.join("exe")), Ok(Gateability::Go)) {
            return Some(PreloadObstacle::Go);
        }
        // Other users and roots below a run of root meet in memory that they inherit.
        if self.user == 0 {
            return None;
        }
        match fs::read_link(of_process.join("root")) {
            Ok(root) if root != Path::new("/") => return Some(PreloadObstacle::Root),
            _ => {}
        }
        let owner = fs::metadata(of_process).ok()?.uid();
        (owner != self.user).then_some(PreloadObstacle::User)
    }

    fn without_the_library(of_process: &Path) -> PreloadObstacle {
        match inspect::program(&of_process.join("exe")) {
            Ok(Gateability::Static) => return PreloadObstacle::Static,
            Ok(Gateability::Go) => return PreloadObstacle::Go,
            Ok(Gateability::ForeignLibc { .. }) => return PreloadObstacle::OtherLoader,
            Ok(Gateability::ForeignArchitecture { .. }) => return PreloadObstacle::OtherMachine,
            Ok(Gateability::SetId(_)) => return PreloadObstacle::Privileges,
            _ => {}
        }
        let environment = fs::read(of_process.join("environ")).unwrap_or_default();
        if !contains(&environment, LIBRARY) {
            return PreloadObstacle::Environment;
        }
        match fs::read_link(of_process.join("root")) {
            Ok(root) if root != Path::new("/") => PreloadObstacle::Root,
            _ => PreloadObstacle::NotLoaded,
        }
    }
}

impl Default for ProcessInspector {
    fn default() -> Self {
        Self::new()
    }
}

pub(crate) fn contains(text: &[u8], wanted: &str) -> bool {
    text.windows(wanted.len()).any(|part| part == wanted.as_bytes())
}

/// A process' number in its own namespace, and that namespace's inode; `None` if it has ended.
#[must_use]
pub fn own_number(process: u32) -> Option<(u32, u64)> {
    let of_process = Path::new("/proc").join(process.to_string());
    let namespace = fs::metadata(of_process.join("ns/pid")).ok()?.ino();
    let status = fs::read_to_string(of_process.join("status")).ok()?;
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    Some((numbers.split_whitespace().last()?.parse().ok()?, namespace))
}

/// The name of a process' program, as the kernel has it: 15 bytes at most.
#[must_use]
pub fn name_of(process: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
    luc_units::plain(name.trim_end())
}

pub(crate) fn reasons(obstacles: &BTreeSet<PreloadObstacle>) -> String {
    let words: Vec<&str> = obstacles.iter().map(|obstacle| obstacle.reason()).collect();
    words.join("; or ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    fn found(command: &mut Command) -> PreloadState {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let look = ProcessInspector::new();
        // It answers as soon as its program runs.
        let (mut asked, mut answer) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        std::io::Write::write_all(&mut asked, b"x").unwrap();
        std::io::Read::read_exact(&mut answer, &mut [0]).unwrap();
        let found = look.at(child.id());
        drop(asked);
        child.wait().unwrap();
        found
    }

    #[test]
    fn what_keeps_the_library_away_is_named() {
        assert_eq!(
            found(&mut Command::new("cat")),
            PreloadState::Obstacle(PreloadObstacle::Environment)
        );
        let mut named = Command::new("cat");
        named.env("LUC_TEST", LIBRARY);
        assert_eq!(found(&mut named), PreloadState::Obstacle(PreloadObstacle::NotLoaded));
    }

    #[test]
    fn a_process_has_a_number_in_its_own_namespace() {
        let own = std::process::id();
        assert_eq!(own_number(own).map(|(number, _)| number), Some(own));
    }

    #[test]
    fn one_that_has_ended_has_no_obstacle() {
        let mut child = Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        assert_eq!(ProcessInspector::new().at(child.id()), PreloadState::Gone);
    }
}
