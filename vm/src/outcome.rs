//! What comes back from a guest.

use std::collections::BTreeMap;
use std::time::Duration;

/// What a script did in a guest.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The script's exit status.
    pub status: i32,
    /// What it printed, standard output and error together.
    pub output: Vec<u8>,
    /// The kernel's log.
    pub kernel_log: String,
    /// The files that it left in `$OUT`, by path.
    pub files: BTreeMap<String, Vec<u8>>,
    /// How long the run took on the host's clock, boot included.
    pub wall: Duration,
}

/// What the kernel says when something is wrong with it but it can go on.
const COMPLAINTS: [&str; 9] = [
    "WARNING:",
    "BUG:",
    "Oops:",
    "INFO: task ",
    "INFO: rcu",
    "possible recursive locking",
    "general protection fault",
    "EXT4-fs error",
    "JBD2: Error",
];

impl Outcome {
    /// The output as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.output).into_owned()
    }

    /// A file of `$OUT` as text, if it is there.
    pub fn file(&self, name: &str) -> Option<String> {
        self.files.get(name).map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    /// The lines of the kernel's log that tell of a fault: warnings, lock-ups, errors of ext4 and jbd2.
    pub fn complaints(&self) -> Vec<&str> {
        self.kernel_log
            .lines()
            .filter(|line| COMPLAINTS.iter().any(|complaint| line.contains(complaint)))
            .collect()
    }
}
