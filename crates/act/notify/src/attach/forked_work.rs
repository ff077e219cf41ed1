//! Work that no signal may interrupt: a forked child does it in a session of its own, with all signals blocked.

use std::io::{self, Read as _, Write as _};
use std::mem::MaybeUninit;

/// Blocks all signals of the calling thread until this is dropped.
struct Blocked(libc::sigset_t);

impl Blocked {
    fn begin() -> Self {
        let mut all = MaybeUninit::<libc::sigset_t>::zeroed();
        let mut before = MaybeUninit::<libc::sigset_t>::zeroed();
        // SAFETY: two sets of this function's own; the second one is filled when the call returns.
        unsafe {
            libc::sigfillset(all.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
            Self(before.assume_init())
        }
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        // SAFETY: a set that the kernel has filled.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, std::ptr::null_mut())
        };
    }
}

/// Does `work` in a child and returns its text; `None` if the child was killed.
///
/// The terminal, a closed session and signals for this process do not reach the child; they wait until it is done. To
/// be called while this process has one thread.
///
/// # Errors
/// If there can be no further process.
pub fn apart(work: impl FnOnce() -> String) -> io::Result<Option<String>> {
    let (mut reader, mut writer) = io::pipe()?;
    let _blocked = Blocked::begin();
    // SAFETY: the child goes on alone as this process does, and never returns from here.
    let child = match unsafe { libc::fork() } {
        0 => {
            drop(reader);
            // SAFETY: plain calls.
            unsafe { libc::setsid() };
            let text = work();
            // Without a parent there is nobody to tell.
            let _ = writer.write_all(text.as_bytes());
            // SAFETY: ends the child without running anything of its parent's.
            unsafe { libc::_exit(0) }
        }
        child => child,
    };
    if child < 0 {
        return Err(io::Error::last_os_error());
    }
    drop(writer);
    let mut text = String::new();
    let read = reader.read_to_string(&mut text);
    let mut status = 0;
    // SAFETY: this process' own child, which nobody else waits for; `status` is valid for writes.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    read?;
    Ok(libc::WIFEXITED(status).then_some(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_apart_has_a_session_of_its_own_and_no_signals() {
        let text = apart(|| {
            // SAFETY: plain calls.
            unsafe {
                libc::raise(libc::SIGINT);
                libc::kill(0, libc::SIGTERM);
                format!("{}", libc::getsid(0) == libc::getpid())
            }
        });
        assert_eq!(text.unwrap().as_deref(), Some("true"));
    }

    #[test]
    fn a_child_that_is_killed_says_nothing() {
        // SAFETY: ends the child alone.
        let text = apart(|| unsafe {
            libc::kill(libc::getpid(), libc::SIGKILL);
            String::new()
        });
        assert_eq!(text.unwrap(), None);
    }
}
