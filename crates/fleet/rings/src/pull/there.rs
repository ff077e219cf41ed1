//! Runs luc-fleet on another host, by ssh.

use std::ops::ControlFlow;
use std::process::{ChildStdout, Command};

use super::PullError;
use super::command::{self, Counted};
use super::stream::StreamError;

/// Runs `luc-fleet WORDS` there, as [`command::run`] runs a command. `options` are ssh's.
pub(super) fn run<T: Send>(
    (options, host): (&[&str], &str),
    words: &[&str],
    read: impl FnOnce(Counted<'_, ChildStdout>) -> Result<T, StreamError> + Send,
    look: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Result<(T, String), PullError> {
    let mut ssh = Command::new("ssh");
    ssh.args(options).args([host, "--", "luc-fleet"]).args(words);
    command::run(ssh, "install it", host, read, look)
}
