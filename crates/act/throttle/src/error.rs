//! Errors of the throttle, which tell the user what to do.

use std::io;
use std::path::{Path, PathBuf};

use luc_probe::ProbeError;

#[derive(Debug, thiserror::Error)]
pub enum ThrottleError {
    #[error("throttling needs root: it freezes cgroups and loads BPF programs; run it by sudo")]
    Privileges,
    #[error(
        "no cgroup v2 hierarchy is mounted: `mount -t cgroup2 none /sys/fs/cgroup/unified`, or boot with \
         systemd.unified_cgroup_hierarchy=1"
    )]
    NoCgroup2,
    #[error("{} is read-only, as in a container: run luc throttle on the host, or give the container its cgroups",
        .0.display())]
    ReadOnly(PathBuf),
    #[error("{} has no cgroup.freeze: throttling needs Linux 5.2 or later", .0.display())]
    NoFreezer(PathBuf),
    #[error("cannot {what} {}: {source}", .path.display())]
    Cgroup {
        /// Operation, such as "write".
        what: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("{what}: {source}")]
    Process { what: String, source: io::Error },
    #[error("the record of frozen cgroups {}: {source}", .path.display())]
    Record { path: PathBuf, source: io::Error },
    #[error(
        "process {0} is a luc throttle daemon already: add the cgroups to its configuration, or stop it (`systemctl stop \
         luc-throttle`, or SIGTERM)"
    )]
    Running(String),
    #[error("more than {0} tasks: name fewer cgroups")]
    TooMany(usize),
    #[error("{0}: there is no such disk; lsblk -d lists them (a partition's disk is meant)")]
    Disk(String),
    #[error(
        "{0}: no cgroup matches; give a path below the root cgroup, such as 'system.slice/backup-*.service'"
    )]
    NoCgroup(String),
    #[error("{what}: {reason}")]
    Learn {
        /// The device, path or file.
        what: String,
        /// Reason, and the next step.
        reason: String,
    },
    #[error("interrupted: no comparison without all of its runs")]
    Interrupted,
    #[error(
        "{command:?} ended with status {status}: a comparison needs commands that succeed each time they are run"
    )]
    Failed {
        command: String,
        /// Exit status; 128 plus the signal's number if a signal ended it.
        status: i32,
    },
    #[error("a command took no time that can be compared: give commands that run for longer")]
    Figures,
    #[error("policy {given:?}: {reason}; known are {known}")]
    Policy { given: String, reason: String, known: &'static str },
    #[error(transparent)]
    Probe(#[from] ProbeError),
}

impl ThrottleError {
    /// Makes an error of an operation on a file of a cgroup, for `map_err`.
    pub(crate) fn cgroup(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Cgroup { what, path, source }
    }

    /// Makes an error of an operation on processes, for `map_err`.
    pub(crate) fn process(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Process { what, source }
    }

    /// Makes an error of an operation on the record, for `map_err`.
    pub(crate) fn record(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Record { path, source }
    }
}
