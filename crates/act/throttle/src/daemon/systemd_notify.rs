//! Notifies systemd of the daemon's state (sd_notify(3)).

use std::env;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;

use rustix::net::{AddressFamily, SendFlags, SocketAddrUnix, SocketType, sendto, socket};

/// Connection to systemd, if it has started this process and wants notifications.
#[derive(Debug)]
pub(super) struct SystemdNotifier {
    socket: Option<OsString>,
}

impl SystemdNotifier {
    pub(super) fn from_environment() -> Self {
        Self { socket: env::var_os("NOTIFY_SOCKET") }
    }

    pub(super) fn ready(&self) {
        self.send(b"READY=1");
    }

    pub(super) fn alive(&self) {
        self.send(b"WATCHDOG=1");
    }

    pub(super) fn stopping(&self) {
        self.send(b"STOPPING=1");
    }

    /// Sends a state. Without a receiver this does nothing.
    fn send(&self, state: &[u8]) {
        let Some(name) = &self.socket else {
            return;
        };
        let address = match name.as_bytes().strip_prefix(b"@") {
            Some(name) => SocketAddrUnix::new_abstract_name(name),
            None => SocketAddrUnix::new(name.as_os_str()),
        };
        if let (Ok(address), Ok(socket)) =
            (address, socket(AddressFamily::UNIX, SocketType::DGRAM, None))
        {
            let _ = sendto(&socket, state, SendFlags::NOSIGNAL, &address);
        }
    }
}
