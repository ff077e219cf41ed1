//! A process that holds the listener beside the supervisor, and lets all calls pass when the supervisor is gone.
//!
//! With the last holder of the listener gone every notified call fails with ENOSYS, and databases panic. So the
//! keeper sleeps until the supervisor dies, hangs with calls in hand, or ends while programs go on. Then it answers
//! the calls that were received and not answered, and lets every further call continue. It ends with the last process
//! under the filter.
//!
//! It is forked and executes nothing: from the fork on it makes system calls only. It allocates nothing, takes no lock
//! and has its memory locked, so it works when there is no memory left.

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};

use crate::call_ledger::{CallLedger, MappedLedger};
use crate::container_runtime;
use crate::pass_descriptor;
use crate::seccomp_unotify::{self, ListenerState, NoticeAnswer, polled};

/// Interval at which the keeper looks for signs of work. A supervisor with calls in its hands may show none for twice
/// this time at most.
const TICK_MS: i32 = 250;

const PROCESS_NAME: &std::ffi::CStr = c"luc-keeper";

/// Timeout for the end of a keeper that nobody needs.
const END_TIMEOUT_MS: i32 = 2000;

/// Origin of a keeper's listener.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ListenerSource<'a> {
    /// The process that becomes the program sends it over this socket, and waits until the keeper has it.
    Child(BorrowedFd<'a>),
    /// The supervisor itself has it, and has lost its first keeper.
    Own(BorrowedFd<'a>),
    /// The first container runtime that connects to this listening socket sends it.
    Runtime(BorrowedFd<'a>),
}

/// The process that keeps the listener beside the supervisor.
#[derive(Debug)]
pub(crate) struct KeeperProcess {
    pid: Pid,
    /// Whether its exit status was collected.
    is_reaped: bool,
    /// Readable when it has ended.
    pub(crate) ended: OwnedFd,
    /// The pages that it reads.
    _ledger: Arc<MappedLedger>,
}

impl KeeperProcess {
    /// Starts a keeper that watches the other end of `control`: when it closes, the supervisor is gone.
    ///
    /// # Errors
    /// There can be no further process.
    pub(crate) fn start(
        ledger: &Arc<MappedLedger>,
        control: BorrowedFd<'_>,
        source: ListenerSource<'_>,
    ) -> io::Result<Self> {
        let supervisor = pidfd_open(rustix::process::getpid(), PidfdFlags::empty())?;
        // SAFETY: the child makes async-signal-safe calls only, and never returns.
        let pid = match unsafe { libc::fork() } {
            0 => {
                let lifelines =
                    Lifelines { control: control.as_raw_fd(), supervisor: supervisor.as_raw_fd() };
                run(ledger, &lifelines, source)
            }
            pid => pid,
        };
        if pid < 0 {
            return Err(io::Error::last_os_error());
        }
        reap_left();
        let pid = Pid::from_raw(pid).ok_or(io::ErrorKind::InvalidData)?;
        let ended = pidfd_open(pid, PidfdFlags::empty()).inspect_err(|_| {
            // Of two keepers each could receive the first call.
            let _ = kill_process(pid, Signal::KILL);
            left().push(pid.as_raw_nonzero().get());
        })?;
        ledger.kept_by(pid.as_raw_nonzero().get().unsigned_abs());
        Ok(Self { pid, is_reaped: false, ended, _ledger: Arc::clone(ledger) })
    }

    pub(crate) fn id(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Waits for its end for [`END_TIMEOUT_MS`]. A keeper that goes on stays, and init takes it over.
    pub(crate) fn wait(self) {
        let mut polled = polled(self.ended.as_raw_fd(), libc::POLLIN);
        // SAFETY: one `pollfd`, valid for writes.
        if unsafe { libc::poll(&raw mut polled, 1, END_TIMEOUT_MS) } > 0 {
            self.reap();
        }
    }

    /// Sleeps until it has ended, with the last process that it serves.
    pub(crate) fn wait_long(mut self) {
        // SAFETY: this process' own child, which nobody else waits for.
        unsafe { libc::waitpid(self.id(), std::ptr::null_mut(), 0) };
        self.is_reaped = true;
    }

    /// Forgets a keeper that has ended.
    pub(crate) fn reap(self) {
        drop(self);
    }
}

/// Keepers that go on and whose exit status nobody else collects.
static LEFT: Mutex<Vec<i32>> = Mutex::new(Vec::new());

impl Drop for KeeperProcess {
    fn drop(&mut self) {
        if !self.is_reaped {
            left().push(self.id());
            reap_left();
        }
    }
}

/// Collects the exit status of keepers that were left. Else each would stay as a zombie.
fn reap_left() {
    left().retain(|&keeper| {
        // SAFETY: this process' own child, which nobody else waits for.
        unsafe { libc::waitpid(keeper, std::ptr::null_mut(), libc::WNOHANG) == 0 }
    });
}

fn left() -> MutexGuard<'static, Vec<i32>> {
    LEFT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Descriptors of a keeper beside its source.
struct Lifelines {
    control: RawFd,
    supervisor: RawFd,
}

fn run(ledger: &CallLedger, lifelines: &Lifelines, source: ListenerSource<'_>) -> ! {
    let first = match source {
        ListenerSource::Child(socket)
        | ListenerSource::Own(socket)
        | ListenerSource::Runtime(socket) => socket.as_raw_fd(),
    };
    settle(ledger, [lifelines.control, lifelines.supervisor, first]);
    let listener = match source {
        ListenerSource::Own(listener) => Some(listener.as_raw_fd()),
        ListenerSource::Child(socket) => adopt(socket.as_raw_fd(), lifelines.control),
        ListenerSource::Runtime(socket) => {
            container_runtime::adopt(socket.as_raw_fd(), lifelines.control, lifelines.supervisor)
        }
    };
    let Some(listener) = listener else { end() };
    if !ledger.has_begun() && !begin(ledger, listener, lifelines.control) {
        end();
    }
    watch(ledger, lifelines, listener)
}

/// Receives the listener from the process that becomes the program, and hands it to the supervisor. Then it tells the
/// process to go on. The process then makes a first call, of no file. `None` if there is no filter, and so nothing to
/// keep.
fn adopt(child: RawFd, control: RawFd) -> Option<RawFd> {
    let (status, listener) = pass_descriptor::receive(child).ok()?;
    let listener = listener.map(|listener| {
        use std::os::fd::IntoRawFd as _;
        listener.into_raw_fd()
    });
    let listener = listener.filter(|&listener| seccomp_unotify::is_listener(listener));
    // Should the supervisor be gone, this keeper serves alone.
    let _ = pass_descriptor::send(control, status, listener);
    let _ = pass_descriptor::send(child, 0, None);
    // SAFETY: this process' own descriptor, not used again.
    unsafe { libc::close(child) };
    listener
}

/// Lets the first call of all pass, then tells the waiting supervisor. `false` if nobody is left to make a call.
///
/// So the ledger has a number before the supervisor receives a call: the kernel draws the first number at random, and a
/// supervisor may be killed before it has noted any.
///
/// Wherever this keeper is killed, the next one goes on: the received call is in the ledger's room, and it is noted
/// only when it has been answered.
fn begin(ledger: &CallLedger, listener: RawFd, control: RawFd) -> bool {
    let first = loop {
        if let Some(first) = ledger.first().received() {
            break first;
        }
        match seccomp_unotify::is_waiting(listener, -1) {
            ListenerState::NobodyLeft => return false,
            ListenerState::Nothing => {}
            ListenerState::Call => {
                let _ = ledger.first().receive(listener);
            }
        }
    };
    // That the call is gone is no error.
    let _ = seccomp_unotify::answer(listener, first, NoticeAnswer::Continue);
    ledger.received(first);
    ledger.handled(first);
    let _ = pass_descriptor::send(control, 0, None);
    true
}

fn watch(ledger: &CallLedger, lifelines: &Lifelines, listener: RawFd) -> ! {
    let mut beats = ledger.beats();
    loop {
        let mut polled = [
            polled(listener, 0),
            polled(lifelines.control, 0),
            polled(lifelines.supervisor, libc::POLLIN),
        ];
        // SAFETY: three `pollfd`s, valid for writes.
        unsafe { libc::poll(polled.as_mut_ptr(), 3, TICK_MS) };
        let [of_listener, of_control, of_supervisor] = polled;
        if of_listener.revents != 0 {
            end();
        }
        if of_control.revents != 0 || of_supervisor.revents != 0 {
            serve(ledger, listener, || false);
        }
        let now = ledger.beats();
        let stands_still = now == beats
            && (ledger.has_waiting()
                || seccomp_unotify::is_waiting(listener, 0) == ListenerState::Call);
        if stands_still {
            serve(ledger, listener, || ledger.beats() != now);
        }
        beats = ledger.beats();
    }
}

/// Lets all calls pass until the supervisor is back, or nobody is left to serve.
fn serve(ledger: &CallLedger, listener: RawFd, is_back: impl Fn() -> bool) {
    for id in ledger.unanswered() {
        ledger.answer(listener, id);
    }
    while !is_back() {
        match seccomp_unotify::is_waiting(listener, TICK_MS) {
            ListenerState::NobodyLeft => end(),
            ListenerState::Nothing => {}
            ListenerState::Call => {
                // A supervisor that is back may be first, and whoever sleeps in the receipt looks at nothing else.
                alarm_in(TICK_MS);
                let received = seccomp_unotify::receive(listener);
                alarm_in(0);
                if let Ok(notice) = received {
                    // For a supervisor that comes and ends this keeper: it answers what was received last.
                    ledger.received(notice.id);
                    ledger.answer(listener, notice.id);
                    ledger.handled(notice.id);
                }
            }
        }
    }
}

/// Has a signal interrupt this process' waiting after `ms` milliseconds; 0: never.
fn alarm_in(ms: i32) {
    let time = |ms: i32| libc::timeval { tv_sec: 0, tv_usec: libc::suseconds_t::from(ms) * 1000 };
    // Again and again: the first one may come before it waits.
    let timer = libc::itimerval { it_interval: time(ms), it_value: time(ms) };
    // SAFETY: a timer that is valid for reads.
    unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const timer, std::ptr::null_mut()) };
}

extern "C" fn wake_up(_: libc::c_int) {}

/// Ends a keeper whose supervisor is gone, and answers the calls that the supervisor had in its hands.
pub(crate) fn relieve(ledger: &CallLedger, keeper: u32, listener: RawFd) {
    if let Some(keeper) = i32::try_from(keeper).ok().and_then(Pid::from_raw)
        && let Ok(process) = pidfd_open(keeper, PidfdFlags::empty())
        && is_keeper(keeper)
        && pidfd_send_signal(&process, Signal::KILL).is_ok()
    {
        let mut polled = polled(process.as_raw_fd(), libc::POLLIN);
        // SAFETY: one `pollfd`, valid for writes.
        unsafe { libc::poll(&raw mut polled, 1, END_TIMEOUT_MS) };
    }
    if let Some(first) = ledger.first().received().filter(|_| !ledger.has_begun()) {
        ledger.answer(listener, first);
    }
    for id in ledger.unanswered() {
        ledger.answer(listener, id);
    }
    ledger.all_answered();
}

/// Whether a process number is still a keeper's.
fn is_keeper(process: Pid) -> bool {
    let name = std::fs::read_to_string(format!("/proc/{}/comm", process.as_raw_nonzero()));
    name.is_ok_and(|name| name.trim_end() == PROCESS_NAME.to_str().unwrap_or_default())
}

/// Leaves the supervisor's session, signals and open files behind, except the descriptors in `kept`.
fn settle(ledger: &CallLedger, mut kept: [RawFd; 3]) {
    // 1. Descriptors. Sorted by hand: three numbers, and no code that may panic.
    let [a, b, c] = &mut kept;
    for _ in 0..2 {
        if *a > *b {
            std::mem::swap(a, b);
        }
        if *b > *c {
            std::mem::swap(b, c);
        }
    }
    let close = |first: RawFd, last: u32| {
        if first as u32 <= last {
            // SAFETY: descriptors that this process does not use.
            unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
        }
    };
    for (first, before) in [(0, *a), (*a + 1, *b), (*b + 1, *c)] {
        if before > 0 {
            close(first, before as u32 - 1);
        }
    }
    close(*c + 1, u32::MAX);
    // 2. Session, signals, name, folder and OOM score.
    // SAFETY: plain numbers, a C string, and a full set of signals of this function's own.
    unsafe {
        // The terminal's and the shell's signals are for the supervisor, not for who has to outlive it.
        libc::setsid();
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::sigdelset(&raw mut all, libc::SIGALRM);
        // Without SA_RESTART.
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = wake_up as *const () as usize;
        libc::sigaction(libc::SIGALRM, &raw const action, std::ptr::null_mut());
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
        libc::prctl(libc::PR_SET_NAME, PROCESS_NAME.as_ptr());
        libc::chdir(c"/".as_ptr());
        let fd = libc::open(c"/proc/self/oom_score_adj".as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        if fd >= 0 {
            libc::write(fd, c"-1000".as_ptr().cast(), 5);
            libc::close(fd);
        }
    }
    // 3. Memory.
    let local = 0_u8;
    // SAFETY: `mlock` changes nothing but that the pages stay.
    unsafe { libc::mlock(std::ptr::from_ref(ledger).cast(), size_of::<CallLedger>()) };
    lock(std::ptr::from_ref(&local).addr());
    // The code: this module's, and the C library's that it calls.
    let functions: [*const (); 7] = [
        watch as *const (),
        CallLedger::answer as *const (),
        seccomp_unotify::receive as *const (),
        seccomp_unotify::answer as *const (),
        seccomp_unotify::is_waiting as *const (),
        libc::ioctl as *const (),
        libc::poll as *const (),
    ];
    for function in functions {
        lock(function.addr());
    }
}

/// Keeps the page of `address` and its neighbours in memory. Without the right to lock memory, does nothing.
fn lock(address: usize) {
    const PAGE_BYTES: usize = 4096;
    let page = address & !(PAGE_BYTES - 1);
    for page in [page.wrapping_sub(PAGE_BYTES), page, page.wrapping_add(PAGE_BYTES)] {
        // SAFETY: `mlock` changes nothing but that the page stays; where there is none it fails.
        unsafe { libc::mlock(std::ptr::without_provenance(page), PAGE_BYTES) };
    }
}

fn end() -> ! {
    // SAFETY: ends the process without running anything of the supervisor's.
    unsafe { libc::_exit(0) }
}
