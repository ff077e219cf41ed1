//! Errors of clocks and messages.

use crate::host_ids::HostId;

/// Reason why clocks cannot be related.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ClockError {
    /// A time beyond [`MAX_TIME_NS`](crate::MAX_TIME_NS).
    #[error("time {0} ns is more than 73 years from 0: the record is damaged, leave it out")]
    TimeOutOfRange(i64),
    /// A setting of the fit without meaning.
    #[error("{name} is {value}: give a finite number above 0 (of `timestamp_error_ns` also 0)")]
    Setting {
        /// The field of [`FitOptions`](crate::FitOptions).
        name: &'static str,
        /// Value of the field.
        value: f64,
    },
    /// There are no messages between two hosts.
    #[error(
        "no message between the two hosts: record both at the same time, or go by a third host"
    )]
    NoMessages,
    /// More jumps than a clock makes.
    #[error(
        "{0} contradictions between messages: they are not of two clocks, check which hosts the files are of"
    )]
    TooManyJumps(usize),
    /// Too few samples of a host's clocks.
    #[error("{0} samples of a host's clocks: at least 2 are needed, record for longer")]
    FewSamples(usize),
    /// Samples whose clocks stand still or go back.
    #[error("clocks do not advance from sample {0} to the next: sort the samples by time")]
    SamplesNotAscending(usize),
    /// A host that is in no pair and is not the reference.
    #[error("host {0} is not among the fitted ones: pull its trace as well")]
    UnknownHost(HostId),
    /// A pair of one host, or a pair given twice.
    #[error("the pair of hosts {0} and {1} is given twice or is one host: give each pair once")]
    BadPair(HostId, HostId),
    /// Pairs that contradict each other at one moment: around a circle of hosts the bounds leave nothing.
    #[error(
        "around host {host} the pairs contradict each other at {at_ns} ns: a clock jumped by less than a round trip"
    )]
    Contradiction {
        /// A host on the circle.
        host: HostId,
        /// The reference host's time.
        at_ns: i64,
    },
}
