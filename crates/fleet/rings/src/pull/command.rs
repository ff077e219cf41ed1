//! Runs a command and reads what it writes.

use std::io::{self, Read};
use std::ops::ControlFlow;
use std::panic;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use super::PullError;
use super::tar_stream::StreamError;

/// Maximum number of bytes kept of a command's standard error.
const MAX_STDERR_BYTES: u64 = 4096;
/// Interval at which an interrupt is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Runs a command that gets something of `host`, and passes its output to `read`. Returns the result of `read`, and the
/// last line of the command's standard error. `look` is called repeatedly with the bytes that have come, and returns
/// whether to go on. `install` is the next step if the program is missing.
pub(super) fn run<T: Send>(
    mut command: Command,
    install: &str,
    host: &str,
    read: impl FnOnce(CountingReader<'_, ChildStdout>) -> Result<T, StreamError> + Send,
    look: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Result<(T, String), PullError> {
    let remote = |reason: String| PullError::Remote { host: host.to_owned(), reason };
    let program = command.get_program().to_string_lossy().into_owned();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| remote(format!("{program} cannot be run ({error}); {install}")))?;
    let (Some(out), Some(said)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(remote(format!("{program} has no output")));
    };
    let bytes = AtomicU64::new(0);
    let out = CountingReader { out, bytes: &bytes };
    let mut is_interrupted = false;
    let mut wait_for = |child: &mut Child, is_finished: &dyn Fn() -> bool| {
        while !is_finished() {
            if look(bytes.load(Ordering::Relaxed)).is_break() {
                is_interrupted = true;
                end(child);
            }
            thread::sleep(POLL_INTERVAL);
        }
    };
    let (received, said) = thread::scope(|scope| {
        let said = scope.spawn(|| last_line(said));
        let received = scope.spawn(|| read(out));
        wait_for(&mut child, &|| received.is_finished());
        let received = join(received);
        if received.as_ref().is_err_and(|error| !matches!(error, StreamError::Nothing)) {
            end(&mut child);
        }
        wait_for(&mut child, &|| said.is_finished());
        (received, join(said))
    });
    let status = child.wait().map_err(|error| remote(error.to_string()))?;
    // Ctrl-C of a terminal also ends ssh, perhaps first.
    if is_interrupted || look(bytes.load(Ordering::Relaxed)).is_break() {
        return Err(PullError::Interrupted);
    }
    match received {
        // The command's message says more than that nothing came.
        Ok(_) | Err(StreamError::Nothing) if !status.success() => {
            let said = if said.is_empty() { status.to_string() } else { said };
            Err(remote(said))
        }
        Ok(received) => Ok((received, said)),
        Err(reason) => Err(PullError::Stream { host: host.to_owned(), reason }),
    }
}

/// Kills the command, unless it has ended.
fn end(child: &mut Child) {
    let _ = child.kill();
}

/// Joins a thread, and passes its panic on.
fn join<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|reason| panic::resume_unwind(reason))
}

/// Reader that counts its bytes.
pub(super) struct CountingReader<'a, R> {
    out: R,
    bytes: &'a AtomicU64,
}

impl<R: Read> Read for CountingReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.out.read(buffer)?;
        self.bytes.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// Returns the last line without control characters. All is read, so that the writer never blocks.
fn last_line(mut said: impl Read) -> String {
    let mut text = Vec::new();
    let _ = said.by_ref().take(MAX_STDERR_BYTES).read_to_end(&mut text);
    let _ = io::copy(&mut said, &mut io::sink());
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().rfind(|line| !line.trim().is_empty());
    luc_units::plain(line.unwrap_or_default().trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_line_is_repeated_and_harmless() {
        assert_eq!(last_line(&b"one\n\x1b[2Jtwo\n\n"[..]), luc_units::plain("\x1b[2Jtwo"));
        assert_eq!(last_line(&b""[..]), "");
    }
}
