//! One trial: a call, the failed write that it has to report, and its results.

use std::fmt;
use std::str::FromStr;

use luc_disk::ByteRange;
use serde::{Deserialize, Serialize};

/// The call that is to report a failed write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Call {
    Fsync,
    Fdatasync,
    /// `msync(MS_SYNC)` of a shared mapping.
    Msync,
    /// `pwrite` to a file opened with O_SYNC.
    OSync,
    /// `pwrite` to a file opened with O_DSYNC.
    ODsync,
}

/// The file's block that cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Block {
    First,
    Middle,
    Last,
}

/// Actions between the write and the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Before {
    Direct,
    /// The file is closed and opened again.
    Reopened,
}

/// State of the file before the write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Written and synchronized: its blocks are overwritten in place.
    Overwritten,
    /// Preallocated: its blocks become written ones with the write.
    Preallocated,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Trial {
    pub call: Call,
    pub block: Block,
    pub before: Before,
    pub file: Kind,
}

/// Result of a call: its value and, if that is -1, errno.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    pub value: i64,
    /// `errno` after it, 0 if it did not fail.
    pub errno: i32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    pub first: Answer,
    /// Result of the same call, made again.
    pub second: Answer,
    pub close: Answer,
}

impl Call {
    pub const ALL: [Self; 5] =
        [Self::Fsync, Self::Fdatasync, Self::Msync, Self::OSync, Self::ODsync];

    /// Returns its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fsync => "fsync",
            Self::Fdatasync => "fdatasync",
            Self::Msync => "msync",
            Self::OSync => "o_sync",
            Self::ODsync => "o_dsync",
        }
    }
}

impl FromStr for Call {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|call| call.name() == text);
        let names = Self::ALL.map(Self::name).join(", ");
        found.ok_or_else(|| format!("no such call: use one of {names}"))
    }
}

impl Block {
    const ALL: [Self; 3] = [Self::First, Self::Middle, Self::Last];
}

impl Trial {
    /// Lists all trials of these calls: each block, both kinds of files, with and without opening them again.
    pub fn all(calls: &[Call]) -> Vec<Self> {
        let mut trials = Vec::new();
        for &call in calls {
            for file in [Kind::Overwritten, Kind::Preallocated] {
                for before in [Before::Direct, Before::Reopened] {
                    for block in Block::ALL {
                        trials.push(Self { call, block, before, file });
                    }
                }
            }
        }
        trials
    }
}

impl fmt::Display for Trial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let block = match self.block {
            Block::First => "first",
            Block::Middle => "middle",
            Block::Last => "last",
        };
        let file = match self.file {
            Kind::Overwritten => "an overwritten",
            Kind::Preallocated => "a preallocated",
        };
        let before = match self.before {
            Before::Direct => "",
            Before::Reopened => ", opened again",
        };
        write!(f, "{}, {block} block of {file} file{before}", self.call.name())
    }
}

impl Answer {
    pub fn is_failure(self) -> bool {
        self.value < 0
    }
}

impl Outcome {
    /// Returns whether any call reported a failure.
    pub fn is_failure(&self) -> bool {
        [self.first, self.second, self.close].into_iter().any(Answer::is_failure)
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_failure() {
            let text = std::io::Error::from_raw_os_error(self.errno).to_string();
            let text = text.split(" (os error").next().unwrap_or_default();
            write!(f, "{text}")
        } else {
            f.write_str("success")
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, then {}", self.first, self.second)?;
        if self.close.is_failure() {
            write!(f, ", close {}", self.close)?;
        }
        Ok(())
    }
}

/// Orders to the client, a line of JSON each.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "snake_case")]
pub(super) enum Order {
    /// Make a file for each trial, and do everything before the call.
    Prepare {
        trials: Vec<Trial>,
    },
    Go,
}

/// Answers of the client, a line of JSON each.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub(super) enum Reply {
    /// The files are there; for each trial the bytes of the disk that are to fail.
    Prepared { ranges: Vec<ByteRange> },
    /// Results of the trials, in their order.
    Done { outcomes: Vec<Outcome> },
    /// The client cannot go on.
    Failed { reason: String },
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_trial_is_missing_or_made_twice() {
        let trials = Trial::all(&Call::ALL);
        assert_eq!(trials.len(), 5 * 3 * 2 * 2);
        let texts: BTreeSet<String> = trials.iter().map(ToString::to_string).collect();
        assert_eq!(texts.len(), trials.len());
    }

    #[test]
    fn calls_are_read_by_their_names() {
        for call in Call::ALL {
            assert_eq!(call.name().parse(), Ok(call));
        }
        assert!("sync".parse::<Call>().is_err_and(|text| text.contains("fdatasync")));
    }

    #[test]
    fn outcomes_in_words() {
        let good = Answer { value: 0, errno: 0 };
        let bad = Answer { value: -1, errno: libc::ENODATA };
        let outcome = Outcome { first: bad, second: good, close: good };
        assert_eq!(outcome.to_string(), "No data available, then success");
        assert!(outcome.is_failure());
    }
}
