//! The begin and the end of a program: its words, and its exit status.

use std::env;
use std::error::Error;
use std::io;
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;
use luc_units::{is_steering, plain, text_output};

use crate::command_line_mistake::mistake;

/// Exit status of a program that the input or the machine does not allow.
const FAILURE: u8 = 2;

/// Text that standard output has refused.
#[derive(Debug, thiserror::Error)]
#[error("standard output: {0}")]
struct Unwritten(#[from] io::Error);

/// A command line that names nothing to do: a mistake, or help that was asked for.
#[derive(Debug)]
pub struct ParseRefusal {
    program: String,
    reason: Reason,
}

#[derive(Debug)]
enum Reason {
    /// Help or the version, for standard output; help that a command without words deserves, for standard error.
    Help(clap::Error),
    /// One line that ends with the next step.
    Mistake(String),
}

/// Reads this process' command line.
///
/// # Errors
/// A [`ParseRefusal`] that `main` reports instead of doing anything.
pub fn parse<P: Parser>() -> Result<P, ParseRefusal> {
    P::try_parse().map_err(|error| {
        let command = P::command();
        let program = command.get_name().to_owned();
        let reason = match error.kind() {
            ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => Reason::Help(error),
            _ => Reason::Mistake(mistake(&error, &command, env::args_os())),
        };
        ParseRefusal { program, reason }
    })
}

impl ParseRefusal {
    /// Prints the help, or the mistake in one line, and returns the exit status.
    #[must_use]
    pub fn report(&self) -> ExitCode {
        match &self.reason {
            Reason::Mistake(line) => {
                eprintln!("{}: {}", self.program, plain(line));
                ExitCode::from(FAILURE)
            }
            Reason::Help(help) => match help.print() {
                Ok(()) => {
                    let status = u8::try_from(help.exit_code()).unwrap_or(FAILURE);
                    finish(&self.program, ExitCode::from(status))
                }
                Err(error) => fail(&self.program, &Unwritten(error)),
            },
        }
    }
}

/// Returns the status of a program that has done its work, unless standard output refuses what is left for it.
#[must_use]
pub fn finish(program: &str, status: ExitCode) -> ExitCode {
    match text_output::finish() {
        Ok(()) => status,
        Err(error) => fail(program, &Unwritten(error)),
    }
}

/// Prints why a program has failed, and returns its exit status. A reader that has gone is no failure.
#[must_use]
pub fn fail(program: &str, error: &(dyn Error + 'static)) -> ExitCode {
    // The error says more than what becomes of the output before it.
    let _ = text_output::finish();
    if text_output::is_reader_gone(error) {
        return ExitCode::SUCCESS;
    }
    // The log of a guest has lines.
    let shown = |&c: &char| c == '\n' || !is_steering(c);
    let text: String = describe(error).chars().filter(shown).collect();
    eprintln!("{program}: {text}");
    ExitCode::from(FAILURE)
}

/// Joins an error and its causes. Most errors of the libraries contain their cause's text, which is not repeated.
fn describe(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let words = error.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Outer {
        text: &'static str,
        source: io::Error,
    }

    #[test]
    fn a_cause_is_told_once() {
        let outer = |text| Outer { text, source: io::Error::other("disk full") };
        assert_eq!(describe(&outer("cannot write")), "cannot write: disk full");
        assert_eq!(describe(&outer("disk full; remove a file")), "disk full; remove a file");
    }
}
