//! The notifier of services: their first process (`luc-exec`) and their supervisor (`lucd`), which systemd starts.
//!
//! `luc-exec` connects to `lucd`, and is told that it is expected. It puts itself under the filter, and hands the
//! listener to a keeper that `lucd` has started. From there on all is as with `luc run`, until `lucd` ends: the
//! service goes on, served by the keeper, and the next `lucd` takes the listener back ([`resume`]).

use std::ffi::{CString, NulError, OsStr, OsString};
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use luc_gate::environment_names::NOTIFIED;
use luc_gate::seccomp_filter::filters_of;
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::call_ledger::MappedLedger;
use crate::command_notifier::{KeptListener, NotifierWork, refusal, supervise};
use crate::filter_installation::{FilterInstallation, InstallStatus};
use crate::keeper_process::{KeeperProcess, ListenerSource, relieve};
use crate::seccomp_unotify::polled;
use crate::supervisor_loop::SupervisorEnd;
use crate::{NotifyError, available, pass_descriptor};

const MAX_INHERITED: i32 = 4096;

/// Timeout of each step of the hand-over.
const STEP_TIMEOUT: Duration = Duration::from_secs(5);

/// Interval between two attempts to start a keeper where nobody else serves.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Puts this process under the filter, and hands the listener to the supervisor at `socket`.
///
/// # Errors
/// [`NotifyError`]: the process is not under the filter, or somebody lets all of its calls pass.
pub fn enter(socket: &Path) -> Result<(), NotifyError> {
    available()?;
    let connection = connect(socket).map_err(NotifyError::system("reach lucd"))?;
    let patient = connection.set_read_timeout(Some(STEP_TIMEOUT));
    patient.map_err(NotifyError::system("reach lucd"))?;
    // Closed at once if lucd does not expect this service.
    pass_descriptor::receive(connection.as_raw_fd())
        .map_err(NotifyError::system("be served by lucd"))?;
    let mut installing = FilterInstallation::new(connection, true);
    let installed = installing.install();
    if let (Err(_), Some(listener)) = (&installed, installing.left()) {
        // SAFETY: the filter's listener, which nobody else has, and which is not used again elsewhere.
        serve_alone(unsafe { OwnedFd::from_raw_fd(listener) });
    }
    installed.map_err(|error| match error.raw_os_error() {
        Some(errno) => refusal(Errno::from_raw_os_error(errno)),
        None => NotifyError::system("hand the listener over")(error),
    })
}

/// Connects to a socket whose queue may be full, and waits for room no longer than the timeout.
fn connect(path: &Path) -> Result<UnixStream, Errno> {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    set_socket_timeout(&socket, Timeout::Send, Some(STEP_TIMEOUT))?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket.into())
}

/// Starts a keeper that lets all calls pass, for a listener that nobody took over. Without it the calls would fail.
fn serve_alone(listener: OwnedFd) {
    let begun = MappedLedger::new().and_then(|ledger| {
        let (_closed, control) = UnixStream::pair()?;
        KeeperProcess::start(
            &Arc::new(ledger),
            control.as_fd(),
            ListenerSource::Own(listener.as_fd()),
        )
    });
    if begun.is_err() {
        // Better no program than one whose every fsync fails.
        std::process::abort();
    }
}

/// A program of a service, with its arguments.
#[derive(Debug)]
pub struct ServiceProgram {
    /// Path, or a name that is looked for in the PATH.
    pub path: OsString,
    /// Argument zero and the other arguments.
    pub words: Vec<OsString>,
    /// Whether this process is under the filter: a `luc run` in the service leaves its calls to lucd then.
    pub is_notified: bool,
    /// Whether it ignores SIGPIPE, as systemd has it by default. Rust's runtime has changed the inherited disposition.
    pub is_pipe_ignored: bool,
}

/// Executes a program in place of this process, and returns only if that fails. Signals stay blocked as this process
/// inherited them; `exec` of the standard library would unblock them.
pub fn execute(program: ServiceProgram) -> io::Error {
    let mut environment: Vec<OsString> = std::env::vars_os()
        .map(|(name, value)| {
            [name.as_os_str(), OsStr::new("="), value.as_os_str()].into_iter().collect()
        })
        .collect();
    if program.is_notified {
        environment.push(format!("{NOTIFIED}=1").into());
    }
    let texts = |words: Vec<OsString>| -> Result<Vec<CString>, NulError> {
        words.into_iter().map(|word| CString::new(word.into_vec())).collect()
    };
    let converted = texts(vec![program.path])
        .and_then(|path| Ok((path, texts(program.words)?, texts(environment)?)));
    let (path, words, environment) = match converted {
        Ok(converted) => converted,
        Err(error) => return error.into(),
    };
    let pointers = |texts: &[CString]| -> Vec<*const libc::c_char> {
        let texts = texts.iter().map(|text| text.as_ptr());
        texts.chain([std::ptr::null()]).collect()
    };
    let (argv, envp) = (pointers(&words), pointers(&environment));
    let disposition = if program.is_pipe_ignored { libc::SIG_IGN } else { libc::SIG_DFL };
    // SAFETY: C strings, and lists of them that end in null; all of them live until the end of this function.
    unsafe {
        libc::signal(libc::SIGPIPE, disposition);
        libc::execvpe(path[0].as_ptr(), argv.as_ptr(), envp.as_ptr());
    }
    io::Error::last_os_error()
}

/// A service's first process that has connected to the supervisor.
#[derive(Debug)]
pub struct ConnectedService {
    control: UnixStream,
    keeper: KeeperProcess,
    ledger: Arc<MappedLedger>,
    memory: OwnedFd,
}

/// State by which the next supervisor goes on with a service. To be kept where it outlives this process.
#[derive(Debug)]
pub struct SavedDescriptors {
    pub listener: OwnedFd,
    /// Ledger of its calls, a file in memory.
    pub memory: OwnedFd,
}

/// The thread that serves a service's calls.
#[derive(Debug)]
pub struct ServedService(JoinHandle<SupervisorEnd>);

impl ConnectedService {
    /// Starts a keeper for the process at the other end of `connection`, and tells the process to go on. `name` is for
    /// people.
    ///
    /// # Errors
    /// [`NotifyError`]; the process then runs without a filter.
    pub fn welcome(connection: &UnixStream, name: &str) -> Result<Self, NotifyError> {
        let (ledger, memory) =
            MappedLedger::lasting(name).map_err(NotifyError::system("share memory"))?;
        let ledger = Arc::new(ledger);
        let (control, of_control) =
            UnixStream::pair().map_err(NotifyError::system("make a socket"))?;
        // The keeper gives up by itself, and closes its end, if the process hands nothing over.
        let patient = connection.set_read_timeout(Some(STEP_TIMEOUT));
        patient.map_err(NotifyError::system("make a socket"))?;
        let source = ListenerSource::Child(connection.as_fd());
        let keeper = KeeperProcess::start(&ledger, of_control.as_fd(), source)
            .map_err(NotifyError::system("start its keeper"))?;
        if let Err(errno) = pass_descriptor::send(connection.as_raw_fd(), 0, None) {
            keeper.wait();
            return Err(NotifyError::system("greet")(errno));
        }
        Ok(Self { control, keeper, ledger, memory })
    }

    /// Waits for the listener and begins to serve. `process` is at the other end.
    ///
    /// # Errors
    /// [`NotifyError`] if there is no filter, so that the service runs without luc.
    pub fn begin(
        self,
        process: u32,
        work: NotifierWork,
    ) -> Result<(ServedService, SavedDescriptors), NotifyError> {
        let received = pass_descriptor::receive(self.control.as_raw_fd());
        let listener = match received
            .map(|(status, listener)| (InstallStatus::of(status), listener))
        {
            Ok((InstallStatus::Installed | InstallStatus::WithoutPrivileges, Some(listener))) => {
                listener
            }
            Ok((InstallStatus::Refused(errno), _)) => {
                self.keeper.wait();
                return Err(refusal(errno));
            }
            Ok((_, None)) => {
                self.keeper.wait();
                return Err(refusal(Errno::BADF));
            }
            Err(errno) => {
                self.keeper.wait();
                return Err(NotifyError::system("take over the listener")(errno));
            }
        };
        self.ledger.begun_under(filters_of(process).unwrap_or(0));
        let Self { control, keeper, ledger, memory } = self;
        ServedService::begin(KeptListener { listener, control, keeper, ledger }, memory, work)
    }
}

/// Goes on with a service that an earlier supervisor left to its keeper.
///
/// # Errors
/// [`NotifyError`]; the keeper then goes on.
pub fn resume(
    lasting: &SavedDescriptors,
    work: NotifierWork,
) -> Result<ServedService, NotifyError> {
    let ledger = MappedLedger::of(&lasting.memory).map_err(NotifyError::system("share memory"))?;
    let ledger = Arc::new(ledger);
    let listener =
        lasting.listener.try_clone().map_err(NotifyError::system("open a descriptor"))?;
    let (control, of_control) = UnixStream::pair().map_err(NotifyError::system("make a socket"))?;
    work.figures.filters.store(ledger.filters(), Ordering::Relaxed);
    let before = ledger.keeper();
    let is_alone = !ledger.has_begun();
    if is_alone {
        // Of two keepers that wait for the first call each could receive one.
        relieve(&ledger, before, listener.as_raw_fd());
    }
    let keeper = loop {
        let source = ListenerSource::Own(listener.as_fd());
        match KeeperProcess::start(&ledger, of_control.as_fd(), source) {
            Ok(keeper) => break keeper,
            // Without this process the program's calls would fail.
            Err(_) if is_alone => thread::sleep(RETRY_INTERVAL),
            Err(error) => return Err(NotifyError::system("start its keeper")(error)),
        }
    };
    drop(of_control);
    relieve(&ledger, before, listener.as_raw_fd());
    let kept = KeptListener { listener, control, keeper, ledger };
    Ok(ServedService(supervise(kept, work, true)?.thread))
}

/// Takes the descriptors that systemd has kept for this service (sd_listen_fds(3)), with their names. Later calls get
/// none.
#[must_use]
pub fn inherited() -> Vec<(String, OwnedFd)> {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    let text = |name| std::env::var(name).unwrap_or_default();
    let is_for_us = text("LISTEN_PID") == std::process::id().to_string();
    if !is_for_us || TAKEN.swap(true, Ordering::SeqCst) {
        return Vec::new();
    }
    let count: i32 = text("LISTEN_FDS").parse().unwrap_or(0);
    let names = text("LISTEN_FDNAMES");
    let is_open = |number: &i32| {
        // SAFETY: a plain number.
        unsafe { libc::fcntl(*number, libc::F_SETFD, libc::FD_CLOEXEC) == 0 }
    };
    (3..3_i32.saturating_add(count.min(MAX_INHERITED)))
        .zip(names.split(':'))
        .filter(|(number, _)| is_open(number))
        .map(|(number, name)| {
            // SAFETY: open since this process began, by systemd for nobody else here, and given away once.
            (name.to_owned(), unsafe { OwnedFd::from_raw_fd(number) })
        })
        .collect()
}

impl ServedService {
    /// Begins to serve a listener. `memory` is the ledger's file.
    pub(super) fn begin(
        kept: KeptListener,
        memory: OwnedFd,
        work: NotifierWork,
    ) -> Result<(Self, SavedDescriptors), NotifyError> {
        work.figures.filters.store(kept.ledger.filters(), Ordering::Relaxed);
        let listener =
            kept.listener.try_clone().map_err(NotifyError::system("open a descriptor"))?;
        let lasting = SavedDescriptors { listener, memory };
        Ok((Self(supervise(kept, work, true)?.thread), lasting))
    }

    /// Sleeps until the last process under the filter has ended.
    pub fn wait(self) {
        // A supervisor that has panicked is a defect: the keeper has taken over.
        if let Ok(SupervisorEnd { keeper, .. }) = self.0.join()
            && let Some(keeper) = keeper
        {
            keeper.wait();
        }
    }
}

/// The process at the other end of a connection, unless another one has its number by now.
///
/// # Errors
/// It has ended, or the system cannot tell.
pub fn peer(connection: &UnixStream) -> io::Result<SocketPeer> {
    /// Option of include/uapi/asm-generic/socket.h, since Linux 6.5.
    const SO_PEERPIDFD: i32 = 77;
    let credentials: libc::ucred = option(connection, libc::SO_PEERCRED)?;
    let number = u32::try_from(credentials.pid).map_err(io::Error::other)?;
    let process = match option::<i32>(connection, SO_PEERPIDFD) {
        // SAFETY: just made for this process, and owned by nobody else.
        Ok(process) => unsafe { OwnedFd::from_raw_fd(process) },
        Err(_) => {
            let pid = Pid::from_raw(credentials.pid).ok_or(io::ErrorKind::NotFound)?;
            pidfd_open(pid, PidfdFlags::empty())?
        }
    };
    Ok(SocketPeer { number, process })
}

fn option<T: Copy>(connection: &UnixStream, name: i32) -> io::Result<T> {
    let mut value = std::mem::MaybeUninit::<T>::zeroed();
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel writes as much as `length` says at most.
    let result = unsafe {
        libc::getsockopt(
            connection.as_raw_fd(),
            libc::SOL_SOCKET,
            name,
            value.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: plain integers in all uses here, zeroed before and filled now.
    Ok(unsafe { value.assume_init() })
}

/// The process at a socket's other end.
#[derive(Debug)]
pub struct SocketPeer {
    pub number: u32,
    process: OwnedFd,
}

impl SocketPeer {
    /// Whether it still runs: all that was read by its number was then its own.
    #[must_use]
    pub fn is_there(&self) -> bool {
        let mut polled = polled(self.process.as_raw_fd(), libc::POLLIN);
        // SAFETY: one `pollfd`, valid for writes.
        unsafe { libc::poll(&raw mut polled, 1, 0) == 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_reached_by_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        assert_eq!(connect(&path).unwrap_err(), Errno::NOENT);
        let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        connect(&path).unwrap();
    }
}
