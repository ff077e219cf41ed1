//! Puts roots of waits into words.

use luc_waits::{RootKind, UnknownReason};

/// Returns words that follow a thread's name in a sentence.
pub(crate) fn words(kind: RootKind) -> &'static str {
    match kind {
        RootKind::Computes => "computes",
        RootKind::Processor => "has the processor that others wait for",
        RootKind::NoProcessor => {
            "could run, but no thread of the trace has its processor: a limit, or somebody who is not recorded"
        }
        RootKind::Timer => "sleeps",
        RootKind::Fsync => "waits until its data are safe (fsync)",
        RootKind::Journal => "waits for the journal",
        RootKind::Device => "waits for the storage device",
        RootKind::Memory => "waits for memory",
        RootKind::Stopped => "is stopped by a signal or a debugger",
        RootKind::Throttled => "has used up its cgroup's quota of processor time",
        RootKind::Frozen => "is frozen",
        RootKind::Network => "gets its messages late",
        RootKind::HeldBack => {
            "gets its messages late: their host holds them back (TCP, or a queue)"
        }
        RootKind::BusyWithOthers => "works for other requests first",
        RootKind::Input => "sends only then what others wait for",
        RootKind::Outside => "answers late, and is in no trace",
        RootKind::Unknown(reason) => match reason {
            UnknownReason::NoRows => "is not known to do anything: it has no rows",
            UnknownReason::NoWaker => {
                "waits, and it is not known for what: no row tells who ended it"
            }
            UnknownReason::Interrupt => {
                "waits, and it is not known for what: an interrupt ended it, and no message tells why"
            }
            UnknownReason::Unfinished => {
                "waits, and it is not known for what: the trace ended first"
            }
            UnknownReason::EventLoop => {
                "waits for many, and it is not known for what: another request's message ended it"
            }
            UnknownReason::Circle => {
                "waits, and it is not known for what: each waits for the other"
            }
            UnknownReason::NotBorn => "has not begun, and it is not known who made it",
            UnknownReason::Ended => "has ended, and it is not known what was waited for",
            UnknownReason::NoClock => "is on a host whose clock is not known",
            UnknownReason::Forgotten => "did something before the rows that are there",
            UnknownReason::TooLong => "has rows that contradict each other",
        },
    }
}

/// Returns whether messages on their way are the root.
pub(crate) fn is_message(kind: RootKind) -> bool {
    matches!(kind, RootKind::Network | RootKind::HeldBack)
}
