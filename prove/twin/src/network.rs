//! Network namespaces without names. Each lives as long as the process that made it, so nothing of it stays.

use std::net::Ipv4Addr;

use luc_network::NetworkError;
use rustix::thread::{UnshareFlags, unshare_unsafe};

use crate::error::TwinError;

/// Moves the calling thread, and all threads that it starts later, into a new network namespace.
pub(crate) fn enter_new() -> Result<(), TwinError> {
    // SAFETY: without UnshareFlags::FILES no file descriptor is affected.
    let result = unsafe { unshare_unsafe(UnshareFlags::NEWNET) };
    result.map_err(|errno| match errno {
        rustix::io::Errno::PERM => TwinError::Unable {
            what: "making a network namespace".into(),
            why: "root may; run it by sudo".into(),
        },
        errno => TwinError::system("making a network namespace")(errno),
    })
}

/// Returns the address of a host, which only the namespaces of its run see.
pub(crate) fn address(host: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 0, host)
}

impl From<NetworkError> for TwinError {
    fn from(error: NetworkError) -> Self {
        match error {
            NetworkError::Run { command, reason } => {
                Self::System { what: format!("running {command}"), source: reason }
            }
            NetworkError::Failed { command, said, .. } => Self::Unable { what: command, why: said },
        }
    }
}
