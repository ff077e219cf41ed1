//! Runs luc-fleet on another host, by ssh.

use std::ops::ControlFlow;
use std::process::{ChildStdout, Command};

use super::PullError;
use super::command::{self, CountingReader};
use super::tar_stream::StreamError;

/// Host, and the options with which ssh reaches it.
#[derive(Clone, Copy)]
pub(super) struct Ssh<'s> {
    pub(super) host: &'s str,
    pub(super) options: &'s [&'s str],
}

/// Runs `luc-fleet WORDS` on a host like [`command::run`].
pub(super) fn run<T: Send>(
    Ssh { host, options }: Ssh<'_>,
    words: &[&str],
    read: impl FnOnce(CountingReader<'_, ChildStdout>) -> Result<T, StreamError> + Send,
    look: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Result<(T, String), PullError> {
    let mut ssh = Command::new("ssh");
    ssh.args(options).args([host, "--", "luc-fleet"]).args(words);
    command::run(ssh, "install it", host, read, look)
}
