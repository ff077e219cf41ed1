//! Errors of a sweep, each with its remedy.

use std::io;
use std::path::PathBuf;

use luc_borrow::BorrowError;
use luc_filebench::FilebenchError;
use luc_power::frequency::FrequencyError;
use luc_units::FileOperationError;
use luc_workload::BenchError;

/// A sweep that could not start or go on.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// The plan is not TOML, or has a key or value that no plan has.
    #[error("{path}:{line}: {reason}", path = .path.display())]
    Syntax { path: PathBuf, line: usize, reason: String },
    #[error("plan: {0}")]
    Plan(String),
    /// A workload file cannot be read, or is wrong.
    #[error(transparent)]
    Filebench(#[from] FilebenchError),
    #[error("plan: {0}")]
    Option(#[from] BenchError),
    /// A disk is wrong in the plan, cannot be made here, or cannot be removed.
    #[error(transparent)]
    Disk(#[from] luc_disk::Error),
    /// A size or time of the plan is wrong.
    #[error("plan: {0}")]
    Unit(#[from] luc_units::UnitError),
    /// The processors cannot be set, or not be put back.
    #[error(transparent)]
    Frequency(#[from] FrequencyError),
    /// A device, a processor or a meter cannot be borrowed, or something cannot be given back.
    #[error(transparent)]
    Borrow(BorrowError),
    /// The folder of the results, or a file in it, may be another user's work.
    #[error(
        "{path}: {reason}: give another --out, or have it belong to root alone (chown root, chmod go-w)",
        path = .path.display()
    )]
    Doubtful { path: PathBuf, reason: String },
    #[error("{path} has the results of another plan: give another --out, or remove the folder", path = .0.display())]
    OtherPlan(PathBuf),
    /// The folder for the results has something else in it.
    #[error("{path} is no folder of a sweep and is not empty: give a new folder with --out", path = .0.display())]
    Foreign(PathBuf),
    /// The folder has no results that this version understands.
    #[error("{path} has no results of a sweep: name the folder that `luc sweep` wrote to", path = .0.display())]
    NoSweep(PathBuf),
    #[error(
        "{path}:{line}: this is no result of a sweep: give another --out, or remove the line",
        path = .path.display()
    )]
    Journal { path: PathBuf, line: usize },
    #[error("{path} is in use by another sweep: wait for it, or give another --out", path = .0.display())]
    Busy(PathBuf),
    #[error(
        "{what}: `{command}` failed ({how}): {said}; correct the plan and give the same command again"
    )]
    Command {
        /// The point and round.
        what: String,
        command: String,
        how: String,
        /// Last line of its standard error.
        said: String,
    },
    /// A program ran, and its figure is not there.
    #[error(
        "{what}: no positive figure in what the workload printed ({figure}); correct the plan's figure"
    )]
    NoFigure {
        /// The point and round.
        what: String,
        figure: String,
    },
    #[error(
        "{what}: the series does not become steady (MSER-5, at least 20 values); let the workload run longer"
    )]
    Unsteady {
        /// The point and round.
        what: String,
    },
    #[error(
        "cannot {action} {path}: {reason}; check the folder and give the same command again",
        path = .path.display()
    )]
    File { action: &'static str, path: PathBuf, reason: io::Error },
    /// A guest could not be made or did not end well.
    #[error("virtual: {0}")]
    Guest(#[from] luc_vm::Error),
    /// The QEMU is not the one of the repeats that are there.
    #[error(
        "virtual: the results were begun by {before}, and here is {now}: make them anew with another --out"
    )]
    OtherQemu {
        /// QEMU of the earlier repeats.
        before: String,
        /// QEMU of this machine.
        now: String,
    },
    #[error("virtual: {0}")]
    Sources(#[from] luc_module::Error),
    #[error("{what}: {said}; correct the plan and give the same command again")]
    InGuest {
        /// The point and round, or the guest.
        what: String,
        said: String,
    },
    /// The sweep was interrupted. Finished repeats are kept.
    #[error("interrupted")]
    Interrupted,
}

impl SweepError {
    /// Returns whether the error concerns this point only, and other points may still be measured.
    pub(super) fn is_of_one_point(&self) -> bool {
        matches!(
            self,
            Self::Command { .. }
                | Self::NoFigure { .. }
                | Self::Unsteady { .. }
                | Self::InGuest { .. }
        )
    }
}

impl From<BorrowError> for SweepError {
    fn from(error: BorrowError) -> Self {
        match error {
            BorrowError::Interrupted => Self::Interrupted,
            error => Self::Borrow(error),
        }
    }
}

impl From<FileOperationError> for SweepError {
    fn from(FileOperationError { what, path, source }: FileOperationError) -> Self {
        Self::File { action: what, path, reason: source }
    }
}
