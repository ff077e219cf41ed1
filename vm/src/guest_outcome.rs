//! Results of a guest.

use std::collections::BTreeMap;
use std::time::Duration;

/// Results of a script in a guest.
#[derive(Clone, Debug)]
pub struct GuestOutcome {
    pub status: i32,
    /// Output of the script, standard output and error together.
    pub output: Vec<u8>,
    pub kernel_log: String,
    /// Files that the script left in `$OUT`, by path.
    pub files: BTreeMap<String, Vec<u8>>,
    /// Duration of the run on the host's clock, boot included.
    pub wall: Duration,
}

/// Texts in the kernel's log that tell of a fault it survived.
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

impl GuestOutcome {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.output).into_owned()
    }

    /// A file of `$OUT` as text, if it exists.
    pub fn file(&self, name: &str) -> Option<String> {
        self.files.get(name).map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    /// Lines of the kernel's log that tell of a fault: warnings, lock-ups, errors of ext4 and jbd2.
    pub fn complaints(&self) -> Vec<&str> {
        self.kernel_log
            .lines()
            .filter(|line| COMPLAINTS.iter().any(|complaint| line.contains(complaint)))
            .collect()
    }
}
