//! Reasons why a command was not run, or a comparison not made.

use luc_launch::{Ending, LaunchError};
use luc_probe::ProbeError;

/// Reason why a command was not run, or not explained. The text is one line.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// It could not be started.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// It could not be recorded.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// A signal ended the command in the middle of a comparison.
    #[error("a signal ended the command; the comparison stops")]
    Killed(Ending),
    /// A signal asked this process to stop in the middle of a comparison; the ending is by that signal.
    #[error("a signal came; the comparison stops")]
    Stopped(Ending),
    /// The command has ended before it was recorded.
    #[error("the command had ended before the recorder was ready")]
    TooShort,
    /// The recorder sees numbers of processes that are others here.
    #[error("the recorder works in the host's own namespace of processes alone")]
    Namespace,
    /// The recorder's thread is gone.
    #[error("the recorder did not begin")]
    NoRecorder,
    /// The system has no thread left.
    #[error("no thread can be started: {0}")]
    Thread(std::io::Error),
    #[error("the analysis ended unexpectedly: this is a defect of luc")]
    Analysis,
}
