//! The notifier: brings the calls of programs into rounds where no library can be loaded.
//!
//! A program and all that it starts run under a filter of system calls (seccomp). By the filter, the kernel notifies
//! a supervisor of every `fsync` and `fdatasync`. The supervisor holds the call and lets it go on
//! (`SECCOMP_USER_NOTIF_FLAG_CONTINUE`): each thread makes its own call in the kernel, so durability, errors and
//! accounting stay its own.
//!
//! - [`filter`]: the filter, for every architecture of the kernel; [`available`] says whether this kernel can.
//! - `uapi`: the kernel's interface; `pass`: descriptors from process to process.
//! - [`child`]: the program's process before it becomes the program.
//! - `receiver`: threads that do nothing but receive calls; `pace`: their priority.
//! - `sorter`: lets calls go on as soon as they are received, or takes their files over.
//! - `keeper`: a process that lets all calls pass when the supervisor is gone; `ledger`: what it knows.
//! - `fetch`: a caller's file; `kept`: the same until the answer; `writers`: its early write.
//! - `closing`: files of servers that wait to be closed.
//! - `who`: the maker of a call; `callers`: the memory of callers; `places`: of file systems.
//! - `calls`: the way of each call; `held`: those that wait; `watcher`: notices that others release their round.
//! - `layers`: the file system below an overlay; [`container`], `runtime`: listeners that a container's runtime hands over.
//! - `attach`: puts a process under the filter that runs already.
//! - [`supervisor`]: the event loop; [`session`]: all of it, for one command; [`service`]: for services that systemd starts.
//!
//! # Without seeing returns
//!
//! The supervisor does not see calls return. A caller that comes again has returned from its last call. The k-th
//! caller comes t_k after the release of its round. That time is T_commit + a_k of [`luc_control::setpoint`]. So the
//! commit is taken to end when the second caller of the round comes again. Returns are counted from there. Then k /
//! (T + a_k) is k / t_k. The controller is the same as for calls whose returns are seen. Rates are of arrivals.
//!
//! # One call, from end to end
//!
//! ```text
//! luc run ── session: keeper, sockets ──▶ launch ── fork ── child: filter, listener handed over ── exec
//!    program ── fsync ──▶ kernel: filter ──▶ supervisor ── calls: look, or count
//!                                                 │ fetch: the caller's file
//!                                                 │ writers: write its data, wait for it
//!                                                 │ held: in the rounds, until it may go
//!    program ◀── its own fsync, in the kernel ◀───┘ uapi: continue
//! ```
//!
//! Nothing in the supervisor waits for a disk or for a server. `docs/how/notifier.md` gives the reasons.

#![cfg_attr(test, expect(clippy::disallowed_methods, reason = "a test may panic"))]

#[cfg(target_arch = "x86_64")]
pub mod attach;
pub(crate) mod callers;
pub(crate) mod calls;
pub mod child;
pub(crate) mod closing;
pub mod container;
pub(crate) mod fetch;
pub mod filter;
pub(crate) mod held;
pub(crate) mod keeper;
pub(crate) mod kept;
pub(crate) mod ledger;
pub(crate) mod overlay_devices;
pub(crate) mod pace;
pub(crate) mod pass;
pub(crate) mod places;
pub(crate) mod realtime;
pub(crate) mod receiver;
pub(crate) mod runtime;
pub mod service;
pub mod session;
pub(crate) mod sorter;
pub mod supervisor;
pub(crate) mod uapi;
pub(crate) mod watcher;
pub(crate) mod who;
pub(crate) mod writers;

pub use uapi::{available, is_privileged};

/// Harm that notifications may do to a program, whatever its supervisor does.
pub const INTERRUPTS: &str = "a program whose signal handlers lack SA_RESTART may see EINTR from a notified fsync, as a \
                              signal in its first moment interrupts it";

/// Reason why calls cannot be notified, or a command not be started under the notifier. The text is one line.
#[derive(Debug, thiserror::Error)]
pub enum NotifyError {
    #[error("luc knows no system call numbers of this architecture: use --reach library")]
    Architecture,
    #[error(
        "this kernel cannot notify of system calls without restarting them at signals: it takes Linux 5.19, and a \
         sandbox that lets seccomp pass ({0}); use --reach library"
    )]
    Kernel(rustix::io::Errno),
    #[error(
        "another supervisor of system calls is above this process, and the kernel allows one: run luc outside of that \
         container or sandbox, or use --reach library"
    )]
    Taken,
    #[error("the filter of system calls was refused: {0}; use --reach library")]
    Refused(rustix::io::Errno),
    #[error("the notifier cannot {what}: {source}; use --reach library")]
    System { what: &'static str, source: std::io::Error },
}

impl NotifyError {
    pub(crate) fn system<E: Into<std::io::Error>>(what: &'static str) -> impl FnOnce(E) -> Self {
        move |error| Self::System { what, source: error.into() }
    }
}
