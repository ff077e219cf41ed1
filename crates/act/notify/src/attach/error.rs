//! Reasons why a process is not attached.

use std::io;

use rustix::io::Errno;

/// Reason why a process was not put under the filter. The text is one line; the process goes on as it was.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    #[error(
        "this kernel cannot notify of system calls without restarting them at signals: it takes Linux 5.19, and a sandbox \
         that lets seccomp pass"
    )]
    Kernel,
    #[error("there is no process {0}, or it has ended: name one that `ps` shows")]
    Gone(i32),
    #[error(
        "process {0} is under a filter of system calls, which may end it for what luc would have it do: start it anew, by \
         `luc run`, `luc enable` or `luc oci-profile`"
    )]
    Filtered(i32),
    #[error(
        "process {process} cannot be traced ({reason}): run luc as root, and end a debugger or strace"
    )]
    Denied { process: i32, reason: String },
    #[error("process {0} cannot be given a keeper ({1}): end processes, and try again")]
    NoKeeper(i32, io::Error),
    #[error("process {0} runs 32-bit code: start it anew by `luc run --reach notify`")]
    Narrow(i32),
    #[error(
        "process {0} has no vDSO to make system calls by: start it anew by `luc run --reach notify`"
    )]
    NoInstruction(i32),
    #[error("process {0} did not stop within 5 s, as it waits for a device: try again")]
    Stuck(i32),
    #[error(
        "process {0} may gain privileges, and so may not be under a filter: --no-new-privs takes that from it for ever \
         (sudo, ping, postdrop and the like fail below it)"
    )]
    Privileges(i32),
    #[error(
        "process {process}: the filter was refused ({errno}): start it anew by `luc run --reach notify`"
    )]
    Refused { process: i32, errno: Errno },
}

impl AttachError {
    pub(super) fn denied(process: i32, error: &io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::ESRCH | libc::ENOENT) => Self::Gone(process),
            _ => Self::Denied { process, reason: error.to_string() },
        }
    }
}
