//! Filebench's workload language: its `.f` files, run unchanged, and traces turned into that language
//! ([`trace_to_workload`]).
//!
//! `lex` and `parse` make commands of a text, `resolve` a plan of the commands: variables looked up,
//! references resolved, composites written out, mistakes refused before anything is touched. `fileset_tree` makes
//! the filesets, `workload_run` runs the plan, a `flowop_worker` per thread, whose calls are in `flowop`.
//!
//! # From a file to figures
//!
//! 1. `lex` and `parse` make commands (`ast`) of the text; `diagnostic` says what is wrong and where.
//! 2. `resolve` makes a `plan` of the commands, with composites written out.
//! 3. `setup_actions` runs the commands that come before the run; `fileset_tree` makes the filesets.
//! 4. `workload_run` starts the clients and adds up. Each is a `flowop_worker` with its `descriptor_table` of open
//!    files.
//!
//! `flowop` has the calls, `client_waits` the semaphores, `event_generator` the event generator, `aio` the asynchronous
//! writes. `drawn_numbers` draws numbers; `client_totals` is what limits and ends count. `docs/reference/filebench.md`
//! describes the language and its quirks.

mod aio;
mod ast;
mod client_totals;
mod client_waits;
mod descriptor_table;
mod diagnostic;
mod drawn_numbers;
mod event_generator;
mod file_syscalls;
mod fileset_tree;
mod flowop;
mod flowop_worker;
mod language_words;
mod lex;
mod parse;
pub mod personality_reference;
mod plan;
mod resolve;
mod setup_actions;
mod stock_workloads;
pub mod trace_to_workload;
mod workload_run;

use std::fs;
use std::io;
use std::path::Path;

use luc_stats::seeded_random;

pub use diagnostic::{Diagnostic, TextPosition};
pub use stock_workloads::{stock, stock_names};
pub use workload_run::{DrawnValues, FilebenchOptions, FilebenchReport, OperationBytes};

use ast::AstValue;
use luc_workload::error::BenchError;

/// Draws of a random size whose mean is taken.
const SIZE_DRAWS: u32 = 1000;

#[derive(Debug, thiserror::Error)]
pub enum FilebenchError {
    #[error(
        "{file}: cannot read this workload: {reason}; give a file, or one of: {}",
        stock_workloads::list_names()
    )]
    Unreadable { file: String, reason: io::Error },
    #[error("{file}:{diagnostic}")]
    Diagnostic { file: String, diagnostic: Diagnostic },
    #[error("--set '{given}': not a variable; write name=value, as in nfiles=100 or filesize=16k")]
    Variable { given: String },
    #[error("{file}: {why}")]
    Run { file: String, why: String },
    #[error(transparent)]
    Bench(#[from] BenchError),
}

/// A workload file, ready to run.
#[derive(Debug)]
pub struct WorkloadFile {
    file: String,
    plan: plan::WorkloadPlan,
}

impl WorkloadFile {
    /// Reads the file at `file`, or one of the stock workloads of that name. `set` holds `name=value`
    /// pairs that win over the file's.
    ///
    /// # Errors
    /// [`FilebenchError`]: unreadable or wrong; nothing has been touched.
    pub fn load(file: &str, set: &[String]) -> Result<Self, FilebenchError> {
        Self::parse(file, &text(file)?, set)
    }

    /// Parses the workload of `text`, which is called `file` in errors.
    ///
    /// # Errors
    /// [`FilebenchError`]: wrong.
    pub fn parse(file: &str, text: &str, set: &[String]) -> Result<Self, FilebenchError> {
        let given = set.iter().map(|pair| variable(pair)).collect::<Result<Vec<_>, _>>()?;
        let plan =
            parse::parse(text).and_then(|commands| resolve::resolve(&commands, &given)).map_err(
                |diagnostic| FilebenchError::Diagnostic { file: file.to_owned(), diagnostic },
            )?;
        Ok(Self { file: file.to_owned(), plan })
    }

    #[must_use]
    pub fn clients(&self) -> usize {
        self.plan.clients.len()
    }

    /// Returns the first command that the file has the shell run (`system`), with its line.
    #[must_use]
    pub fn first_command(&self) -> Option<(u32, String)> {
        self.plan.before.iter().find_map(|step| match step {
            plan::SetupAction::System(at, text) => Some((at.line, text.shown(Path::new("DIR")))),
            _ => None,
        })
    }

    /// Returns whether it is one of luc's own workloads.
    #[must_use]
    pub fn is_stock(&self) -> bool {
        !Path::new(&self.file).is_file()
    }

    /// Returns whether it ends when its threads are done, and not by a time.
    #[must_use]
    pub fn ends_by_itself(&self) -> bool {
        self.plan.seconds.is_none() && self.plan.mode != ast::RunEndRule::Timeout
    }

    /// Returns bytes of the files that the workload has when all of them exist, on average.
    #[must_use]
    pub fn bytes(&self) -> f64 {
        let mut random = seeded_random::stream(1, 0);
        let mean = |size: &drawn_numbers::WorkloadNumber| {
            let sum: f64 = (0..SIZE_DRAWS).map(|_| size.next(&mut random) as f64).sum();
            sum / f64::from(SIZE_DRAWS)
        };
        let sizes = self.plan.filesets.iter().map(|files| &files.size).map(mean);
        let counts = self.plan.filesets.iter().map(|files| files.entries as f64);
        sizes.zip(counts).map(|(size, count)| size * count).sum()
    }
}

/// Returns the text of the file at `file`, or of the stock workload of that name.
///
/// # Errors
/// [`FilebenchError::Unreadable`].
pub fn text(file: &str) -> Result<String, FilebenchError> {
    match stock(file) {
        Some(text) => Ok(text.to_owned()),
        None => fs::read_to_string(file)
            .map_err(|reason| FilebenchError::Unreadable { file: file.to_owned(), reason }),
    }
}

/// Parses `name=value` as the language reads it.
fn variable(given: &str) -> Result<(String, AstValue), FilebenchError> {
    let bad = || FilebenchError::Variable { given: given.to_owned() };
    let (name, value) = given.trim_start_matches('$').split_once('=').ok_or_else(bad)?;
    let mut letters = name.chars();
    let named = letters.next().is_some_and(|first| first.is_ascii_alphabetic());
    if !named
        || value.is_empty()
        || !letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
    {
        return Err(bad());
    }
    let value = match lex::tokens(value).ok().and_then(|tokens| tokens.into_iter().next()) {
        Some(lex::LexToken { kind: lex::TokenKind::Integer(number), .. }) => {
            AstValue::Integer(number)
        }
        _ => match value {
            "true" => AstValue::Boolean(true),
            "false" => AstValue::Boolean(false),
            text => AstValue::Text(text.to_owned()),
        },
    };
    Ok((name.to_owned(), value))
}

#[cfg(test)]
mod tests;
