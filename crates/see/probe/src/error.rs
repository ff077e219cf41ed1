//! Errors of recording, with the reason and the next step.

use luc_events::store::StoreError;
use luc_units::FileOperationError;

/// The reason why nothing can be recorded, in one line.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// This process may not load BPF programs.
    #[error(
        "watching the kernel needs root (in a container CAP_BPF and CAP_PERFMON, too): run it by sudo"
    )]
    Privileges,
    /// This process is root of a user namespace only.
    #[error(
        "watching the kernel needs root of the machine, and this is a user namespace, as of a rootless container: run \
         luc on the host"
    )]
    UserNamespace,
    /// The kernel has no type information.
    #[error(
        "this kernel has no BTF (/sys/kernel/btf/vmlinux): recording needs Linux 5.15 or later built with CONFIG_DEBUG_INFO_BTF"
    )]
    NoBtf,
    /// A tracepoint that everything rests on is missing.
    #[error("this kernel lacks the tracepoint {0}: recording needs Linux 5.15 or later")]
    NoTracepoint(&'static str),
    /// A tracepoint without which no messages can be recorded is missing.
    #[error(
        "--fleet cannot be had: this kernel lacks the tracepoint {0}; Linux 6.1 and later have it"
    )]
    NoNetwork(&'static str),
    /// The kernel refused the programs.
    #[error("the kernel refused {what}: {reason}")]
    Refused {
        what: String,
        /// libbpf's or the verifier's words, in one line.
        reason: String,
    },
    /// A filter that cannot be applied.
    #[error("{0}")]
    Filter(String),
    /// Events that cannot be counted.
    #[error("{0}")]
    Counters(String),
    /// A disk or a task that cannot be watched.
    #[error("{0}")]
    Watch(String),
    /// A system call failed.
    #[error(transparent)]
    System(#[from] FileOperationError),
    /// The trace cannot be written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The receiver of the events gave up.
    #[error("{0}")]
    Sink(String),
    /// The thread that records has panicked.
    #[error(
        "the recorder ended unexpectedly: this is a defect of luc; what was recorded before is in the trace"
    )]
    Ended,
}

impl ProbeError {
    pub(crate) fn refused(what: impl Into<String>) -> impl FnOnce(libbpf_rs::Error) -> Self {
        let what = what.into();
        move |error| Self::Refused { what, reason: one_line(&format!("{error:#}")) }
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
