//! The process that becomes the program: puts itself under the filter and hands the listener over.

use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;

use luc_gate::writeback_errors;
use rustix::io::Errno;

use crate::seccomp_unotify::FLAGS;
use crate::{pass_descriptor, seccomp_filter};

/// The installation of the filter, made ready before the fork.
#[derive(Debug)]
pub struct FilterInstallation {
    program: Vec<libc::sock_filter>,
    keeper: UnixStream,
    /// Whether the program is not to be started without the filter.
    is_required: bool,
    /// Listener of the installed filter, as long as nobody else has it.
    listener: Option<i32>,
}

/// Result of the installation, as a number that fits a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InstallStatus {
    Installed,
    /// The filter is on, and the program and all below it can gain no privileges.
    WithoutPrivileges,
    Refused(Errno),
}

impl InstallStatus {
    pub(crate) fn number(self) -> i32 {
        match self {
            Self::Installed => 0,
            Self::WithoutPrivileges => 1,
            Self::Refused(errno) => -errno.raw_os_error(),
        }
    }

    pub(crate) fn of(number: i32) -> Self {
        match number {
            0 => Self::Installed,
            1.. => Self::WithoutPrivileges,
            errno => Self::Refused(Errno::from_raw_os_error(errno.saturating_neg())),
        }
    }
}

impl FilterInstallation {
    pub(super) fn new(keeper: UnixStream, is_required: bool) -> Self {
        Self { program: seccomp_filter::program(), keeper, is_required, listener: None }
    }

    /// The listener, if the filter is on and nobody took the listener over. The process has to give it to somebody who
    /// answers before it executes a program; else the program's calls fail.
    pub(super) fn left(&self) -> Option<i32> {
        self.listener
    }

    /// Puts this process under the filter and waits until the keeper has the listener: from then on somebody answers
    /// each call. For a forked child before it executes the program: async-signal-safe.
    ///
    /// # Errors
    /// The filter's refusal, if it is required; `EPIPE` if the keeper is gone.
    pub fn install(&mut self) -> io::Result<()> {
        let (status, listener) = self.set_filter();
        self.listener = listener;
        let socket = self.keeper.as_raw_fd();
        pass_descriptor::send(socket, status.number(), listener)?;
        pass_descriptor::receive(socket)?;
        if let Some(listener) = self.listener.take() {
            // SAFETY: this function's own descriptor, not used again.
            unsafe { libc::close(listener) };
            // The keeper answers this call and learns its number. It fails with EBADF.
            // SAFETY: plain numbers.
            unsafe { libc::syscall(libc::SYS_fsync, -1) };
        }
        match status {
            InstallStatus::Refused(errno) if self.is_required => Err(errno.into()),
            _ => Ok(()),
        }
    }

    /// Installs the filter and returns its listener. Without CAP_SYS_ADMIN the kernel demands `no_new_privs`.
    fn set_filter(&self) -> (InstallStatus, Option<i32>) {
        match self.seccomp() {
            Ok(listener) => (InstallStatus::Installed, Some(listener)),
            Err(Errno::ACCESS) => {
                // SAFETY: plain numbers.
                let result = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
                match self.seccomp() {
                    Ok(listener) if result == 0 => {
                        (InstallStatus::WithoutPrivileges, Some(listener))
                    }
                    Ok(listener) => (InstallStatus::Installed, Some(listener)),
                    Err(errno) => (InstallStatus::Refused(errno), None),
                }
            }
            Err(errno) => (InstallStatus::Refused(errno), None),
        }
    }

    fn seccomp(&self) -> Result<i32, Errno> {
        let program = libc::sock_fprog {
            len: self.program.len() as u16,
            filter: self.program.as_ptr().cast_mut(),
        };
        // SAFETY: a program in memory that the kernel copies.
        let listener = unsafe {
            libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                FLAGS,
                &raw const program,
            )
        };
        match i32::try_from(listener) {
            Ok(listener) if listener >= 0 => Ok(listener),
            _ => Err(Errno::from_raw_os_error(writeback_errors::errno())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_survives_its_message() {
        for status in [
            InstallStatus::Installed,
            InstallStatus::WithoutPrivileges,
            InstallStatus::Refused(Errno::BUSY),
        ] {
            assert_eq!(InstallStatus::of(status.number()), status);
        }
    }
}
