//! `luc attach`: puts a running process under the filter. It hands the process over to `lucd` as a container's
//! runtime hands a container over.

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use serde_json::json;

use crate::containers::container_state::{ATTACHED, kept_by};
use crate::containers::seccomp_profile::SOCKET;
use crate::{ServiceError, systemctl};

/// Time that `lucd` may take to serve a process. All calls pass before.
const SERVE_TIMEOUT: Duration = Duration::from_secs(10);

/// Puts a process under the filter and has `lucd` serve it. Returns its name for `luc status`. Once begun, neither a
/// signal nor a closed terminal stops it.
///
/// # Errors
/// [`ServiceError`]; unless it says that `lucd` does not serve it, the process goes on as it was.
pub fn attach(process: u32, no_new_privs: bool) -> Result<String, ServiceError> {
    systemctl::check()?;
    if !rustix::process::geteuid().is_root() {
        return Err(ServiceError::NotRoot);
    }
    // First: without it nobody would answer.
    let connection =
        UnixStream::connect(SOCKET).map_err(|error| ServiceError::NoSocket(error.to_string()))?;
    begin(&connection, process, no_new_privs)
}

#[cfg(target_arch = "x86_64")]
fn begin(
    connection: &UnixStream,
    process: u32,
    no_new_privs: bool,
) -> Result<String, ServiceError> {
    const DONE: &str = "done";
    let name = format!("pid-{process}");
    let done = luc_notify::attach::apart(|| {
        let handed_over = hand_over(connection, &name, process, no_new_privs);
        handed_over.map_or_else(|error| error.to_string(), |()| DONE.to_owned())
    });
    match done {
        Ok(Some(text)) if text == DONE => Ok(name),
        Ok(Some(text)) => Err(ServiceError::NotAttached(text)),
        Ok(None) => Err(ServiceError::NotAttached(format!(
            "process {process}: luc was killed while it attached it: restart the process if it has ended or its fsync fails"
        ))),
        Err(error) => Err(ServiceError::NotAttached(format!(
            "process {process} is not attached, as luc cannot start a process ({error}): end some, and try again"
        ))),
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn begin(
    _connection: &UnixStream,
    process: u32,
    _no_new_privs: bool,
) -> Result<String, ServiceError> {
    Err(ServiceError::NotAttached(format!(
        "process {process}: luc attaches on x86-64 only: start it anew by `luc run --reach notify`"
    )))
}

/// Attaches a process and hands it over to `lucd`. If `lucd` does not serve it, a keeper goes on to let its calls pass.
#[cfg(target_arch = "x86_64")]
fn hand_over(
    connection: &UnixStream,
    name: &str,
    process: u32,
    no_new_privs: bool,
) -> Result<(), ServiceError> {
    let attached = luc_notify::attach::attach(process, no_new_privs)
        .map_err(|error| ServiceError::NotAttached(error.to_string()))?;
    let state = json!({
        "ociVersion": "1.0.0", "fds": ["seccompFd"], "pid": process, "metadata": ATTACHED,
        "state": { "id": name, "status": "running", "pid": process, "bundle": "" },
    });
    let sent = send(connection, &state.to_string(), attached.listener());
    sent.map_err(|errno| ServiceError::NotServed(name.to_owned(), errno.to_string()))?;
    let begun = Instant::now();
    while !kept_by(systemctl::lucd()?).iter().any(|one| one.id == name) {
        if attached.is_over() {
            let reason = "the process has ended".to_owned();
            return Err(ServiceError::NotServed(name.to_owned(), reason));
        }
        if begun.elapsed() > SERVE_TIMEOUT {
            let reason = "it took more than 10 s".to_owned();
            return Err(ServiceError::NotServed(name.to_owned(), reason));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    attached.is_served();
    Ok(())
}

/// Sends a text with a descriptor.
fn send(connection: &UnixStream, text: &str, file: &OwnedFd) -> Result<(), rustix::io::Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let files = [file.as_fd()];
    control.push(SendAncillaryMessage::ScmRights(&files));
    let parts = [IoSlice::new(text.as_bytes())];
    sendmsg(connection, &parts, &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}
