//! What can go wrong, each with the input, the reason and the next step.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// An error of this crate. The text is one line and ends with what to do next, except for those of a
/// guest, which end with the last lines of its log.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A program of the host is not installed.
    #[error(
        "program '{name}' is not installed: install the package {package}, or run `make setup`"
    )]
    MissingTool {
        /// The program.
        name: &'static str,
        /// The Debian package that has it.
        package: &'static str,
    },
    /// This QEMU hangs with several processors in virtual time.
    #[error(
        "{qemu} cannot run several processors in virtual time: run `make setup-vm`, which unpacks 8.1 or later beside it, \
         or take one processor"
    )]
    OldQemu {
        /// What it calls itself.
        qemu: String,
    },
    /// No kernel of this version can be had.
    #[error("kernel '{version}': {reason}")]
    NoKernel {
        /// The version asked for.
        version: String,
        /// Why, and what to do.
        reason: String,
    },
    /// A kernel's headers are not installed.
    #[error(
        "kernel {0}: its headers are not installed: install linux-headers-{0}, or run `make setup`"
    )]
    NoHeaders(String),
    /// A program for the guest cannot be found or has a library that cannot.
    #[error("program '{name}' for the guest: {reason}")]
    Program {
        /// The program.
        name: String,
        /// Why, and what to do.
        reason: String,
    },
    /// A file of the host cannot be read or written.
    #[error("'{}': {source}: check that it exists and that you may use it", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A program of the host failed.
    #[error("`{command}` failed: {reason}")]
    Command {
        /// The command line.
        command: String,
        /// What it said.
        reason: String,
    },
    /// The system refused something that a run needs.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// The guest's kernel panicked, or hit a bug that is made a panic.
    #[error("the guest's kernel panicked: {reason}; the end of its log:\n{log}")]
    Panic {
        /// The panic's own line.
        reason: String,
        /// The last lines of the console.
        log: String,
    },
    /// The guest did not end in time.
    #[error(
        "the guest did not end within {limit:?}: give it more time, or see what it waits for; the end of its log:\n{log}"
    )]
    Timeout {
        /// The limit.
        limit: Duration,
        /// The last lines of output and console.
        log: String,
    },
    /// QEMU ended, but no complete result came out of it.
    #[error("the guest ended without a result ({status}); the end of its log:\n{log}")]
    NoResult {
        /// QEMU's exit status and message.
        status: String,
        /// The last lines of the console.
        log: String,
    },
    /// What came back is not an archive.
    #[error("the guest's results are damaged: {0}")]
    Damaged(&'static str),
}

impl Error {
    /// There is no kernel of this version, for this reason.
    pub(crate) fn no_kernel(version: &str, reason: &str) -> Self {
        Self::NoKernel { version: version.to_owned(), reason: reason.to_owned() }
    }

    /// Whether this machine lacks something that a virtual machine needs: tests then skip.
    pub fn is_unavailable(&self) -> bool {
        matches!(
            self,
            Self::MissingTool { .. }
                | Self::OldQemu { .. }
                | Self::NoKernel { .. }
                | Self::NoHeaders(_)
        )
    }
}
