//! A client, and the batch beside it.

use crate::mixes::Mix;

/// A client and the batch beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scenario {
    /// Reads 4 KiB at random every 10 ms, beside three streams.
    Reads,
    /// Appends 4 KiB and fsyncs every 10 ms, beside two tasks that overwrite and fsync files, and one that reads.
    Fsyncs,
}

impl Scenario {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Reads => "reads",
            Self::Fsyncs => "fsyncs",
        }
    }

    /// Number of batch tasks.
    pub(super) fn batch(self) -> usize {
        3
    }

    /// The tasks' files. The client that reads has the last.
    pub(super) fn files(self) -> Mix {
        let mix = match self {
            Self::Reads => Mix::streams(4, 96),
            Self::Fsyncs => Mix::streams(3, 40),
        };
        Mix { name: format!("protect, {}", self.name()), ..mix }
    }

    pub(super) fn client(self, seconds: f64, seed: u64) -> String {
        match self {
            Self::Reads => format!(
                "\"$LUC\" bench ranking \"$MNT/4\" --cold --random {seed} --block 4K --think 10ms --for {seconds}s --json"
            ),
            Self::Fsyncs => format!(
                "\"$LUC\" bench append --dir \"$MNT\" --threads 1 --record-size 4k --call fsync --think 10ms \
                 --seconds {seconds} --json"
            ),
        }
    }

    /// Command of a batch task, which goes on until it is ended.
    pub(super) fn batch_task(self, number: usize) -> String {
        let options = if self == Self::Fsyncs && number < 3 { "--write" } else { "--cold" };
        format!(
            "while :; do \"$LUC\" bench ranking \"$MNT/{number}\" {options} 2>/dev/null || exit 1; done"
        )
    }
}
