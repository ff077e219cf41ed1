//! Runs a command that writes what is wanted, and takes it.

use std::io::{self, Read};
use std::ops::ControlFlow;
use std::panic;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use super::PullError;
use super::stream::StreamError;

/// How much is kept of what a command on another host says.
const SAID_BYTES: u64 = 4096;
/// How often it is looked whether to end.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// Runs a command that gets something of `host`, and has `read` take what it writes. Returns that, and the last line that
/// the command said. `look` is told many times how many bytes have come, and says whether to go on. `install` says what
/// to do if the program is missing.
pub(super) fn run<T: Send>(
    mut command: Command,
    install: &str,
    host: &str,
    read: impl FnOnce(Counted<'_, ChildStdout>) -> Result<T, StreamError> + Send,
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
    let out = Counted { out, bytes: &bytes };
    let mut is_interrupted = false;
    let mut wait_for = |child: &mut Child, is_finished: &dyn Fn() -> bool| {
        while !is_finished() {
            if look(bytes.load(Ordering::Relaxed)).is_break() {
                is_interrupted = true;
                end(child);
            }
            thread::sleep(LOOK_INTERVAL);
        }
    };
    let (received, said) = thread::scope(|scope| {
        let said = scope.spawn(|| last_line(said));
        let received = scope.spawn(|| read(out));
        wait_for(&mut child, &|| received.is_finished());
        let received = joined(received);
        if received.as_ref().is_err_and(|error| !matches!(error, StreamError::Nothing)) {
            end(&mut child);
        }
        wait_for(&mut child, &|| said.is_finished());
        (received, joined(said))
    });
    let status = child.wait().map_err(|error| remote(error.to_string()))?;
    // Ctrl-C of a terminal ends ssh, too, maybe first.
    if is_interrupted || look(bytes.load(Ordering::Relaxed)).is_break() {
        return Err(PullError::Interrupted);
    }
    match received {
        // What the command says tells more than that nothing came.
        Ok(_) | Err(StreamError::Nothing) if !status.success() => {
            let said = if said.is_empty() { status.to_string() } else { said };
            Err(remote(said))
        }
        Ok(received) => Ok((received, said)),
        Err(reason) => Err(PullError::Stream { host: host.to_owned(), reason }),
    }
}

/// Ends the command, if it has not ended.
fn end(child: &mut Child) {
    let _ = child.kill();
}

/// What a thread returns.
fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|reason| panic::resume_unwind(reason))
}

/// Counts what is read.
pub(super) struct Counted<'a, R> {
    out: R,
    bytes: &'a AtomicU64,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.out.read(buffer)?;
        self.bytes.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// The last line of what is said, made harmless. All of it is read, so that nobody waits.
fn last_line(mut said: impl Read) -> String {
    let mut text = Vec::new();
    let _ = said.by_ref().take(SAID_BYTES).read_to_end(&mut text);
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
