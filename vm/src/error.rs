//! Errors of this crate, each with the input, the reason and the next step.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// An error of this crate. Its text is one line that ends with the next step. Errors of a guest end with the last lines
/// of its log instead.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A program of the host is not installed.
    #[error(
        "program '{name}' is not installed: install the package {package}, or run `make setup`"
    )]
    MissingTool {
        name: &'static str,
        /// Debian package of the program.
        package: &'static str,
    },
    /// This QEMU hangs with several processors in virtual time.
    #[error(
        "{qemu} cannot run several processors in virtual time: run `make setup-vm`, which unpacks 8.1 or later beside it, \
         or take one processor"
    )]
    OldQemu {
        /// Version that QEMU prints.
        qemu: String,
    },
    /// No kernel of this version can be had.
    #[error("kernel '{version}': {reason}")]
    NoKernel { version: String, reason: String },
    /// A kernel's headers are not installed.
    #[error(
        "kernel {0}: its headers are not installed: install linux-headers-{0}, or run `make setup`"
    )]
    NoHeaders(String),
    /// A program for the guest cannot be found or has a library that cannot.
    #[error("program '{name}' for the guest: {reason}")]
    Program { name: String, reason: String },
    /// A file of the host cannot be read or written.
    #[error("'{}': {source}: check that it exists and that you may use it", path.display())]
    File { path: PathBuf, source: io::Error },
    /// A program of the host failed.
    #[error("`{command}` failed: {reason}")]
    Command { command: String, reason: String },
    /// The system refused something that a run needs.
    #[error("{what}: {source}")]
    System { what: &'static str, source: io::Error },
    /// The guest's kernel panicked, or hit a bug that is made a panic.
    #[error("the guest's kernel panicked: {reason}; the end of its log:\n{log}")]
    Panic {
        /// The log's line on the panic.
        reason: String,
        /// Last lines of the console.
        log: String,
    },
    /// The guest did not end in time.
    #[error(
        "the guest did not end within {limit:?}: give it more time, or see what it waits for; the end of its log:\n{log}"
    )]
    Timeout {
        limit: Duration,
        /// Last lines of output and console.
        log: String,
    },
    /// QEMU ended, but no complete result came out of it.
    #[error("the guest ended without a result ({status}); the end of its log:\n{log}")]
    NoResult {
        /// QEMU's exit status and message.
        status: String,
        /// Last lines of the console.
        log: String,
    },
    /// The results are no archive.
    #[error("the guest's results are damaged: {0}")]
    Damaged(&'static str),
}

impl Error {
    /// Makes the error for a version that has no kernel.
    pub(crate) fn no_kernel(version: &str, reason: &str) -> Self {
        Self::NoKernel { version: version.to_owned(), reason: reason.to_owned() }
    }

    /// Whether this machine lacks something that a virtual machine needs, so that tests skip.
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
