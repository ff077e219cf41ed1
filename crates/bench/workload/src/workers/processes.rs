//! Clients as forked processes.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::run_control::{RunControl, dismiss};
use super::{RunProgress, RunSchedule, coordinate};
use crate::error::BenchError;

/// Runs `client_main` in one forked process per client.
pub(super) fn run<F>(
    schedule: &RunSchedule,
    control: &RunControl,
    client_main: F,
    tick: &mut dyn FnMut(RunProgress),
) -> Result<(), BenchError>
where
    F: Fn(usize) + Sync,
{
    let threads = thread_count();
    if threads != 1 {
        return Err(BenchError::Threaded { threads });
    }
    let mut children = Children::default();
    for index in 0..schedule.clients {
        match fork_client(&client_main, index) {
            Ok(pid) => children.alive.push((index, pid)),
            Err(reason) => {
                dismiss(control);
                children.wait_all();
                let clients = schedule.clients;
                return Err(BenchError::Start { client: index + 1, clients, reason });
            }
        }
    }
    let outcome = coordinate(schedule, control, || children.find_dead(), tick);
    if outcome.is_err() {
        dismiss(control);
    }
    children.wait_all();
    outcome?;
    children.failed.map_or(Ok(()), Err)
}

/// Counts the threads of this process, from /proc; 1 if that cannot be read.
fn thread_count() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(1, |tasks| tasks.count())
}

fn fork_client(client_main: &(impl Fn(usize) + Sync), index: usize) -> io::Result<libc::pid_t> {
    // SAFETY: getpid has no preconditions.
    let parent = unsafe { libc::getpid() };
    // SAFETY: this process has one thread (checked by the caller), so the child may do anything
    // that the parent may.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            // SAFETY: plain integers; a client must not outlive a coordinator that was killed.
            unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
            // SAFETY: getppid has no preconditions. The parent may have died before the prctl.
            let orphan = unsafe { libc::getppid() } != parent;
            let status = if orphan {
                1
            } else {
                match catch_unwind(AssertUnwindSafe(|| client_main(index))) {
                    Ok(()) => 0,
                    Err(_) => 101,
                }
            };
            // SAFETY: ends the child without running the parent's destructors a second time.
            unsafe { libc::_exit(status) }
        }
        pid => Ok(pid),
    }
}

#[derive(Default)]
struct Children {
    alive: Vec<(usize, libc::pid_t)>,
    failed: Option<BenchError>,
}

impl Children {
    /// Returns the first child that died, without waiting. A child that ended in order is none.
    fn find_dead(&mut self) -> Option<BenchError> {
        self.reap(libc::WNOHANG);
        self.failed.take()
    }

    fn wait_all(&mut self) {
        self.reap(0);
    }

    fn reap(&mut self, options: libc::c_int) {
        let Self { alive, failed } = self;
        alive.retain(|&(index, pid)| {
            let mut status = 0;
            let reaped = loop {
                // SAFETY: `status` is a live local; `pid` is a child of this process not reaped yet.
                let reaped = unsafe { libc::waitpid(pid, &raw mut status, options) };
                if reaped != -1 || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                    break reaped;
                }
            };
            if reaped == 0 {
                return true;
            }
            let how = if libc::WIFSIGNALED(status) {
                format!("signal {}", libc::WTERMSIG(status))
            } else if libc::WEXITSTATUS(status) != 0 {
                format!("exit status {}", libc::WEXITSTATUS(status))
            } else {
                return false;
            };
            failed.get_or_insert(BenchError::Died { client: index + 1, how });
            false
        });
    }
}
