//! Reads acknowledgements, up to the cut and not after.

use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};
use std::process::ChildStdout;
use std::time::{Duration, Instant};

use luc_host::interrupt_flag::interrupted;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use super::durability_check::{Acknowledgements, FileFingerprint};
use super::error::PowercutError;

/// Clients that have acknowledged nothing by then are given up.
const ACK_TIMEOUT: Duration = Duration::from_secs(30);
const MAX_LINE_BYTES: usize = 16 << 10;

/// The clients' standard output.
pub(super) struct Acks<'a> {
    pipe: ChildStdout,
    /// Directory of a command's relative paths; `None` for LUC's clients.
    paths_in: Option<&'a Path>,
    program: &'a str,
    partial: Vec<u8>,
}

/// The end of reading.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AcksEnd {
    /// The time of the cut has come.
    Due,
    /// The clients closed their output.
    Closed,
}

impl<'a> Acks<'a> {
    /// Reads from `pipe`; `paths_in` for lines that are paths in that directory.
    pub(super) fn new(
        pipe: ChildStdout,
        paths_in: Option<&'a Path>,
        program: &'a str,
    ) -> io::Result<Self> {
        let flags = fcntl_getfl(&pipe)?;
        fcntl_setfl(&pipe, flags | OFlags::NONBLOCK)?;
        Ok(Self { pipe, paths_in, program, partial: Vec::new() })
    }

    /// Collects acknowledgements until `after` has passed since the first. Lines still in the pipe then are taken as
    /// well, since they were written before the cut that follows.
    pub(super) fn collect(
        &mut self,
        after: Duration,
        acknowledged: &mut Acknowledgements,
    ) -> Result<AcksEnd, PowercutError> {
        let mut due = None;
        let given_up = Instant::now() + ACK_TIMEOUT;
        loop {
            let now = Instant::now();
            if interrupted() {
                return Err(PowercutError::Interrupted);
            }
            if due.is_some_and(|due| now >= due) {
                self.take(acknowledged)?;
                return Ok(AcksEnd::Due);
            }
            if due.is_none() && now >= given_up {
                return Err(PowercutError::Silent {
                    program: self.program.to_owned(),
                    seconds: ACK_TIMEOUT.as_secs(),
                });
            }
            let wait = due.unwrap_or(given_up).saturating_duration_since(now);
            self.wait(wait.min(Duration::from_millis(100)))?;
            if self.take(acknowledged)? == AcksEnd::Closed {
                return Ok(AcksEnd::Closed);
            }
            if due.is_none() && acknowledged.count > 0 {
                due = Some(Instant::now() + after);
            }
        }
    }

    fn wait(&self, time: Duration) -> Result<(), PowercutError> {
        let time = Timespec { tv_sec: 0, tv_nsec: time.as_nanos() as i64 };
        match poll(&mut [PollFd::new(&self.pipe, PollFlags::IN)], Some(&time)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(errno) => Err(self.pipe_error(errno.into())),
        }
    }

    /// Takes the content of the pipe: at most its capacity, so that a fast writer cannot delay the cut.
    fn take(&mut self, acknowledged: &mut Acknowledgements) -> Result<AcksEnd, PowercutError> {
        let mut buffer = [0; 64 << 10];
        match self.pipe.read(&mut buffer) {
            Ok(0) => return Ok(AcksEnd::Closed),
            Ok(length) => self.partial.extend_from_slice(&buffer[..length]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(AcksEnd::Due),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(AcksEnd::Due),
            Err(error) => return Err(self.pipe_error(error)),
        }
        let data = std::mem::take(&mut self.partial);
        let mut rest = &data[..];
        while let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
            self.line(&rest[..end], acknowledged)?;
            rest = &rest[end + 1..];
        }
        if rest.len() > MAX_LINE_BYTES {
            let line = &rest[..40];
            return Err(self.path_error(line, "the line is longer than any path".to_owned()));
        }
        self.partial = rest.to_vec();
        Ok(AcksEnd::Due)
    }

    fn line(&self, line: &[u8], acknowledged: &mut Acknowledgements) -> Result<(), PowercutError> {
        let Some(dir) = self.paths_in else {
            if let Some((client, step)) = parse(line) {
                acknowledged.steps.insert(client, step);
                acknowledged.count += 1;
            }
            return Ok(());
        };
        let path = below(dir, line).map_err(|reason| self.path_error(line, reason))?;
        let contents = std::fs::read(dir.join(&path))
            .map_err(|error| self.path_error(line, error.to_string()))?;
        acknowledged.files.insert(path, FileFingerprint::of(&contents));
        acknowledged.count += 1;
        Ok(())
    }

    fn path_error(&self, line: &[u8], reason: String) -> PowercutError {
        let line = String::from_utf8_lossy(line).into_owned();
        PowercutError::Path { program: self.program.to_owned(), line, reason }
    }

    fn pipe_error(&self, reason: io::Error) -> PowercutError {
        PowercutError::Io { path: self.program.into(), what: "reading its output", reason }
    }
}

/// Parses `ack CLIENT STEP`; anything else is no acknowledgement.
fn parse(line: &[u8]) -> Option<(u32, u32)> {
    let (client, step) = std::str::from_utf8(line).ok()?.strip_prefix("ack ")?.split_once(' ')?;
    Some((client.parse().ok()?, step.parse().ok()?))
}

/// Returns the path in a line, relative to `dir`, in which it must be.
fn below(dir: &Path, line: &[u8]) -> Result<PathBuf, String> {
    use std::os::unix::ffi::OsStrExt as _;
    let path = Path::new(std::ffi::OsStr::from_bytes(line));
    let path = path.strip_prefix(dir).unwrap_or(path);
    let inside =
        path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if path.as_os_str().is_empty() || !inside {
        return Err("it is not a path below the directory under trial".to_owned());
    }
    Ok(path.to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lines() {
        assert_eq!(parse(b"ack 3 17"), Some((3, 17)));
        for line in ["", "ack", "ack 3", "ack 3 17 1", "nack 3 17", "ack -1 2", "ack 99999999999 1"]
        {
            assert_eq!(parse(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn paths_stay_below() {
        let dir = Path::new("/mnt/x");
        for (line, path) in [("a", "a"), ("./a/b", "./a/b"), ("/mnt/x/a", "a")] {
            assert_eq!(below(dir, line.as_bytes()), Ok(PathBuf::from(path)));
        }
        for line in ["", "/etc/passwd", "../a", "a/../../b", "/mnt/x"] {
            assert!(below(dir, line.as_bytes()).is_err(), "{line}");
        }
    }

    proptest! {
        #[test]
        fn any_line_is_answered(line in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = parse(&line);
            let _ = below(Path::new("/mnt"), &line);
        }
    }
}
