//! Reasons why a command was not run, or a comparison not made.

use luc_launch::{CommandEnding, LaunchError};
use luc_probe::ProbeError;

/// Reason why a command was not run, or not explained. The text is one line.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Launch(#[from] LaunchError),
    #[error(transparent)]
    Probe(#[from] ProbeError),
    #[error("a signal ended the command; the comparison stops")]
    Killed(CommandEnding),
    #[error("a signal came; the comparison stops")]
    Stopped(CommandEnding),
    #[error("the command had ended before the recorder was ready")]
    TooShort,
    #[error("the recorder works in the host's own namespace of processes alone")]
    Namespace,
    #[error("the recorder did not begin")]
    NoRecorder,
    #[error("no thread can be started: {0}")]
    Thread(std::io::Error),
    #[error("the analysis ended unexpectedly: this is a defect of luc")]
    Analysis,
}
