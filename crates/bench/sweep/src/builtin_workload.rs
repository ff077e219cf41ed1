//! The built-in workloads of `luc bench`.

use serde::{Deserialize, Serialize};

/// A workload of `luc bench`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BuiltinWorkload {
    Metarates,
    Varmail,
    /// A database; the threads are its writers.
    Oltp,
    InitialWrite,
    /// Commits of many files; the threads are the files of each.
    Commit,
    Append,
    Overwrite,
}

impl BuiltinWorkload {
    /// Returns its name as in `luc bench NAME`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Metarates => "metarates",
            Self::Varmail => "varmail",
            Self::Oltp => "oltp",
            Self::InitialWrite => "initial-write",
            Self::Commit => "commit",
            Self::Append => "append",
            Self::Overwrite => "overwrite",
        }
    }

    /// Returns the JSON pointer to its figure in its report.
    pub(crate) fn figure(self) -> &'static str {
        match self {
            Self::Metarates => "/creations_per_second",
            Self::Varmail | Self::Oltp => "/flowops_per_second",
            Self::InitialWrite => "/parent_kib_per_second/median",
            Self::Commit => "/files_per_second",
            Self::Append | Self::Overwrite => "/syncs_per_second",
        }
    }

    pub(crate) fn unit(self) -> &'static str {
        match self {
            Self::Metarates | Self::Commit => "files/s",
            Self::Varmail | Self::Oltp => "operations/s",
            Self::InitialWrite => "KiB/s",
            Self::Append | Self::Overwrite => "syncs/s",
        }
    }

    /// Returns the option that takes the number of clients.
    pub(crate) fn clients(self) -> &'static str {
        match self {
            Self::Oltp => "--writers",
            Self::Commit => "--files",
            _ => "--threads",
        }
    }
}
