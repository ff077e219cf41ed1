//! Containers, whose runtimes hand their listeners over at a socket that systemd keeps (`lucd.socket`). So none is lost
//! while `lucd` restarts.
//!
//! The keeper takes the connection, not `lucd`: a runtime waits for no answer, and without a holder of the listener
//! every call of its container fails.

use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use luc_gate::seccomp_filter::filters_of;
use luc_notify::container_handover::{AwaitedContainer, ContainerHandover};

use super::descriptor_store::StoredDescriptors;
use super::{Lucd, say, serve_to_the_end, start};
use crate::containers::container_state::OciContainer;

/// Pause after a keeper could not be started or was lost.
const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// Serves all containers that are handed over at `socket`. Returns only if it is no listening socket.
pub(super) fn serve(lucd: &Arc<Lucd>, socket: OwnedFd) {
    let socket = UnixListener::from(socket);
    if let Err(error) = socket.set_nonblocking(true) {
        return say(format_args!("no containers are served: {error}"));
    }
    loop {
        match AwaitedContainer::start(socket.as_fd()).and_then(AwaitedContainer::wait) {
            Ok(handed_over) => {
                let lucd = Arc::clone(lucd);
                // Dropped without a thread, it is left to its keeper.
                if let Err(error) = start("container", move || lucd.serve_container(handed_over)) {
                    say(format_args!("a container is left to its keeper: {error}"));
                }
            }
            Err(error) => {
                say(format_args!("a container is not awaited: {error}"));
                thread::sleep(RETRY_PAUSE);
            }
        }
    }
}

impl Lucd {
    /// Serves a container, or a process that was started in it later. Ends with the last process under its filter.
    fn serve_container(&self, handed_over: ContainerHandover) {
        let read = handed_over.state().and_then(OciContainer::read);
        let kept = read.and_then(|container| Ok((container.keep()?, container)));
        let begun = kept.map_err(|error| format!("a container: its state cannot be read: {error}"));
        let begun = begun.and_then(|(memory, container)| {
            let unit = container.unit();
            match self.begin(&unit) {
                Ok(figures) => Ok((memory, container, unit, figures)),
                Err(reason) => Err(format!("{unit}: {reason}")),
            }
        });
        let (memory, container, unit, figures) = match begun {
            Ok(begun) => begun,
            Err(reason) => {
                say(format_args!("left to its keeper: {reason}"));
                return handed_over.leave();
            }
        };
        // Of a process that is started later the runtime does not tell which one it is. It is under the same profile.
        let filters = filters_of(container.process).filter(|_| container.process > 0);
        match handed_over.begin(filters.unwrap_or(1), self.work(figures)) {
            Ok((served, lasting)) => {
                say(format_args!("{unit}: served"));
                let stored = StoredDescriptors::container(&unit, memory);
                serve_to_the_end(&unit, &stored, served, lasting);
            }
            Err(error) => say(format_args!("{unit}: left to its keeper: {error}")),
        }
        self.end(&unit);
    }
}
