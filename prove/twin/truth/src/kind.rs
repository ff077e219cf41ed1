//! Kinds of planted troubles.

use serde::{Deserialize, Serialize};

/// A trouble. The unit of [`crate::Planted::strength`] is its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A back end burns processor time before it searches. Strength: ns of processor time for each search.
    Cpu,
    /// A back end reads a cold file before it searches. Strength: reads for each search.
    Disk,
    /// A back end's indexer holds the index's lock while it writes and calls fsync. Strength: bytes for each fsync.
    Journal,
    /// A thread of a back end holds the index's lock since before the requests came. Strength: ns of each hold.
    Lock,
    /// A back end has too few workers. Strength: workers.
    Pool,
    /// A back end's partition is larger. Strength: size of this partition over that of the others.
    Larger,
    /// A thread of a back end wakes, does nothing and sleeps again. Strength: ns between.
    Tick,
    /// A back end's cgroup may use the processors only for a share of the time. Strength: percent of one.
    Quota,
    /// Packets to a back end get lost. Strength: percent.
    Loss,
    /// Two clients' requests share a connection. `thread` and `holder` are both clients' threads. Strength: 2.
    Share,
    /// A process on a back end's host stops it by a signal, again and again. `holder` is that process. Strength: ns of
    /// each stop.
    Stop,
    /// A back end's messages leave its host slowly. Strength: kbit/s.
    Rate,
    /// A process on a back end's host makes the kernel write data to the disk that the back end reads. `holder` is
    /// that process. Strength: bytes that it writes at a time.
    Writer,
}

impl Kind {
    pub const ALL: [Self; 13] = [
        Self::Cpu,
        Self::Disk,
        Self::Journal,
        Self::Lock,
        Self::Pool,
        Self::Larger,
        Self::Tick,
        Self::Quota,
        Self::Loss,
        Self::Share,
        Self::Stop,
        Self::Rate,
        Self::Writer,
    ];

    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Disk => "disk",
            Self::Journal => "journal",
            Self::Lock => "lock",
            Self::Pool => "pool",
            Self::Larger => "larger",
            Self::Tick => "tick",
            Self::Quota => "quota",
            Self::Loss => "loss",
            Self::Share => "share",
            Self::Stop => "stop",
            Self::Rate => "rate",
            Self::Writer => "writer",
        }
    }
}
