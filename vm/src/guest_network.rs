//! Networks between guests. Each of a cable's two ends is a guest's network card.

use std::os::fd::{AsRawFd, OwnedFd};
use std::process::Command;
use std::sync::Arc;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use crate::error::Error;

/// One end of a cable, for [`VirtualMachine::cable`](crate::VirtualMachine::cable).
///
/// A cable is a pair of connected sockets, which both emulators inherit. It has no name, and disappears when they end.
#[derive(Debug, Clone)]
pub struct CableEnd {
    socket: Arc<OwnedFd>,
    side: u8,
}

/// Makes a cable and returns both ends.
///
/// # Errors
/// [`Error::System`] if there are no sockets.
pub fn cable() -> Result<[CableEnd; 2], Error> {
    let pair = socketpair(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None);
    let (one, other) = pair.map_err(|error| Error::System {
        what: "making a cable between guests",
        source: error.into(),
    })?;
    let end = |side, socket| CableEnd { socket: Arc::new(socket), side };
    Ok([end(0, one), end(1, other)])
}

impl CableEnd {
    /// The socket that the emulator inherits.
    pub(crate) fn inherited(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.socket)
    }

    /// Plugs this end into an emulator, as the guest's network card of this number.
    pub(crate) fn plug(&self, number: usize, qemu: &mut Command) {
        let socket = self.socket.as_raw_fd();
        // Both ends of a cable have different sides, so their addresses differ.
        let address = format!("52:54:00:00:{:02x}:{number:02x}", self.side);
        qemu.args(["-netdev", &format!("socket,id=cable{number},fd={socket}")]);
        // Without a ROM, which would be a file of another package, and which only booting over a network needs.
        qemu.args([
            "-device",
            &format!("virtio-net-pci,netdev=cable{number},mac={address},romfile="),
        ]);
    }
}
