//! QEMU's monitor (QMP), by which a guest is paused and resumed.

use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use crate::error::Error;

/// Maximum time for an answer of QEMU's, which is slow on a busy host.
const REPLY_TIMEOUT: Duration = Duration::from_secs(60);

/// Connection to QEMU's monitor.
#[derive(Debug)]
pub(crate) struct QemuMonitor {
    stream: BufReader<UnixStream>,
    /// Whether capabilities have been negotiated, so that QEMU accepts commands.
    is_open: bool,
}

/// Makes both ends: ours, and the one that QEMU inherits.
pub(crate) fn pair() -> Result<(QemuMonitor, Arc<OwnedFd>), Error> {
    let system = |source| Error::System { what: "making a socket for QEMU's monitor", source };
    let (ours, theirs) = UnixStream::pair().map_err(system)?;
    ours.set_read_timeout(Some(REPLY_TIMEOUT)).map_err(system)?;
    let monitor = QemuMonitor { stream: BufReader::new(ours), is_open: false };
    Ok((monitor, Arc::new(theirs.into())))
}

/// Connects QEMU to its end.
pub(crate) fn attach(theirs: &OwnedFd, qemu: &mut Command) {
    let socket = theirs.as_raw_fd();
    qemu.args(["-chardev", &format!("socket,id=monitor,fd={socket}")]);
    qemu.args(["-mon", "chardev=monitor,mode=control"]);
}

impl QemuMonitor {
    /// Executes a command without arguments, and waits until it is done.
    pub(crate) fn execute(&mut self, command: &'static str) -> Result<(), Error> {
        if !self.is_open {
            self.ask("qmp_capabilities")?;
            self.is_open = true;
        }
        self.ask(command)
    }

    fn ask(&mut self, command: &'static str) -> Result<(), Error> {
        let failed = |source| Error::System { what: "talking to QEMU's monitor", source };
        let line = format!("{{\"execute\":\"{command}\"}}\n");
        self.stream.get_mut().write_all(line.as_bytes()).map_err(failed)?;
        loop {
            let mut line = String::new();
            if self.stream.read_line(&mut line).map_err(failed)? == 0 {
                return Err(failed(io::ErrorKind::UnexpectedEof.into()));
            }
            if line.starts_with("{\"return\"") {
                return Ok(());
            }
            // All other lines are greetings and events.
            if line.starts_with("{\"error\"") {
                return Err(Error::Command {
                    command: format!("QEMU's {command}"),
                    reason: line.trim().to_owned(),
                });
            }
        }
    }
}
