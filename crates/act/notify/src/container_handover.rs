//! The notifier of containers: their runtime installs the filter and hands its listener to `lucd` at a socket. From
//! there on all is as with services.

use std::io::{self, Read};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use crate::call_ledger::MappedLedger;
use crate::command_notifier::{KeptListener, NotifierWork};
use crate::keeper_process::{KeeperProcess, ListenerSource};
use crate::service_notifier::{SavedDescriptors, ServedService};
use crate::{NotifyError, available, pass_descriptor};

/// Maximum pause of a runtime while it sends a container's state.
const STATE_TIMEOUT: Duration = Duration::from_secs(5);

/// A keeper that waits for the next container.
#[derive(Debug)]
pub struct AwaitedContainer {
    control: UnixStream,
    keeper: KeeperProcess,
    ledger: Arc<MappedLedger>,
    memory: OwnedFd,
}

/// A container's listener, with a keeper that has it as well.
#[derive(Debug)]
pub struct ContainerHandover {
    awaiting: AwaitedContainer,
    listener: OwnedFd,
    first: [u8; 1],
    connection: UnixStream,
}

impl AwaitedContainer {
    /// Starts a keeper that waits at `socket`, which listens and does not block.
    ///
    /// # Errors
    /// [`NotifyError`], also if this kernel cannot notify in the way that is needed.
    pub fn start(socket: BorrowedFd<'_>) -> Result<Self, NotifyError> {
        available()?;
        let (ledger, memory) =
            MappedLedger::lasting("container").map_err(NotifyError::system("share memory"))?;
        let ledger = Arc::new(ledger);
        let (control, of_control) =
            UnixStream::pair().map_err(NotifyError::system("make a socket"))?;
        let keeper =
            KeeperProcess::start(&ledger, of_control.as_fd(), ListenerSource::Runtime(socket))
                .map_err(NotifyError::system("start its keeper"))?;
        Ok(Self { control, keeper, ledger, memory })
    }

    /// Sleeps until a runtime has handed a listener over.
    ///
    /// # Errors
    /// [`NotifyError`] if the keeper was killed.
    pub fn wait(self) -> Result<ContainerHandover, NotifyError> {
        let received = pass_descriptor::receive(self.control.as_raw_fd())
            .and_then(|first| Ok((first, pass_descriptor::receive(self.control.as_raw_fd())?)));
        match received {
            Ok(((byte, Some(listener)), (_, Some(connection)))) => Ok(ContainerHandover {
                listener,
                first: [byte as u8],
                connection: connection.into(),
                awaiting: self,
            }),
            received => {
                let errno = received.err().unwrap_or(rustix::io::Errno::BADF);
                drop(self.control);
                self.keeper.wait();
                Err(NotifyError::system("take over a listener")(errno))
            }
        }
    }
}

impl ContainerHandover {
    /// The container's state as the runtime sends it, from its beginning. The runtime may leave the connection open.
    ///
    /// # Errors
    /// Reading cannot be bounded in time.
    pub fn state(&self) -> io::Result<impl Read + '_> {
        self.connection.set_read_timeout(Some(STATE_TIMEOUT))?;
        Ok(self.first.as_slice().chain(&self.connection))
    }

    /// Lets all of the container's calls pass, and sleeps until its last process has ended.
    pub fn leave(self) {
        let keeper = self.awaiting.keeper;
        drop((self.awaiting.control, self.listener, self.connection));
        keeper.wait_long();
    }

    /// Begins to serve the container. Its processes are under at least `filters` filters of system calls.
    ///
    /// # Errors
    /// [`NotifyError`]; the keeper then lets all calls pass.
    pub fn begin(
        self,
        filters: u32,
        work: NotifierWork,
    ) -> Result<(ServedService, SavedDescriptors), NotifyError> {
        let AwaitedContainer { control, keeper, ledger, memory } = self.awaiting;
        ledger.begun_under(filters);
        ServedService::begin(
            KeptListener { listener: self.listener, control, keeper, ledger },
            memory,
            work,
        )
    }
}
