//! Descriptors that systemd keeps for the next `lucd` (its store of descriptors, sd_pid_notify_with_fds(3)): for each
//! service the listener and the ledger of its calls, for a container its state as well. Without systemd nothing is
//! kept, and keepers go on alone.

use std::collections::BTreeMap;
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use luc_notify::service_notifier::{SavedDescriptors, inherited};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::time::{ClockId, clock_gettime};

use crate::containers::container_state::OciContainer;

/// Name of the socket in `lucd.socket` (`FileDescriptorName=`).
const SOCKET_NAME: &str = "oci";

const LISTENER_PREFIX: &str = "listener-";
const MEMORY_PREFIX: &str = "memory-";
const CONTAINER_PREFIX: &str = "container-";

/// Names of the kept descriptors of a service or a container.
#[derive(Debug)]
pub(super) struct StoredDescriptors {
    unit: String,
    /// Distinguishes it from all others, also of earlier processes.
    number: String,
    /// File with the state of a container.
    container: Option<OwnedFd>,
}

/// Descriptors that systemd has for this process.
#[derive(Debug, Default)]
pub(super) struct InheritedDescriptors {
    /// Services and containers of earlier processes.
    pub(super) left: Vec<(StoredDescriptors, SavedDescriptors)>,
    /// Sockets at which runtimes hand containers over.
    pub(super) sockets: Vec<OwnedFd>,
}

/// Descriptors that systemd has for this process.
pub(super) fn take() -> InheritedDescriptors {
    let mut all: [BTreeMap<String, OwnedFd>; 3] = Default::default();
    let mut sockets = Vec::new();
    for (name, file) in inherited() {
        if name == SOCKET_NAME {
            sockets.push(file);
        } else {
            let kinds = all.iter_mut().zip([LISTENER_PREFIX, MEMORY_PREFIX, CONTAINER_PREFIX]);
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
            Some(file) => OciContainer::kept(file)?.unit(),
            None => name_of(memory.as_fd())?,
        };
        let stored = StoredDescriptors { unit, number, container };
        Some((stored, SavedDescriptors { listener, memory }))
    };
    InheritedDescriptors { left: listeners.into_iter().filter_map(whole).collect(), sockets }
}

/// Name of a file in memory.
fn name_of(memory: BorrowedFd<'_>) -> Option<String> {
    use std::os::fd::AsRawFd as _;
    let link = std::fs::read_link(format!("/proc/self/fd/{}", memory.as_raw_fd())).ok()?;
    let link = link.to_str()?.strip_prefix("/memfd:")?;
    Some(link.strip_suffix(" (deleted)").unwrap_or(link).to_owned())
}

impl StoredDescriptors {
    pub(super) fn new(unit: &str) -> Self {
        let now = clock_gettime(ClockId::Monotonic);
        Self {
            unit: unit.to_owned(),
            number: format!("{}-{}", now.tv_sec, now.tv_nsec),
            container: None,
        }
    }

    /// Makes the names for a container. `file` has its [state](OciContainer::keep).
    pub(super) fn container(unit: &str, file: OwnedFd) -> Self {
        Self { container: Some(file), ..Self::new(unit) }
    }

    pub(super) fn unit(&self) -> &str {
        &self.unit
    }

    /// Gives the descriptors to systemd.
    pub(super) fn keep(&self, lasting: &SavedDescriptors) {
        let of_all = [(LISTENER_PREFIX, &lasting.listener), (MEMORY_PREFIX, &lasting.memory)];
        let container = self.container.as_ref().map(|file| (CONTAINER_PREFIX, file));
        // The listener last: without the others it is of no use.
        for (name, file) in container.into_iter().chain(of_all.into_iter().rev()) {
            let text = format!("FDSTORE=1\nFDNAME={name}{}", self.number);
            notify(&text, &[file.as_fd()]);
        }
    }

    /// Makes systemd close the descriptors.
    pub(super) fn forget(&self) {
        for name in [LISTENER_PREFIX, MEMORY_PREFIX, CONTAINER_PREFIX] {
            notify(&format!("FDSTOREREMOVE=1\nFDNAME={name}{}", self.number), &[]);
        }
    }
}

/// Tells systemd that services may come.
pub(super) fn ready() {
    notify("READY=1", &[]);
}

/// Sends a message to systemd, if it runs. A message that is lost is no reason to end.
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
