//! What systemd keeps for the next `lucd` (its store of descriptors, sd_pid_notify_with_fds(3)): for each service the
//! listener, and the memory in which its calls are noted. Without systemd nothing is kept, and keepers go on alone.

use std::collections::BTreeMap;
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use luc_gate::notify::service::{Lasting, inherited};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::time::{ClockId, clock_gettime};

const LISTENER: &str = "listener-";
const MEMORY: &str = "memory-";

/// What is kept for a service.
#[derive(Debug)]
pub(super) struct Stored {
    unit: String,
    /// Tells it from all others, also of earlier processes.
    number: String,
}

/// What earlier processes have left.
pub(super) fn taken() -> Vec<(Stored, Lasting)> {
    let mut listeners = BTreeMap::new();
    let mut memories = BTreeMap::new();
    for (name, file) in inherited() {
        if let Some(number) = name.strip_prefix(LISTENER) {
            listeners.insert(number.to_owned(), file);
        } else if let Some(number) = name.strip_prefix(MEMORY) {
            memories.insert(number.to_owned(), file);
        }
    }
    let whole = |(number, listener): (String, OwnedFd)| {
        let memory = memories.remove(&number)?;
        let unit = name_of(memory.as_fd())?;
        Some((Stored { unit, number }, Lasting { listener, memory }))
    };
    listeners.into_iter().filter_map(whole).collect()
}

/// The name that a file in memory was made with.
fn name_of(memory: BorrowedFd<'_>) -> Option<String> {
    use std::os::fd::AsRawFd as _;
    let link = std::fs::read_link(format!("/proc/self/fd/{}", memory.as_raw_fd())).ok()?;
    let link = link.to_str()?.strip_prefix("/memfd:")?;
    Some(link.strip_suffix(" (deleted)").unwrap_or(link).to_owned())
}

impl Stored {
    pub(super) fn new(unit: &str) -> Self {
        let now = clock_gettime(ClockId::Monotonic);
        Self {
            unit: unit.to_owned(),
            number: format!("{}-{}", now.tv_sec, now.tv_nsec),
        }
    }

    pub(super) fn unit(&self) -> &str {
        &self.unit
    }

    /// Has systemd keep it.
    pub(super) fn keep(&self, lasting: &Lasting) {
        for (name, file) in [(LISTENER, &lasting.listener), (MEMORY, &lasting.memory)] {
            let text = format!("FDSTORE=1\nFDNAME={name}{}", self.number);
            notify(&text, &[file.as_fd()]);
        }
    }

    /// Has systemd close it.
    pub(super) fn forget(&self) {
        for name in [LISTENER, MEMORY] {
            notify(
                &format!("FDSTOREREMOVE=1\nFDNAME={name}{}", self.number),
                &[],
            );
        }
    }
}

/// Tells systemd that services may come.
pub(super) fn ready() {
    notify("READY=1", &[]);
}

/// Without systemd there is nobody to tell, and what it does not hear is no reason to end.
fn notify(text: &str, files: &[BorrowedFd<'_>]) {
    let Some(path) = std::env::var("NOTIFY_SOCKET").ok() else {
        return;
    };
    let address = match path.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(&path),
    };
    let (Ok(address), Ok(socket)) = (address, UnixDatagram::unbound()) else {
        return;
    };
    if socket.connect_addr(&address).is_err() {
        return;
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() && !control.push(SendAncillaryMessage::ScmRights(files)) {
        return;
    }
    let _ = sendmsg(
        &socket,
        &[IoSlice::new(text.as_bytes())],
        &mut control,
        SendFlags::NOSIGNAL,
    );
}
