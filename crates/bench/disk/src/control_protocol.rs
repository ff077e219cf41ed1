//! Protocol with a disk's daemon: one line of JSON each way over a unix socket.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::disk_spec::DiskStats;
use crate::injected_fault::{FaultSpec, FaultStatus};
use crate::volatile_cache::CutReport;

/// The socket's name in the state directory.
pub(crate) const SOCKET_NAME: &str = "control.sock";
/// A line longer than this is no request.
const MAX_LINE_BYTES: u64 = 256 << 10;

/// Request to a disk's daemon over its control socket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "lowercase")]
pub(crate) enum ControlRequest {
    /// Preparation is over: keep time from now on.
    Begin,
    /// Asks whether the power is cut, and whether requests fail.
    Status,
    Stats,
    Cut {
        seed: Option<u64>,
    },
    Restore,
    Fail(FaultSpec),
    /// Let none fail any more.
    Clear,
    /// Take no more time: the disk is being removed.
    Hurry,
}

/// Reply of a disk's daemon over its control socket.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "lowercase")]
pub(crate) enum ControlReply {
    Done,
    Status {
        cut: bool,
        fault: Option<FaultStatus>,
    },
    /// The current or last fault and its counters, if there was one.
    Fault {
        fault: Option<FaultStatus>,
    },
    Stats(DiskStats),
    Cut(CutReport),
    /// A cut of a disk that is cut, or a restore of one that is not.
    AlreadySo,
    Malformed,
}

/// Asks the daemon whose state directory is `dir`.
///
/// # Errors
/// Nobody listens, or no well-formed answer came within `timeout`.
pub(crate) fn ask(dir: &Path, ask: ControlRequest, timeout: Duration) -> io::Result<ControlReply> {
    let mut stream = in_directory(dir, UnixStream::connect)?;
    stream.set_read_timeout(Some(timeout))?;
    stream.set_write_timeout(Some(timeout))?;
    write_line(&mut stream, &ask)?;
    let mut line = String::new();
    BufReader::new(stream.take(MAX_LINE_BYTES)).read_line(&mut line)?;
    serde_json::from_str(&line).map_err(io::Error::from)
}

/// Listens in `dir`, whose path may be longer than a socket address holds.
///
/// # Errors
/// The socket cannot be made.
pub(crate) fn listen(dir: &Path) -> io::Result<UnixListener> {
    in_directory(dir, UnixListener::bind)
}

/// Answers everybody in turn, for ever.
pub(crate) fn serve(
    listener: &UnixListener,
    mut answer: impl FnMut(ControlRequest) -> ControlReply,
) {
    for stream in listener.incoming().flatten() {
        // A client that hangs or disconnects does not concern the others.
        let _ = serve_one(stream, &mut answer);
    }
}

fn serve_one(
    stream: UnixStream,
    answer: &mut impl FnMut(ControlRequest) -> ControlReply,
) -> io::Result<()> {
    let timeout = Some(Duration::from_secs(1));
    stream.set_read_timeout(timeout)?;
    stream.set_write_timeout(timeout)?;
    let mut line = String::new();
    BufReader::new((&stream).take(MAX_LINE_BYTES)).read_line(&mut line)?;
    let reply = serde_json::from_str(&line).map_or(ControlReply::Malformed, answer);
    write_line(&mut &stream, &reply)
}

fn write_line(to: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    to.write_all(&line)
}

fn in_directory<T>(dir: &Path, use_path: impl FnOnce(PathBuf) -> io::Result<T>) -> io::Result<T> {
    let dir = std::fs::File::open(dir)?;
    use_path(PathBuf::from(format!("/proc/self/fd/{}/{SOCKET_NAME}", dir.as_raw_fd())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asks_and_answers_over_a_long_path() {
        let root = tempfile::tempdir().expect("a directory");
        let dir = root.path().join("d".repeat(120));
        std::fs::create_dir(&dir).expect("made");
        let listener = listen(&dir).expect("listens");
        std::thread::spawn(move || {
            serve(&listener, |ask| match ask {
                ControlRequest::Cut { seed: Some(u64::MAX) } => {
                    ControlReply::Cut(CutReport { lost_sectors: 3, ..CutReport::default() })
                }
                _ => ControlReply::AlreadySo,
            });
        });
        let second = Duration::from_secs(1);
        let answer =
            ask(&dir, ControlRequest::Cut { seed: Some(u64::MAX) }, second).expect("answers");
        assert_eq!(
            answer,
            ControlReply::Cut(CutReport { lost_sectors: 3, ..CutReport::default() })
        );
        assert_eq!(
            ask(&dir, ControlRequest::Stats, second).expect("answers"),
            ControlReply::AlreadySo
        );
    }
}
