//! Helpers of part `fleet-pools`, whose page's section `[run]` records real servers that hand requests over inside a
//! process. `luc fleet explain` is judged by the names that the requests carry, which the recorder does not see.

pub mod back_end;
pub mod clients;
mod spans;

use std::path::PathBuf;

use luc_harness::error::EvaluateError;
use luc_harness::harness::read_json_as;
use serde_json::{Value, json};

use spans::Spans;

use crate::answer::Answer;
use crate::assigned_calls;
use crate::named::Named;

/// Options of `luc-evaluate judge-pool`: files of one run.
#[derive(Debug, Clone, clap::Args)]
pub struct Files {
    /// Names that clients asked for
    asked: PathBuf,
    /// Names that the back end was called with
    calls: PathBuf,
    /// Output of `luc fleet explain --json --rows`
    answer: PathBuf,
    /// Spans that the server wrote
    spans: Option<PathBuf>,
}

/// Judges whether each call is assigned to its request, and each span.
///
/// # Errors
/// A file that cannot be read.
pub fn judge(files: &Files) -> Result<Value, EvaluateError> {
    let asked: Vec<Named> = read_json_as(&files.asked)?;
    let calls: Vec<Named> = read_json_as(&files.calls)?;
    let answer: Answer = read_json_as(&files.answer)?;
    let mut judged = json!({
        "requests": asked.len(), "counts": assigned_calls::count(&asked, &calls, &answer.rows),
        "lost_rows": answer.lost_rows(),
    });
    if let Some(path) = &files.spans {
        judged["spans"] = json!(Spans::judge(path, &asked, &calls, &answer.rows)?);
    }
    Ok(judged)
}
