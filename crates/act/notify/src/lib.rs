//! The notifier: brings the calls of programs into rounds where no library can be loaded.
//!
//! A program and all that it starts run under a filter of system calls (seccomp). By the filter, the kernel notifies
//! a supervisor of every `fsync` and `fdatasync`. The supervisor holds the call and lets it go on
//! (`SECCOMP_USER_NOTIF_FLAG_CONTINUE`): each thread makes its own call in the kernel, so durability, errors and
//! accounting stay its own.
//!
//! - [`seccomp_filter`]: the filter, for every architecture of the kernel; [`available`] says whether this kernel can.
//! - `seccomp_unotify`: the kernel's interface; `pass_descriptor`: descriptors from process to process.
//! - [`filter_installation`]: the program's process before it becomes the program.
//! - `call_receiver`: threads that do nothing but receive calls; `serving_priority`: their priority.
//! - `call_sorter`: lets calls go on as soon as they are received, or takes their files over.
//! - `keeper_process`: a process that lets all calls pass when the supervisor is gone; `call_ledger`: what it knows.
//! - `fetch_file`: a caller's file; `kept_file`: the same until the answer; `early_writers`: its early write.
//! - `deferred_close`: files of servers that wait to be closed.
//! - `call_maker`: the maker of a call; `known_callers`: the memory of callers; `synced_file_systems`: of file systems.
//! - `notified_calls`: the way of each call; `held_calls`: those that wait; `release_watcher`: notices that others
//!   release their round.
//! - `layers`: the file system below an overlay; [`container_handover`], `container_runtime`: listeners that a
//!   container's runtime hands over.
//! - `attach`: puts a process under the filter that runs already.
//! - [`supervisor_loop`]: the event loop; [`command_notifier`]: all of it, for one command; [`service_notifier`]: for
//!   services that systemd starts.
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
pub(crate) mod call_ledger;
pub(crate) mod call_maker;
pub(crate) mod call_receiver;
pub(crate) mod call_sorter;
pub mod command_notifier;
pub mod container_handover;
pub(crate) mod container_runtime;
pub(crate) mod deferred_close;
pub(crate) mod early_writers;
pub(crate) mod fetch_file;
pub mod filter_installation;
pub(crate) mod held_calls;
pub(crate) mod keeper_process;
pub(crate) mod kept_file;
pub(crate) mod known_callers;
pub(crate) mod notified_calls;
pub(crate) mod overlay_devices;
pub(crate) mod pass_descriptor;
pub(crate) mod realtime_priority;
pub(crate) mod release_watcher;
pub mod seccomp_filter;
pub(crate) mod seccomp_unotify;
pub mod service_notifier;
pub(crate) mod serving_priority;
pub mod supervisor_loop;
pub(crate) mod synced_file_systems;

pub use seccomp_unotify::{available, is_privileged};

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
