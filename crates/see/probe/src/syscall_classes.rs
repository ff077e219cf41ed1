//! Classes of system calls, by their numbers on this architecture.

use libc::c_long;
use luc_events::WaitCause;
use luc_events::event_kinds::{FileCallKind, SyncKind};

use crate::ring_records::{
    Config, SYSCALLS, buffer_class, call_class, call_test, pipe_class, receive_class, send_class,
};

/// Kinds of brief waits, in the order of their numbers, as causes.
pub(crate) const BRIEF_CAUSES: [WaitCause; crate::ring_records::BRIEF] = [
    WaitCause::Preempted,
    WaitCause::Futex,
    WaitCause::Sleep,
    WaitCause::Poll,
    WaitCause::PipeSocket,
    WaitCause::Other,
    WaitCause::Frozen,
    WaitCause::Stopped,
    WaitCause::Throttled,
    WaitCause::FullPipe,
    WaitCause::AsyncIo,
];

/// Flag of a class: of a read or a write, so that its file decides.
const BY_FILE: u8 = 0x80;

/// Calls that make data durable.
const SYNCS: &[(c_long, SyncKind)] = &[
    (libc::SYS_fsync, SyncKind::Fsync),
    (libc::SYS_fdatasync, SyncKind::Fdatasync),
    (libc::SYS_msync, SyncKind::Msync),
    (libc::SYS_sync_file_range, SyncKind::SyncFileRange),
    (libc::SYS_syncfs, SyncKind::Syncfs),
];

/// Calls that change a file system.
const CALLS: &[(c_long, FileCallKind)] = &[
    (libc::SYS_write, FileCallKind::Write),
    (libc::SYS_pwrite64, FileCallKind::Write),
    (libc::SYS_writev, FileCallKind::Write),
    (libc::SYS_pwritev, FileCallKind::Write),
    (libc::SYS_pwritev2, FileCallKind::Write),
    (libc::SYS_openat, FileCallKind::Create),
    (libc::SYS_unlinkat, FileCallKind::Unlink),
    (libc::SYS_renameat2, FileCallKind::Rename),
    (libc::SYS_mkdirat, FileCallKind::Mkdir),
    (libc::SYS_truncate, FileCallKind::Truncate),
    (libc::SYS_ftruncate, FileCallKind::Truncate),
    (libc::SYS_fallocate, FileCallKind::Fallocate),
    // The C library's rename() calls this on 64-bit Arm.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    (libc::SYS_renameat, FileCallKind::Rename),
];

/// Calls that only older architectures have.
#[cfg(target_arch = "x86_64")]
const OLD_CALLS: &[(c_long, FileCallKind)] = &[
    (libc::SYS_open, FileCallKind::Create),
    (libc::SYS_creat, FileCallKind::Create),
    (libc::SYS_unlink, FileCallKind::Unlink),
    (libc::SYS_rmdir, FileCallKind::Unlink),
    (libc::SYS_rename, FileCallKind::Rename),
    (libc::SYS_mkdir, FileCallKind::Mkdir),
];
#[cfg(not(target_arch = "x86_64"))]
const OLD_CALLS: &[(c_long, FileCallKind)] = &[];

/// Number of `io_pgetevents`, which the library `libc` lacks on some architectures.
const IO_PGETEVENTS: c_long = if cfg!(target_arch = "x86_64") { 333 } else { 292 };

/// Causes of interruptible sleeps in these calls, for any stack.
const SLEEPS: &[(c_long, WaitCause)] = &[
    (libc::SYS_futex, WaitCause::Futex),
    (libc::SYS_nanosleep, WaitCause::Sleep),
    (libc::SYS_clock_nanosleep, WaitCause::Sleep),
    (libc::SYS_ppoll, WaitCause::Poll),
    (libc::SYS_pselect6, WaitCause::Poll),
    (libc::SYS_epoll_pwait, WaitCause::Poll),
    (libc::SYS_epoll_pwait2, WaitCause::Poll),
    (libc::SYS_wait4, WaitCause::Poll),
    (libc::SYS_waitid, WaitCause::Poll),
    (libc::SYS_rt_sigtimedwait, WaitCause::Poll),
    (libc::SYS_rt_sigsuspend, WaitCause::Poll),
    (libc::SYS_io_getevents, WaitCause::AsyncIo),
    (IO_PGETEVENTS, WaitCause::AsyncIo),
    (libc::SYS_io_uring_enter, WaitCause::AsyncIo),
    (libc::SYS_recvfrom, WaitCause::PipeSocket),
    (libc::SYS_recvmsg, WaitCause::PipeSocket),
    (libc::SYS_sendto, WaitCause::PipeSocket),
    (libc::SYS_sendmsg, WaitCause::PipeSocket),
    (libc::SYS_accept4, WaitCause::PipeSocket),
    (libc::SYS_connect, WaitCause::PipeSocket),
];

/// Causes of interruptible sleeps in these calls, if they are for a pipe. A socket's is [`WaitCause::PipeSocket`].
const PIPE_SLEEPS: &[(c_long, WaitCause)] = &[
    (libc::SYS_read, WaitCause::PipeSocket),
    (libc::SYS_readv, WaitCause::PipeSocket),
    (libc::SYS_pread64, WaitCause::PipeSocket),
    (libc::SYS_preadv, WaitCause::PipeSocket),
    (libc::SYS_preadv2, WaitCause::PipeSocket),
    (libc::SYS_write, WaitCause::FullPipe),
    (libc::SYS_writev, WaitCause::FullPipe),
];

/// Calls that only older architectures have.
#[cfg(target_arch = "x86_64")]
const OLD_SLEEPS: &[(c_long, WaitCause)] = &[
    (libc::SYS_poll, WaitCause::Poll),
    (libc::SYS_select, WaitCause::Poll),
    (libc::SYS_epoll_wait, WaitCause::Poll),
    (libc::SYS_pause, WaitCause::Poll),
    (libc::SYS_accept, WaitCause::PipeSocket),
];
#[cfg(not(target_arch = "x86_64"))]
const OLD_SLEEPS: &[(c_long, WaitCause)] = &[(libc::SYS_accept, WaitCause::PipeSocket)];

/// Calls that send on the socket of their first argument, and the meaning of their results.
const SENDS: &[(c_long, u8)] = &[
    (libc::SYS_write, send_class::BYTES),
    (libc::SYS_writev, send_class::BYTES),
    (libc::SYS_sendto, send_class::BYTES),
    (libc::SYS_sendmsg, send_class::BYTES),
    (libc::SYS_sendmmsg, send_class::MESSAGES),
    (libc::SYS_sendfile, send_class::BYTES),
];

/// Calls that send or receive on a socket, and the meaning of their second argument.
const BUFFERS: &[(c_long, u8)] = &[
    (libc::SYS_read, buffer_class::BYTES),
    (libc::SYS_write, buffer_class::BYTES),
    (libc::SYS_recvfrom, buffer_class::BYTES),
    (libc::SYS_sendto, buffer_class::BYTES),
    (libc::SYS_readv, buffer_class::VECTOR),
    (libc::SYS_writev, buffer_class::VECTOR),
    (libc::SYS_recvmsg, buffer_class::MESSAGE),
    (libc::SYS_sendmsg, buffer_class::MESSAGE),
];

/// Calls that receive from the socket of their first argument, and the place of their flags.
const RECEIVES: &[(c_long, u8)] = &[
    (libc::SYS_read, receive_class::PLAIN),
    (libc::SYS_readv, receive_class::PLAIN),
    (libc::SYS_recvmsg, receive_class::FLAGS_3),
    (libc::SYS_recvfrom, receive_class::FLAGS_4),
];

/// Calls that read from pipes and write into them.
const PIPES: &[(c_long, u8)] = &[
    (libc::SYS_read, pipe_class::READS),
    (libc::SYS_readv, pipe_class::READS),
    (libc::SYS_write, pipe_class::WRITES),
    (libc::SYS_writev, pipe_class::WRITES),
    (libc::SYS_vmsplice, pipe_class::WRITES),
    (libc::SYS_sendfile, pipe_class::WRITES),
    (libc::SYS_splice, pipe_class::SPLICES),
];

/// Fills the tables that are indexed by the number of a system call.
pub(crate) fn fill(config: &mut Config) {
    for &(number, kind) in SYNCS {
        set(&mut config.call_class, number, call_class::SYNC + kind.code());
    }
    for &(number, kind) in CALLS.iter().chain(OLD_CALLS) {
        set(&mut config.call_class, number, call_class::OTHER + kind.code());
    }
    for &(number, class) in SENDS {
        set(&mut config.send_class, number, class);
    }
    for &(number, class) in BUFFERS {
        set(&mut config.buffer_class, number, class);
    }
    if config.send_ends == 0 {
        for &(number, class) in RECEIVES {
            set(&mut config.receive_class, number, class);
        }
    }
    if config.pipes != 0 {
        for &(number, class) in PIPES {
            set(&mut config.pipe_class, number, class);
        }
    }
    set(&mut config.call_test, libc::SYS_msync, call_test::MSYNC_3);
    set(&mut config.call_test, libc::SYS_openat, call_test::CREATE_3);
    #[cfg(target_arch = "x86_64")]
    set(&mut config.call_test, libc::SYS_open, call_test::CREATE_2);
    let class = |cause| BRIEF_CAUSES.iter().position(|&known| known == cause);
    for &(number, cause) in SLEEPS.iter().chain(OLD_SLEEPS) {
        if let Some(class) = class(cause) {
            set(&mut config.brief_class, number, class as u8 + 1);
        }
    }
    for &(number, cause) in PIPE_SLEEPS {
        if let Some(class) = class(cause) {
            set(&mut config.brief_class, number, (class as u8 + 1) | BY_FILE);
        }
    }
}

fn set(table: &mut [u8; SYSCALLS], number: c_long, value: u8) {
    let place = usize::try_from(number).ok().and_then(|number| table.get_mut(number));
    if let Some(place) = place {
        *place = value;
    }
}
