//! The kernel's interface for notified system calls: seccomp_unotify(2). Nothing here allocates.

use std::os::fd::{AsRawFd as _, BorrowedFd, RawFd};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;

use luc_gate::writeback_errors;
use rustix::io::Errno;
use rustix::thread::CapabilitySet;

use crate::NotifyError;
use crate::realtime_priority::RealTimePriority;

/// Room for the kernel's `struct seccomp_notif`, which may grow.
const NOTICE_BYTES: usize = 256;

/// A system call that waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SyscallNotice {
    /// Number of the call: those of one listener count up by one.
    pub(crate) id: u64,
    pub(crate) thread: u32,
    pub(crate) architecture: u32,
    pub(crate) number: u32,
    /// First argument: a descriptor, for the calls that are notified.
    pub(crate) fd: i32,
}

/// A thread, and the descriptor that its call names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ThreadFd {
    pub(crate) thread: u32,
    pub(crate) fd: i32,
}

impl SyscallNotice {
    pub(crate) fn of_thread(&self) -> ThreadFd {
        ThreadFd { thread: self.thread, fd: self.fd }
    }
}

/// `struct seccomp_notif` with room behind it.
#[repr(C)]
union Buffer {
    notice: libc::seccomp_notif,
    bytes: [u8; NOTICE_BYTES],
}

/// Receives the next call; sleeps until there is one, so ask [`is_waiting`] first.
///
/// # Errors
/// `ENOENT` if the call's thread has been killed meanwhile.
pub(crate) fn receive(listener: RawFd) -> Result<SyscallNotice, Errno> {
    let mut buffer = Buffer { bytes: [0; NOTICE_BYTES] };
    // SAFETY: the buffer is zeroed as the kernel demands, and larger than what it writes (see `available`).
    let result = unsafe { libc::ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut buffer) };
    if result != 0 {
        return Err(last());
    }
    // SAFETY: plain integers, for which all bytes are valid.
    let notice = unsafe { buffer.notice };
    Ok(SyscallNotice {
        id: notice.id,
        thread: notice.pid,
        architecture: notice.data.arch,
        number: notice.data.nr as u32,
        fd: notice.data.args[0] as i32,
    })
}

/// Room for a call in memory that processes share. All zeros is its beginning.
#[repr(transparent)]
#[derive(Debug)]
pub(crate) struct NoticeBuffer([AtomicU64; NOTICE_BYTES / 8]);

impl NoticeBuffer {
    /// Receives a call into the room, once. The kernel writes the call's number there before a signal can end the
    /// receiver. So other processes know the number even then.
    ///
    /// # Errors
    /// As [`receive`]; `EINVAL` if a call is there.
    pub(crate) fn receive(&self, listener: RawFd) -> Result<(), Errno> {
        let room = self.0.as_ptr().cast_mut();
        // SAFETY: as large as what the kernel writes (see `available`), and atomics, so shared with whoever reads them.
        let result = unsafe { libc::ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_RECV, room) };
        if result == 0 { Ok(()) } else { Err(last()) }
    }

    /// The number of the call that was received; `None` if none was.
    pub(crate) fn received(&self) -> Option<u64> {
        // The number is the first field.
        let id = self.0[0].load(SeqCst);
        (id != 0).then_some(id)
    }
}

/// Answer to a notified system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoticeAnswer {
    /// The thread makes its call in the kernel.
    Continue,
    /// The call is not made and returns 0.
    Done,
    /// The call is not made and fails with this `errno`.
    Fail(i32),
}

/// Answers a call.
///
/// # Errors
/// `ENOENT` if the call is gone, so that nobody is told; `EINPROGRESS` if it was answered before.
pub(crate) fn answer(listener: RawFd, id: u64, answer: NoticeAnswer) -> Result<(), Errno> {
    let (error, flags) = match answer {
        NoticeAnswer::Continue => (0, libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32),
        NoticeAnswer::Done => (0, 0),
        NoticeAnswer::Fail(errno) => (-errno, 0),
    };
    let mut response = libc::seccomp_notif_resp { id, val: 0, error, flags };
    // SAFETY: the kernel reads the response.
    let result =
        unsafe { libc::ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut response) };
    if result == 0 { Ok(()) } else { Err(last()) }
}

/// Maximum number of calls answered in one period of real-time priority, which so lasts about 0.2 ms at most.
const MAX_CALLS_AT_ONCE: usize = 64;

/// Lets calls go on, those of a round all at once.
///
/// Their commit begins with the first one. A caller that comes after its first flush waits for a flush of its own.
/// Callers woken on this processor, or by a thread of ordinary priority, would take the processor before the last
/// answer.
pub(crate) fn let_all_go(listener: BorrowedFd<'_>, mut ids: impl ExactSizeIterator<Item = u64>) {
    let is_crowd = ids.len() > 1;
    if is_crowd {
        wake_on_this_processor(listener, false);
    }
    while ids.len() > 0 {
        let _undisturbed = is_crowd.then(RealTimePriority::begin);
        for id in ids.by_ref().take(MAX_CALLS_AT_ONCE) {
            // That the call is gone is no error.
            let _ = answer(listener.as_raw_fd(), id, NoticeAnswer::Continue);
        }
    }
    if is_crowd {
        wake_on_this_processor(listener, true);
    }
}

/// Whether the call still waits for its answer: then its thread is the one that it named.
pub(crate) fn is_valid(listener: RawFd, id: u64) -> bool {
    // SAFETY: the kernel reads the number.
    unsafe { libc::ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &raw const id) == 0 }
}

/// Whether a descriptor is a listener: anything may come over a socket.
pub(crate) fn is_listener(fd: RawFd) -> bool {
    let no_call = 0_u64;
    // No call has the number 0 and waits, so a listener says that there is none, and others that they know no such
    // question. SAFETY: the kernel reads the number.
    let result = unsafe { libc::ioctl(fd, libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &raw const no_call) };
    result == 0 || writeback_errors::errno() == libc::ENOENT
}

/// Has the kernel wake the supervisor and the caller on the same processor if `on_this`, else anywhere. Each of the
/// two waits for the other. Kernels before 6.6 refuse, and wake them anywhere.
pub(crate) fn wake_on_this_processor(listener: BorrowedFd<'_>, on_this: bool) {
    const SYNC_WAKE_UP: libc::c_ulong = 1;
    // SAFETY: plain integers.
    unsafe {
        libc::ioctl(
            listener.as_raw_fd(),
            libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS,
            if on_this { SYNC_WAKE_UP } else { 0 },
        )
    };
}

/// State of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListenerState {
    /// A call can be received.
    Call,
    Nothing,
    /// No process is under the filter any more.
    NobodyLeft,
}

/// A descriptor to be polled for `events`.
pub(crate) fn polled(fd: RawFd, events: libc::c_short) -> libc::pollfd {
    libc::pollfd { fd, events, revents: 0 }
}

/// Looks whether a call can be received.
pub(crate) fn is_waiting(listener: RawFd, timeout_ms: i32) -> ListenerState {
    let mut polled = polled(listener, libc::POLLIN);
    // SAFETY: one `pollfd`, valid for writes.
    unsafe { libc::poll(&raw mut polled, 1, timeout_ms) };
    if polled.revents & libc::POLLIN != 0 {
        ListenerState::Call
    } else if polled.revents & (libc::POLLHUP | libc::POLLERR | libc::POLLNVAL) != 0 {
        ListenerState::NobodyLeft
    } else {
        ListenerState::Nothing
    }
}

/// Flags of the filter's installation.
///
/// Without WAIT_KILLABLE_RECV (Linux 5.19) a signal would restart a held call as a new one, and Go preempts by signals.
/// The flag acts from the receipt of a call on: see `call_receiver`. Without SPEC_ALLOW, kernels before 5.16 turn a
/// mitigation on that slows the program.
pub(crate) const FLAGS: libc::c_ulong = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER
    | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
    | libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW;

/// Checks that this kernel can notify of calls in the way that the notifier needs.
///
/// # Errors
/// [`NotifyError`], naming the missing part.
pub fn available() -> Result<(), NotifyError> {
    if !super::seccomp_filter::is_known() {
        return Err(NotifyError::Architecture);
    }
    // A filter at no address is refused with EFAULT once the flags have been found good.
    // SAFETY: a null pointer, which the kernel does not follow but reports.
    let result = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            FLAGS,
            std::ptr::null::<libc::sock_fprog>(),
        )
    };
    match last() {
        Errno::FAULT if result != 0 => {}
        errno => return Err(NotifyError::Kernel(errno)),
    }
    let mut sizes =
        libc::seccomp_notif_sizes { seccomp_notif: 0, seccomp_notif_resp: 0, seccomp_data: 0 };
    // SAFETY: the kernel writes the three sizes.
    let result = unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_NOTIF_SIZES, 0, &raw mut sizes)
    };
    if result != 0 {
        return Err(NotifyError::Kernel(last()));
    }
    if usize::from(sizes.seccomp_notif) > NOTICE_BYTES {
        return Err(NotifyError::Kernel(Errno::TOOBIG));
    }
    Ok(())
}

/// Whether this process may put others under a filter and leave them the chance to gain privileges. That takes
/// CAP_SYS_ADMIN; without it the kernel demands `no_new_privs`.
#[must_use]
pub fn is_privileged() -> bool {
    rustix::thread::capabilities(None)
        .is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_ADMIN))
}

fn last() -> Errno {
    Errno::from_raw_os_error(writeback_errors::errno())
}
