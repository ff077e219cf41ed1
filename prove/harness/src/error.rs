//! Errors of an evaluation.

use std::error::Error;
use std::io;
use std::path::PathBuf;

/// An error that ends an evaluation.
#[derive(Debug, thiserror::Error)]
pub enum EvaluateError {
    /// Emulated disks need root.
    #[error("the evaluation makes emulated disks, which needs root: run it with sudo")]
    Root,
    #[error(
        "interrupted; its disks are removed; the same command goes on where a plan was, the runs of other parts are in \
         raw/*.partial.json"
    )]
    Interrupted,
    /// A file or a program.
    #[error("cannot {what} {path}: {reason}", path = .path.display())]
    File { what: &'static str, path: PathBuf, reason: io::Error },
    #[error("`{command}` failed ({how}): {said}")]
    Command {
        command: String,
        how: String,
        /// The end of its standard error.
        said: String,
    },
    #[error(transparent)]
    Vm(#[from] luc_vm::Error),
    #[error(transparent)]
    Sweep(#[from] luc_sweep::SweepError),
    /// A program's JSON lacks a figure.
    #[error("{what} is missing in what luc reported: build luc and luc-evaluate from one source")]
    Missing { what: String },
    /// The claims about a plan, or its raw data.
    #[error(transparent)]
    Claims(Box<dyn Error + Send + Sync>),
    /// An option that a plan does not take.
    #[error(
        "{option} does not go with {part}, whose plan has it: leave it out, or change a copy of prove/plans/{part}.toml and \
         run `luc sweep`"
    )]
    OfPlan { part: &'static str, option: &'static str },
    /// An interrupted sweep whose figures are another program's.
    #[error(
        "{folder} holds repeats of {part} that another build of luc made: remove it to measure anew, or build that luc \
         to go on", folder = .folder.display()
    )]
    OtherBuild { part: &'static str, folder: PathBuf },
    #[error("{0}")]
    Trace(#[source] Box<luc_events::store::StoreError>),
    /// The budget was spent before anything was measured.
    #[error("nothing was measured within --budget; give it some minutes")]
    NoTime,
    /// The section `[run]` of a part's page.
    #[error("[run] of prove/parts/{part}.toml is wrong: {reason}")]
    Run { part: &'static str, reason: String },
    /// No cell is left.
    #[error("no cell's name contains '{0}'; the cells are named in the tables of docs/evaluation")]
    NoCell(String),
}

impl EvaluateError {
    /// Returns a function for `map_err` of an operation on a file.
    pub fn file(what: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |reason| Self::File { what, path, reason }
    }
}
