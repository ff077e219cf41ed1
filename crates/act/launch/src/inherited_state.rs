//! State that this process inherited and has changed: a command gets it as it was.
//!
//! Before `main`, Rust's runtime ignores SIGPIPE and opens standard descriptors that are closed. `luc` waits for
//! children and raises limits.

use std::sync::OnceLock;

use libc::c_int;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::signals::is_ignored;

/// Limits that parts of `luc` raise for this process.
const RAISED_LIMITS: [Resource; 2] = [Resource::Nofile, Resource::Memlock];

/// State as this process inherited it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InheritedState {
    ignores_pipe: bool,
    ignores_child: bool,
    /// Whether each standard descriptor is closed.
    closed: [bool; 3],
    limits: [Rlimit; 2],
    /// Signal that the parent's end sends; 0: none. A forked child has none.
    parent_death: c_int,
}

static AT_START: OnceLock<InheritedState> = OnceLock::new();

#[used]
// SAFETY: the loader calls each entry of this section once, before Rust's runtime. What is done there needs no runtime.
#[unsafe(link_section = ".init_array")]
static NOTE: extern "C" fn() = note;

extern "C" fn note() {
    AT_START.get_or_init(InheritedState::now);
}

impl InheritedState {
    /// The state before `main`.
    pub(crate) fn at_start() -> Self {
        *AT_START.get_or_init(Self::now)
    }

    fn now() -> Self {
        let mut parent_death = 0;
        // SAFETY: a number that the kernel writes.
        unsafe { libc::prctl(libc::PR_GET_PDEATHSIG, &raw mut parent_death) };
        Self {
            parent_death,
            ignores_pipe: is_ignored(libc::SIGPIPE),
            ignores_child: is_ignored(libc::SIGCHLD),
            // SAFETY: plain numbers.
            closed: [0, 1, 2].map(|fd| unsafe { libc::fcntl(fd, libc::F_GETFD) } < 0),
            limits: RAISED_LIMITS.map(getrlimit),
        }
    }

    /// Restores the state in a forked child, before it executes the program: async-signal-safe. A descriptor that is
    /// `replaced` stays open.
    pub(crate) fn restore(&self, replaced: Option<c_int>) {
        let signals = [(libc::SIGPIPE, self.ignores_pipe), (libc::SIGCHLD, self.ignores_child)];
        for (signal, ignores) in signals {
            let action = if ignores { libc::SIG_IGN } else { libc::SIG_DFL };
            // SAFETY: no handler.
            unsafe { libc::signal(signal, action) };
        }
        for (fd, is_closed) in (0..).zip(self.closed) {
            if is_closed && replaced != Some(fd) {
                // SAFETY: opened by Rust's runtime, for nobody.
                unsafe { libc::close(fd) };
            }
        }
        if self.parent_death != 0 {
            // SAFETY: plain numbers.
            unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, self.parent_death) };
        }
        for (resource, limit) in RAISED_LIMITS.into_iter().zip(self.limits) {
            if getrlimit(resource) != limit {
                // Less than what it has is never refused.
                let _ = setrlimit(resource, limit);
            }
        }
    }
}
