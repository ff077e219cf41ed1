//! `luc attach`: a process that runs already is put under the filter, and handed over to `lucd` as a container's runtime
//! hands a container over.

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use serde_json::json;

use crate::containers::profile::SOCKET;
use crate::containers::state::{ATTACHED, kept_by};
use crate::{ServiceError, systemctl};

/// How long `lucd` may take to serve it. All calls pass before.
const PATIENCE: Duration = Duration::from_secs(10);

/// Puts a process under the filter and has `lucd` serve it; its name for `luc status`.
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
    let listener = listener_of(process, no_new_privs)?;
    let name = format!("pid-{process}");
    let state = json!({
        "ociVersion": "1.0.0", "fds": ["seccompFd"], "pid": process, "metadata": ATTACHED,
        "state": { "id": name, "status": "running", "pid": process, "bundle": "" },
    });
    let sent = send(&connection, &state.to_string(), &listener);
    sent.map_err(|errno| ServiceError::NotServed(name.clone(), errno.to_string()))?;
    let begun = Instant::now();
    while !kept_by(systemctl::lucd()?).iter().any(|one| one.id == name) {
        if begun.elapsed() > PATIENCE {
            let reason = "it took more than 10 s".to_owned();
            return Err(ServiceError::NotServed(name, reason));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(name)
}

#[cfg(target_arch = "x86_64")]
fn listener_of(process: u32, no_new_privs: bool) -> Result<OwnedFd, ServiceError> {
    luc_notify::attach::attach(process, no_new_privs)
        .map_err(|error| ServiceError::NotAttached(error.to_string()))
}

#[cfg(not(target_arch = "x86_64"))]
fn listener_of(process: u32, _no_new_privs: bool) -> Result<OwnedFd, ServiceError> {
    Err(ServiceError::NotAttached(format!(
        "process {process}: luc attaches on x86-64 only: start it anew by `luc run --reach notify`"
    )))
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
