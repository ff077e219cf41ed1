//! What can be wrong with a query, and what to do about it.

use std::io;
use std::path::PathBuf;

use datafusion::error::DataFusionError;
use luc_fleet::FleetError;

/// Each operator of a query can be a level of recursion, as can each name and bracket.
pub(crate) const MOST_LEVELS: usize = 1_000;

/// Why a query has no answer.
#[derive(Debug, thiserror::Error)]
pub enum SqlError {
    /// Traces cannot be read or put together.
    #[error(transparent)]
    Fleet(#[from] FleetError),
    /// The query is deeper than the engine's recursions bear.
    #[error(
        "the query has {0} operators, names and brackets, and may have {MOST_LEVELS}; make it shorter, as by a list instead of many conditions"
    )]
    TooLong(usize),
    /// The query is not SQL, or names what is not there.
    #[error("the query: {0}; `luc fleet sql --tables` lists tables and columns")]
    Query(String),
    /// The query would change something.
    #[error("the query: {0}; ask by SELECT, traces are never changed")]
    NotAQuestion(String),
    /// The query needs more memory than it may use.
    #[error("the query: {0}; allow more by --memory, or ask for fewer rows")]
    Memory(String),
    /// The engine cannot answer it.
    #[error(
        "the query: {0}; see whether the files can be read and are complete (`luc fleet explain`)"
    )]
    Engine(String),
    /// The cluster cannot answer it.
    #[error(
        "the cluster at {url}: {reason}; see that its scheduler and executors run, are of this version, and can read the files under the same paths"
    )]
    Cluster { url: String, reason: String },
    /// Executors do not bring the rows.
    #[error(
        "the cluster at {url}: {reason}; executors were lost time and again: see that they keep running and reach each other, then ask anew"
    )]
    Lost { url: String, reason: String },
    /// A directory for files of our own.
    #[error("{path}: {reason}; choose another directory by TMPDIR or --shared", path = .path.display())]
    Directory { path: PathBuf, reason: io::Error },
    /// The answer cannot be written.
    #[error("the output cannot be written: {0}; check the space left")]
    Output(#[from] io::Error),
    /// A server cannot run.
    #[error(
        "the {server} at {address}: {reason}; see that the address is free and the scheduler runs"
    )]
    Server { server: &'static str, address: String, reason: String },
    #[error("interrupted")]
    Interrupted,
}

impl SqlError {
    /// What the engine said, in one line and with the next step.
    #[must_use]
    pub fn of_engine(error: DataFusionError) -> Self {
        let text = line(&error.strip_backtrace());
        match error.find_root() {
            DataFusionError::ResourcesExhausted(_) => Self::Memory(text),
            DataFusionError::SQL(..)
            | DataFusionError::Plan(_)
            | DataFusionError::SchemaError(..)
            | DataFusionError::Diagnostic(..)
            | DataFusionError::Collection(_)
            | DataFusionError::NotImplemented(_) => Self::Query(text),
            _ => Self::Engine(text),
        }
    }
}

/// One line without what only programmers of the engine need.
pub(crate) fn line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut line = words.join(" ");
    for inner in [
        "Error during planning: ",
        "SQL error: ",
        "Schema error: ",
        "This feature is not implemented: ",
        "datafusion.public.",
    ] {
        line = line.replace(inner, "");
    }
    // Its parser's errors are written as its programmers see them.
    if let Some(inner) = line.strip_prefix("ParserError(\"") {
        line = inner.trim_end_matches("\")").replace("\\\"", "\"");
    }
    luc_units::plain(line.trim_end_matches(['.', ' ']))
}
