//! What systemd keeps for the next `lucd` (its store of descriptors, sd_pid_notify_with_fds(3)): for each service the
//! listener, and the memory in which its calls are noted; for a container what is known of it as well. Without systemd
//! nothing is kept, and keepers go on alone.

use std::collections::BTreeMap;
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use luc_notify::service::{Lasting, inherited};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::time::{ClockId, clock_gettime};

use crate::containers::state::Container;

/// What `lucd.socket` calls its socket (`FileDescriptorName=`).
const SOCKET: &str = "oci";

const LISTENER: &str = "listener-";
const MEMORY: &str = "memory-";
const CONTAINER: &str = "container-";

/// What is kept for a service or a container.
#[derive(Debug)]
pub(super) struct Stored {
    unit: String,
    /// Tells it from all others, also of earlier processes.
    number: String,
    /// What is known of a container.
    container: Option<OwnedFd>,
}

/// What systemd has for this process.
#[derive(Debug, Default)]
pub(super) struct Taken {
    /// What earlier processes have left.
    pub(super) left: Vec<(Stored, Lasting)>,
    /// The sockets at which runtimes hand containers over.
    pub(super) sockets: Vec<OwnedFd>,
}

/// What systemd has for this process.
pub(super) fn taken() -> Taken {
    let mut all: [BTreeMap<String, OwnedFd>; 3] = Default::default();
    let mut sockets = Vec::new();
    for (name, file) in inherited() {
        if name == SOCKET {
            sockets.push(file);
        } else {
            let kinds = all.iter_mut().zip([LISTENER, MEMORY, CONTAINER]);
            for (of_kind, prefix) in kinds {
                if let Some(number) = name.strip_prefix(prefix) {
                    of_kind.insert(number.to_owned(), file);
                    break;
                }
            }
        }
    }
    let [listeners, mut memories, mut containers] = all;
    let whole = |(number, listener): (String, OwnedFd)| {
        let memory = memories.remove(&number)?;
        let container = containers.remove(&number);
        let unit = match &container {
            Some(file) => Container::kept(file)?.unit(),
            None => name_of(memory.as_fd())?,
        };
        let stored = Stored { unit, number, container };
        Some((stored, Lasting { listener, memory }))
    };
    Taken { left: listeners.into_iter().filter_map(whole).collect(), sockets }
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
            container: None,
        }
    }

    /// Of a container; `file` is what it has [kept](Container::keep).
    pub(super) fn container(unit: &str, file: OwnedFd) -> Self {
        Self { container: Some(file), ..Self::new(unit) }
    }

    pub(super) fn unit(&self) -> &str {
        &self.unit
    }

    /// Has systemd keep it.
    pub(super) fn keep(&self, lasting: &Lasting) {
        let of_all = [(LISTENER, &lasting.listener), (MEMORY, &lasting.memory)];
        let container = self.container.as_ref().map(|file| (CONTAINER, file));
        // The listener last: without the others it is of no use.
        for (name, file) in container.into_iter().chain(of_all.into_iter().rev()) {
            let text = format!("FDSTORE=1\nFDNAME={name}{}", self.number);
            notify(&text, &[file.as_fd()]);
        }
    }

    /// Has systemd close it.
    pub(super) fn forget(&self) {
        for name in [LISTENER, MEMORY, CONTAINER] {
            notify(&format!("FDSTOREREMOVE=1\nFDNAME={name}{}", self.number), &[]);
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
    let _ = sendmsg(&socket, &[IoSlice::new(text.as_bytes())], &mut control, SendFlags::NOSIGNAL);
}
