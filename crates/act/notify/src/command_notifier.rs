//! The notifier of one command, from before its start to after its end.

use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use luc_gate::figures::RunFigures;
use luc_gate::gated_call::CallSettings;
use luc_gate::rounds::UserRounds;
use luc_gate::writeback_errors;
use rustix::io::Errno;

use crate::call_ledger::MappedLedger;
use crate::call_receiver::CallReceiver;
use crate::call_sorter::CallSorter;
use crate::early_writers::{EarlyWriters, SupervisorBell};
use crate::filter_installation::{FilterInstallation, InstallStatus};
use crate::keeper_process::{KeeperProcess, ListenerSource};
use crate::notified_calls::NotifiedCalls;
use crate::pass_descriptor;
use crate::release_watcher::ReleaseWatcher;
use crate::seccomp_unotify::{self, ListenerState};
use crate::supervisor_loop::{Supervisor, SupervisorEnd};
use crate::synced_file_systems::{SupervisorMemory, SyncedFileSystems};
use crate::{NotifyError, available};

/// A notifier that is ready for a command to be started.
#[derive(Debug)]
pub struct PreparedNotifier {
    control: UnixStream,
    keeper: KeeperProcess,
    ledger: Arc<MappedLedger>,
}

/// A notifier that serves a command from the moment at which its process is under the filter.
#[derive(Debug)]
pub struct StartingNotifier(JoinHandle<Result<RunningNotifier, NotifyError>>);

/// A notifier at work.
#[derive(Debug)]
pub struct RunningNotifier {
    supervisor: SupervisorThread,
    without_privileges: bool,
}

/// Way in which a command was notified.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct NotifiedRun {
    /// Whether the command and all that it started could gain no privileges (`no_new_privs`). Without root, luc may
    /// install a filter in no other way.
    pub no_new_privs: bool,
    /// Process number of the keeper that serves programs that go on after the command; `None` if none do.
    pub keeper: Option<i32>,
}

/// Rounds, figures and settings of a notifier.
#[derive(Debug)]
pub struct NotifierWork {
    /// The rounds of this user and policy.
    pub arena: &'static UserRounds,
    pub figures: &'static RunFigures,
    pub settings: CallSettings,
    /// Devices, major and minor number, on which the kernel module batches.
    pub count_only: Vec<(u32, u32)>,
}

impl PreparedNotifier {
    /// Makes a notifier ready, and the installation of the filter for the command's process. The keeper runs from here
    /// on. If the filter `is_required`, the command is not started without it.
    ///
    /// # Errors
    /// [`NotifyError`]; nothing is left then.
    pub fn new(is_required: bool) -> Result<(Self, FilterInstallation), NotifyError> {
        available()?;
        let pair = || UnixStream::pair().map_err(NotifyError::system("make a socket"));
        let (child, of_child) = pair()?;
        let (control, of_control) = pair()?;
        let ledger = MappedLedger::new().map_err(NotifyError::system("share memory"))?;
        let ledger = Arc::new(ledger);
        let source = ListenerSource::Child(of_child.as_fd());
        let keeper = KeeperProcess::start(&ledger, of_control.as_fd(), source)
            .map_err(NotifyError::system("start its keeper"))?;
        let prepared = Self { control, keeper, ledger };
        Ok((prepared, FilterInstallation::new(child, is_required)))
    }

    /// Begins to serve, in a thread of its own, before the command is started.
    ///
    /// The command's process waits in its first call until a keeper answers, and its starter waits for the process. If
    /// the keeper is killed then, only a thread beside them can replace it. Signals that are blocked here stay blocked
    /// in all threads.
    ///
    /// # Errors
    /// If there is no thread.
    pub fn begin(self, work: NotifierWork) -> Result<StartingNotifier, NotifyError> {
        let thread = thread::Builder::new()
            .name("beginning".to_owned())
            .spawn(move || self.serve(work))
            .map_err(NotifyError::system("start a thread"))?;
        Ok(StartingNotifier(thread))
    }

    /// Waits for the listener and begins to serve.
    fn serve(self, work: NotifierWork) -> Result<RunningNotifier, NotifyError> {
        let (status, listener) = match pass_descriptor::receive(self.control.as_raw_fd()) {
            Ok(received) => received,
            Err(errno) => {
                self.keeper.wait();
                return Err(NotifyError::system("take over the listener")(errno));
            }
        };
        let (status, listener) = match (InstallStatus::of(status), listener) {
            (InstallStatus::Refused(errno), _) => {
                self.keeper.wait();
                return Err(refusal(errno));
            }
            (_, None) => return Err(refusal(Errno::BADF)),
            (status, Some(listener)) => (status, listener),
        };
        let kept = KeptListener {
            listener,
            control: self.control,
            keeper: self.keeper,
            ledger: self.ledger,
        };
        let supervisor = supervise(kept, work, false)?;
        Ok(RunningNotifier {
            supervisor,
            without_privileges: status == InstallStatus::WithoutPrivileges,
        })
    }
}

impl StartingNotifier {
    /// Waits until the notifier serves. To be called after the command's start has succeeded or failed, when its
    /// process holds nothing of the notifier.
    ///
    /// # Errors
    /// [`NotifyError`] if the filter was refused, so that the command runs as without luc, or there is no process.
    pub fn join(self) -> Result<RunningNotifier, NotifyError> {
        let panicked =
            |_| NotifyError::System { what: "begin", source: io::ErrorKind::Other.into() };
        self.0.join().map_err(panicked)?
    }
}

impl RunningNotifier {
    /// Whether the command and its descendants cannot gain privileges.
    #[must_use]
    pub fn without_privileges(&self) -> bool {
        self.without_privileges
    }

    /// Ends the service after the command. The keeper serves programs that go on.
    #[must_use]
    pub fn end(self) -> NotifiedRun {
        let no_new_privs = self.without_privileges;
        self.supervisor.is_over.store(true, Ordering::Release);
        self.supervisor.ringer.ring();
        let Ok(SupervisorEnd { listener, keeper }) = self.supervisor.thread.join() else {
            // A defect: the keeper has taken over.
            return NotifiedRun { no_new_privs, keeper: None };
        };
        let nobody_left =
            seccomp_unotify::is_waiting(listener.as_raw_fd(), 0) == ListenerState::NobodyLeft;
        drop(listener);
        let keeper = match keeper {
            Some(keeper) if nobody_left => {
                keeper.wait();
                None
            }
            keeper => keeper.map(|keeper| keeper.id()),
        };
        NotifiedRun { no_new_privs, keeper }
    }
}

#[derive(Debug)]
pub(super) struct KeptListener {
    pub(super) listener: OwnedFd,
    pub(super) control: UnixStream,
    pub(super) keeper: KeeperProcess,
    pub(super) ledger: Arc<MappedLedger>,
}

/// A supervisor's thread, with the means to end and to wake it.
#[derive(Debug)]
pub(super) struct SupervisorThread {
    pub(super) thread: JoinHandle<SupervisorEnd>,
    is_over: Arc<AtomicBool>,
    ringer: SupervisorBell,
}

/// Starts the thread that serves a listener. With `ends_alone` it ends with the last process under the filter; else it
/// waits to be told.
pub(super) fn supervise(
    kept: KeptListener,
    work: NotifierWork,
    ends_alone: bool,
) -> Result<SupervisorThread, NotifyError> {
    let ledger = kept.ledger;
    // SAFETY: what the kernel has put there.
    unsafe { writeback_errors::use_clock(libc::getauxval(libc::AT_SYSINFO_EHDR) as usize) };
    let writers =
        EarlyWriters::start(Arc::clone(&ledger)).map_err(NotifyError::system("start a thread"))?;
    let ringer = writers.ringer().map_err(NotifyError::system("open a descriptor"))?;
    let for_thread = || {
        let listener = kept.listener.try_clone();
        let both = writers.ringer().and_then(|bell| Ok((bell, listener?)));
        both.map_err(NotifyError::system("open a descriptor"))
    };
    let (bell, listener) = for_thread()?;
    let watcher =
        ReleaseWatcher::start(bell, listener).map_err(NotifyError::system("start a thread"))?;
    let (bell, listener) = for_thread()?;
    let sorter = Arc::new(CallSorter::new(work.settings.policy, writers.closing()));
    let receiver = CallReceiver::start(listener, bell, Arc::clone(&ledger), Arc::clone(&sorter))
        .map_err(NotifyError::system("start a thread"))?;
    let is_over = Arc::new(AtomicBool::new(false));
    let places = SyncedFileSystems::new(SupervisorMemory {
        arena: work.arena,
        figures: work.figures,
        policy: work.settings.policy,
        count_only: work.count_only,
    });
    let supervisor = Supervisor {
        calls: NotifiedCalls::new(
            kept.listener,
            work.settings,
            writers,
            watcher,
            places,
            Arc::clone(&ledger),
            sorter,
        ),
        receiver,
        control: kept.control,
        keeper: Some(kept.keeper),
        ledger,
        is_over: Arc::clone(&is_over),
        nobody_left: false,
        ends_alone,
        replaced_ns: 0,
    };
    let thread = thread::Builder::new()
        .name("notifier".to_owned())
        .spawn(move || supervisor.run())
        .map_err(NotifyError::system("start a thread"))?;
    Ok(SupervisorThread { thread, is_over, ringer })
}

pub(super) fn refusal(errno: Errno) -> NotifyError {
    match errno {
        Errno::BUSY => NotifyError::Taken,
        errno => NotifyError::Refused(errno),
    }
}

#[cfg(test)]
mod tests;
