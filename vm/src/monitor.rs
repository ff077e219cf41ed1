//! QEMU's monitor (QMP), by which a guest is stopped and goes on.

use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use crate::error::Error;

/// The longest that QEMU may take to answer. On a busy host it is slow.
const PATIENCE: Duration = Duration::from_secs(60);

/// Our end of the monitor.
#[derive(Debug)]
pub(crate) struct Monitor {
    stream: BufReader<UnixStream>,
    /// Whether QEMU knows that commands will come.
    is_open: bool,
}

/// Both ends: ours, and the one that QEMU inherits.
pub(crate) fn pair() -> Result<(Monitor, Arc<OwnedFd>), Error> {
    let system = |source| Error::System { what: "making a socket for QEMU's monitor", source };
    let (ours, theirs) = UnixStream::pair().map_err(system)?;
    ours.set_read_timeout(Some(PATIENCE)).map_err(system)?;
    let monitor = Monitor { stream: BufReader::new(ours), is_open: false };
    Ok((monitor, Arc::new(theirs.into())))
}

/// Has QEMU listen to its end.
pub(crate) fn attach(theirs: &OwnedFd, qemu: &mut Command) {
    let socket = theirs.as_raw_fd();
    qemu.args(["-chardev", &format!("socket,id=monitor,fd={socket}")]);
    qemu.args(["-mon", "chardev=monitor,mode=control"]);
}

impl Monitor {
    /// Has QEMU carry out a command without arguments, and waits until it has.
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
