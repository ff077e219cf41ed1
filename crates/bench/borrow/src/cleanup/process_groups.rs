//! Process groups of a sweep's programs: detects living ones and kills them.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use super::state::BUSY_TIMEOUT;

/// Environment variable that marks a sweep's programs. Processes without it are left alone, since the number of the
/// process group may have been reused.
pub const SWEEP_VARIABLE: &str = "LUC_SWEEP";

/// A process group, identified by its leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProcessGroup {
    leader: i32,
    /// Start time of the leader, in clock ticks since boot.
    begun: u64,
}

/// A process, from proc_pid_stat(5).
struct Process {
    group: i32,
    begun: u64,
}

impl Process {
    /// Reads `PID (NAME) STATE PPID PGRP ...`; `None` if it is gone or a zombie.
    fn of(pid: i32) -> Option<Self> {
        let mut text = String::new();
        let file = File::open(format!("/proc/{pid}/stat")).ok()?;
        BufReader::new(file).read_line(&mut text).ok()?;
        let fields: Vec<&str> = text.rsplit_once(") ")?.1.split(' ').collect();
        if ["Z", "X"].contains(fields.first()?) {
            return None;
        }
        Some(Self { group: fields.get(2)?.parse().ok()?, begun: fields.get(19)?.parse().ok()? })
    }
}

impl ProcessGroup {
    /// Returns the group of a living leader.
    pub(super) fn of(leader: i32) -> Option<Self> {
        let begun = Process::of(leader)?.begun;
        Some(Self { leader, begun })
    }

    /// Parses a line of [`ProcessGroup::text`].
    pub(super) fn parse(line: &str) -> Option<Self> {
        let (leader, begun) = line.split_once(' ')?;
        Some(Self {
            leader: leader.parse().ok().filter(|&leader| leader > 1)?,
            begun: begun.parse().ok()?,
        })
    }

    /// Formats it as a line of a note.
    pub(super) fn text(self) -> String {
        format!("{} {}\n", self.leader, self.begun)
    }

    /// Kills its remaining processes: all if its leader lives, otherwise those marked by the sweep `name`.
    pub(super) fn end_left(self, name: &str) {
        let leads = |process: Process| process.group == self.leader && process.begun == self.begun;
        if Process::of(self.leader).is_some_and(leads) {
            end_meter(self.leader);
        }
        let mark = format!("{SWEEP_VARIABLE}={name}");
        end(self.leader, |pid| has_mark(pid, &mark));
    }
}

fn has_mark(pid: i32, mark: &str) -> bool {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let mut variables = environment.split(|&byte| byte == 0);
    variables.any(|variable| variable == mark.as_bytes())
}

/// Kills a whole group. A sweep that ends normally has done so already.
pub(super) fn end_meter(leader: i32) {
    let is_there = Process::of(leader).is_some_and(|process| process.group == leader);
    if let Some(group) = Pid::from_raw(leader).filter(|_| is_there) {
        // It may have ended in the meantime.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// Kills the processes of a group except its leader, until none is left.
pub(super) fn end_group(group: i32) {
    end(group, |_| true);
}

fn end(group: i32, is_selected: impl Fn(i32) -> bool) {
    let begun = Instant::now();
    while begun.elapsed() < BUSY_TIMEOUT {
        let members: Vec<i32> =
            members(group).into_iter().filter(|&pid| is_selected(pid)).collect();
        if members.is_empty() {
            return;
        }
        for member in members.into_iter().filter_map(Pid::from_raw) {
            // It may have ended in the meantime.
            let _ = kill_process(member, Signal::KILL);
        }
        sleep(Duration::from_millis(10));
    }
}

/// Lists living processes of a group, without its leader.
fn members(group: i32) -> Vec<i32> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let pids =
        entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|&pid| pid != group)
        .filter(|&pid| Process::of(pid).is_some_and(|process| process.group == group))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt as _;
    use std::process::Command;

    use super::*;

    /// Starts a shell that leads a new group and has a child in it.
    fn sleeper(mark: &str) -> std::process::Child {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 100 & wait"]).env(SWEEP_VARIABLE, mark);
        command.process_group(0).spawn().expect("a shell starts")
    }

    #[test]
    fn lines_and_back() {
        let group = ProcessGroup { leader: 4711, begun: 123_456 };
        assert_eq!(ProcessGroup::parse(group.text().trim_end()), Some(group));
        for wrong in ["", "4711", "0 5", "-3 5", "1 5", "x 5", "5 x"] {
            assert_eq!(ProcessGroup::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn strangers_of_a_number_are_left_alone() {
        let mut child = sleeper("sweep-x");
        let pid = child.id().cast_signed();
        let group = ProcessGroup::of(pid).expect("it lives");
        while members(pid).is_empty() {
            sleep(Duration::from_millis(5));
        }
        // Neither the leader's start time nor the mark fits.
        let stranger = ProcessGroup { begun: 0, ..group };
        stranger.end_left("sweep-y");
        assert!(Process::of(pid).is_some() && !members(pid).is_empty());
        stranger.end_left("sweep-x");
        assert!(members(pid).is_empty());
        group.end_left("sweep-y");
        child.wait().expect("waited for");
        assert!(ProcessGroup::of(pid).is_none());
    }
}
