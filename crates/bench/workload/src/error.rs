//! Errors of benchmarks, each with its remedy.

use std::io;
use std::path::{Path, PathBuf};

/// A benchmark that could not start or finish.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    #[error("{option}: {reason}; {advice}")]
    Input { option: String, reason: &'static str, advice: &'static str },
    #[error("{path}: cannot work in this directory: {reason}; {advice}", path = .path.display())]
    Directory { path: PathBuf, reason: io::Error, advice: &'static str },
    #[error(
        "{path}: the file system is full (while {what}); use a larger one, fewer or smaller files, \
         or fewer seconds", path = .path.display()
    )]
    Full { path: PathBuf, what: String },
    #[error("{path}: {what} failed: {reason}; {advice}", path = .path.display())]
    Operation { path: PathBuf, what: String, reason: io::Error, advice: &'static str },
    #[error(
        "cannot start client {client} of {clients}: {reason}; use fewer --threads or raise the \
         limit (ulimit -u)"
    )]
    Start {
        /// Number of the client, from 1.
        client: usize,
        clients: usize,
        reason: io::Error,
    },
    /// Client processes are forked, which only a single-threaded process may do.
    #[error(
        "client processes cannot be forked: this process already has {threads} threads; start the \
         benchmark before any thread, or use client threads"
    )]
    Threaded { threads: usize },
    #[error("client {client} died ({how}); see the kernel log for the reason and run again")]
    Died { client: usize, how: String },
    /// The run was interrupted before anything was measured.
    #[error("interrupted before anything was measured")]
    Interrupted,
}

impl BenchError {
    /// Converts an operation's failure to an error with advice for its cause.
    pub fn operation(path: &Path, what: &str, reason: io::Error) -> Self {
        let path = path.to_path_buf();
        let what = what.to_owned();
        match reason.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full { path, what },
            io::ErrorKind::ReadOnlyFilesystem => Self::Operation {
                path,
                what,
                reason,
                advice: "the file system turned read-only: see the kernel log",
            },
            _ => Self::Operation {
                path,
                what,
                reason,
                advice: "check the file system and the kernel log, then run again",
            },
        }
    }

    pub fn directory(path: &Path, reason: io::Error) -> Self {
        let advice = match reason.kind() {
            io::ErrorKind::NotFound => "create it or give another --dir",
            io::ErrorKind::NotADirectory => "give a directory as --dir",
            io::ErrorKind::PermissionDenied => "give a --dir that you may write to",
            io::ErrorKind::ReadOnlyFilesystem => "give a --dir on a writable file system",
            io::ErrorKind::StorageFull => "free some space or give a --dir on a larger file system",
            _ => "give another --dir",
        };
        Self::Directory { path: path.to_path_buf(), reason, advice }
    }
}
