//! One trial: a call, the failed write that it has to report, and its results.

use std::fmt;
use std::str::FromStr;

use luc_disk::ByteRange;
use serde::{Deserialize, Serialize};

/// The call that is to report a failed write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrialCall {
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
pub enum FaultyBlock {
    First,
    Middle,
    Last,
}

/// Actions between the write and the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DescriptorBeforeCall {
    Direct,
    /// The file is closed and opened again.
    Reopened,
}

/// State of the file before the write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrialFileState {
    /// Written and synchronized: its blocks are overwritten in place.
    Overwritten,
    /// Preallocated: its blocks become written ones with the write.
    Preallocated,
}

/// Trial: a call on a file with a block that cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FaultTrial {
    pub call: TrialCall,
    pub block: FaultyBlock,
    pub before: DescriptorBeforeCall,
    pub file: TrialFileState,
}

/// Result of a call: its value and, if that is -1, errno.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrialCallResult {
    pub value: i64,
    /// `errno` after it, 0 if it did not fail.
    pub errno: i32,
}

/// Results of the calls of one trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultTrialOutcome {
    pub first: TrialCallResult,
    /// Result of the same call, made again.
    pub second: TrialCallResult,
    pub close: TrialCallResult,
}

impl TrialCall {
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

impl FromStr for TrialCall {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|call| call.name() == text);
        let names = Self::ALL.map(Self::name).join(", ");
        found.ok_or_else(|| format!("no such call: use one of {names}"))
    }
}

impl FaultyBlock {
    const ALL: [Self; 3] = [Self::First, Self::Middle, Self::Last];
}

impl FaultTrial {
    /// Lists all trials of these calls: each block, both kinds of files, with and without opening them again.
    pub fn all(calls: &[TrialCall]) -> Vec<Self> {
        let mut trials = Vec::new();
        for &call in calls {
            for file in [TrialFileState::Overwritten, TrialFileState::Preallocated] {
                for before in [DescriptorBeforeCall::Direct, DescriptorBeforeCall::Reopened] {
                    for block in FaultyBlock::ALL {
                        trials.push(Self { call, block, before, file });
                    }
                }
            }
        }
        trials
    }
}

impl fmt::Display for FaultTrial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let block = match self.block {
            FaultyBlock::First => "first",
            FaultyBlock::Middle => "middle",
            FaultyBlock::Last => "last",
        };
        let file = match self.file {
            TrialFileState::Overwritten => "an overwritten",
            TrialFileState::Preallocated => "a preallocated",
        };
        let before = match self.before {
            DescriptorBeforeCall::Direct => "",
            DescriptorBeforeCall::Reopened => ", opened again",
        };
        write!(f, "{}, {block} block of {file} file{before}", self.call.name())
    }
}

impl TrialCallResult {
    pub fn is_failure(self) -> bool {
        self.value < 0
    }
}

impl FaultTrialOutcome {
    /// Returns whether any call reported a failure.
    pub fn is_failure(&self) -> bool {
        [self.first, self.second, self.close].into_iter().any(TrialCallResult::is_failure)
    }
}

impl fmt::Display for TrialCallResult {
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

impl fmt::Display for FaultTrialOutcome {
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
pub(super) enum TrialClientOrder {
    /// Make a file for each trial, and do everything before the call.
    Prepare {
        trials: Vec<FaultTrial>,
    },
    Go,
}

/// Answers of the client, a line of JSON each.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub(super) enum TrialClientReply {
    /// The files are there; for each trial the bytes of the disk that are to fail.
    Prepared { ranges: Vec<ByteRange> },
    /// Results of the trials, in their order.
    Done { outcomes: Vec<FaultTrialOutcome> },
    /// The client cannot go on.
    Failed { reason: String },
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_trial_is_missing_or_made_twice() {
        let trials = FaultTrial::all(&TrialCall::ALL);
        assert_eq!(trials.len(), 5 * 3 * 2 * 2);
        let texts: BTreeSet<String> = trials.iter().map(ToString::to_string).collect();
        assert_eq!(texts.len(), trials.len());
    }

    #[test]
    fn calls_are_read_by_their_names() {
        for call in TrialCall::ALL {
            assert_eq!(call.name().parse(), Ok(call));
        }
        assert!("sync".parse::<TrialCall>().is_err_and(|text| text.contains("fdatasync")));
    }

    #[test]
    fn outcomes_in_words() {
        let good = TrialCallResult { value: 0, errno: 0 };
        let bad = TrialCallResult { value: -1, errno: libc::ENODATA };
        let outcome = FaultTrialOutcome { first: bad, second: good, close: good };
        assert_eq!(outcome.to_string(), "No data available, then success");
        assert!(outcome.is_failure());
    }
}
