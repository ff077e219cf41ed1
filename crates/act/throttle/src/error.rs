//! Errors of the throttle, which tell the user what to do.

use std::io;
use std::path::{Path, PathBuf};

use luc_probe::ProbeError;

/// An error of the throttle.
#[derive(Debug, thiserror::Error)]
pub enum ThrottleError {
    #[error("throttling needs root: it freezes cgroups and loads BPF programs; run it by sudo")]
    Privileges,
    /// There is no cgroup2 mount.
    #[error(
        "no cgroup v2 hierarchy is mounted: `mount -t cgroup2 none /sys/fs/cgroup/unified`, or boot with \
         systemd.unified_cgroup_hierarchy=1"
    )]
    NoCgroup2,
    /// Every cgroup2 mount is read-only, as in most containers.
    #[error("{} is read-only, as in a container: run luc throttle on the host, or give the container its cgroups",
        .0.display())]
    ReadOnly(PathBuf),
    /// The kernel has no freezer for cgroup v2 (before Linux 5.2).
    #[error("{} has no cgroup.freeze: throttling needs Linux 5.2 or later", .0.display())]
    NoFreezer(PathBuf),
    /// An operation on a file of a cgroup failed.
    #[error("cannot {what} {}: {source}", .path.display())]
    Cgroup {
        /// Operation, such as "write".
        what: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// A process could not be started or watched.
    #[error("{what}: {source}")]
    Process { what: String, source: io::Error },
    /// The record of frozen cgroups cannot be used.
    #[error("the record of frozen cgroups {}: {source}", .path.display())]
    Record { path: PathBuf, source: io::Error },
    /// There is a daemon already.
    #[error(
        "process {0} is a luc throttle daemon already: add the cgroups to its configuration, or stop it (`systemctl stop \
         luc-throttle`, or SIGTERM)"
    )]
    /// A daemon runs already.
    Running(String),
    /// There are more tasks than the record has room for.
    #[error("more than {0} tasks: name fewer cgroups")]
    TooMany(usize),
    /// There is no such disk.
    #[error("{0}: there is no such disk; lsblk -d lists them (a partition's disk is meant)")]
    Disk(String),
    /// Patterns that match no cgroup.
    #[error(
        "{0}: no cgroup matches; give a path below the root cgroup, such as 'system.slice/backup-*.service'"
    )]
    /// The patterns match no cgroup.
    NoCgroup(String),
    /// A disk cannot be measured.
    #[error("{what}: {reason}")]
    Learn {
        /// The device, path or file.
        what: String,
        /// Why not, and what to do.
        reason: String,
    },
    /// Ctrl-C ended a comparison.
    #[error("interrupted: no comparison without all of its runs")]
    Interrupted,
    /// A command of a comparison failed.
    #[error(
        "{command:?} ended with status {status}: a comparison needs commands that succeed each time they are run"
    )]
    /// A command of a comparison failed.
    Failed {
        command: String,
        /// Exit status; 128 plus the signal's number if a signal ended it.
        status: i32,
    },
    /// A run took no time that can be compared.
    #[error("a command took no time that can be compared: give commands that run for longer")]
    Figures,
    /// The name of a policy is unknown, or its value is wrong.
    #[error("policy {given:?}: {reason}; known are {known}")]
    Policy {
        given: String,
        reason: String,
        /// Known policies.
        known: &'static str,
    },
    /// The probe cannot be used.
    #[error(transparent)]
    Probe(#[from] ProbeError),
}

impl ThrottleError {
    /// For `map_err`: an operation on a file of a cgroup.
    pub(crate) fn cgroup(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Cgroup { what, path, source }
    }

    /// For `map_err`: an operation on processes.
    pub(crate) fn process(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Process { what, source }
    }

    /// For `map_err`: an operation on the record.
    pub(crate) fn record(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Record { path, source }
    }
}
