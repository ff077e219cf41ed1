//! The notifier of containers: their runtime installs the filter and hands its listener to `lucd` at a socket. From there on
//! all is as with services.

use std::io::{self, Read};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use crate::keeper::{Keeper, Source};
use crate::ledger::SharedLedger;
use crate::service::{Lasting, Served};
use crate::session::{KeptListener, Work};
use crate::{NotifyError, available, pass};

/// Maximum pause of a runtime while it sends a container's state.
const STATE_TIMEOUT: Duration = Duration::from_secs(5);

/// A keeper that waits for the next container.
#[derive(Debug)]
pub struct Awaiting {
    control: UnixStream,
    keeper: Keeper,
    ledger: Arc<SharedLedger>,
    memory: OwnedFd,
}

/// A container's listener, with a keeper that has it as well.
#[derive(Debug)]
pub struct HandedOver {
    awaiting: Awaiting,
    listener: OwnedFd,
    first: [u8; 1],
    connection: UnixStream,
}

impl Awaiting {
    /// Starts a keeper that waits at `socket`, which listens and does not block.
    ///
    /// # Errors
    /// [`NotifyError`], also if this kernel cannot notify in the way that is needed.
    pub fn start(socket: BorrowedFd<'_>) -> Result<Self, NotifyError> {
        available()?;
        let (ledger, memory) =
            SharedLedger::lasting("container").map_err(NotifyError::system("share memory"))?;
        let ledger = Arc::new(ledger);
        let (control, of_control) =
            UnixStream::pair().map_err(NotifyError::system("make a socket"))?;
        let keeper = Keeper::start(&ledger, of_control.as_fd(), Source::Runtime(socket))
            .map_err(NotifyError::system("start its keeper"))?;
        Ok(Self { control, keeper, ledger, memory })
    }

    /// Sleeps until a runtime has handed a listener over.
    ///
    /// # Errors
    /// [`NotifyError`] if the keeper was killed.
    pub fn wait(self) -> Result<HandedOver, NotifyError> {
        let received = pass::receive(self.control.as_raw_fd())
            .and_then(|first| Ok((first, pass::receive(self.control.as_raw_fd())?)));
        match received {
            Ok(((byte, Some(listener)), (_, Some(connection)))) => Ok(HandedOver {
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

impl HandedOver {
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
    pub fn begin(self, filters: u32, work: Work) -> Result<(Served, Lasting), NotifyError> {
        let Awaiting { control, keeper, ledger, memory } = self.awaiting;
        ledger.begun_under(filters);
        Served::begin(
            KeptListener { listener: self.listener, control, keeper, ledger },
            memory,
            work,
        )
    }
}
