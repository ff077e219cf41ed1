//! The maker of a call, and whether the call is still being made.

use std::io::Read as _;
use std::time::{Duration, Instant};
use std::{fs, thread};

use crate::seccomp_unotify::{SyscallNotice, ThreadFd};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ProcessFd {
    process: u32,
    fd: i32,
}

/// The thread that makes a call, and the descriptor that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CallMaker {
    pub(crate) thread: u32,
    pub(crate) process: u32,
    /// The system call's number, in the numbering of the thread's architecture.
    pub(crate) number: u32,
    pub(crate) fd: i32,
}

impl CallMaker {
    /// The maker of the call of a notice, in this process.
    pub(crate) fn of(notice: &SyscallNotice, process: u32) -> Self {
        Self { thread: notice.thread, process, number: notice.number, fd: notice.fd }
    }

    /// The synchronized descriptor, the same until the process closes it.
    pub(crate) fn file(&self) -> ProcessFd {
        ProcessFd { process: self.process, fd: self.fd }
    }

    pub(crate) fn of_thread(&self) -> ThreadFd {
        ThreadFd { thread: self.thread, fd: self.fd }
    }

    /// Whether the thread is in this call now. One that has ended is not.
    pub(crate) fn is_making(&self) -> bool {
        let mut text = [0; 64];
        let read = fs::File::open(format!("/proc/{}/syscall", self.thread))
            .and_then(|mut file| file.read(&mut text));
        let Some(text) = read.ok().and_then(|length| text.get(..length)) else {
            return false;
        };
        // A number and hexadecimal arguments; -1 outside of calls, and "running".
        let mut words = text.split(|&byte| byte == b' ').map(str::from_utf8);
        let number = words.next().and_then(|word| word.ok()?.parse::<i32>().ok());
        let fd = words
            .next()
            .and_then(|word| u64::from_str_radix(word.ok()?.strip_prefix("0x")?, 16).ok());
        number == Some(self.number as i32) && fd.map(|fd| fd as i32) == Some(self.fd)
    }
}

/// Time that a thread may take to wait again after a signal has woken it.
const SETTLE_TIMEOUT: Duration = Duration::from_millis(10);

impl CallMaker {
    /// Waits until no signal is about to interrupt the thread's call. Before Linux 6.18, a signal that comes before
    /// an answer and is handled after it interrupts the call. The answer is then lost.
    pub(crate) fn settle(&self) {
        let begun = Instant::now();
        let path = format!("/proc/{}/status", self.thread);
        while begun.elapsed() < SETTLE_TIMEOUT {
            let status = fs::read_to_string(&path).unwrap_or_default();
            if !is_interrupted(&status) {
                return;
            }
            thread::sleep(SETTLE_TIMEOUT / 100);
        }
    }
}

/// Whether a signal wakes a thread from its call, by `/proc/THREAD/status`. A thread in state D is in a call that only
/// SIGKILL interrupts.
fn is_interrupted(status: &str) -> bool {
    let value = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.map_or("", str::trim)
    };
    let signals = |name: &str| u64::from_str_radix(value(name), 16).unwrap_or(0);
    let pending = signals("SigPnd:") | signals("ShdPnd:");
    pending & !signals("SigBlk:") != 0 && !value("State:").starts_with('D')
}

pub(crate) fn process_of(thread: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd as _;

    #[test]
    fn a_signal_that_is_not_blocked_interrupts() {
        for (state, [pending, shared, blocked], expected) in [
            ("S (sleeping)", ["0", "0", "0"], false),
            ("S (sleeping)", ["0000000000000002", "0", "0"], true),
            ("R (running)", ["0", "0000000000000006", "2"], true),
            ("S (sleeping)", ["0", "0000000000000002", "2"], false),
            ("D (disk sleep)", ["2", "0", "0"], false),
        ] {
            let status = format!(
                "State:\t{state}\nSigPnd:\t{pending}\nShdPnd:\t{shared}\nSigBlk:\t{blocked}\n"
            );
            assert_eq!(is_interrupted(&status), expected, "{status}");
        }
        assert!(!is_interrupted(""));
    }

    fn this_thread() -> u32 {
        rustix::thread::gettid().as_raw_nonzero().get() as u32
    }

    #[test]
    fn the_process_of_a_thread_is_found() {
        let thread = std::thread::spawn(|| (this_thread(), process_of(this_thread()))).join();
        let (thread, process) = thread.unwrap();
        assert_eq!(process, Some(std::process::id()));
        assert_ne!(thread, std::process::id());
        assert_eq!(process_of(u32::MAX), None);
    }

    #[test]
    fn a_thread_is_in_its_call_until_that_returns() {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let fd = reader.as_raw_fd();
        let (tell, told) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            tell.send(this_thread()).unwrap();
            reader.read(&mut [0]).unwrap()
        });
        let who = CallMaker {
            thread: told.recv().unwrap(),
            process: std::process::id(),
            number: libc::SYS_read as u32,
            fd,
        };
        let begun = Instant::now();
        while !who.is_making() && begun.elapsed() < Duration::from_secs(60) {
            std::thread::yield_now();
        }
        assert!(who.is_making());
        let others =
            [CallMaker { fd: fd + 1, ..who }, CallMaker { number: libc::SYS_fsync as u32, ..who }];
        assert!(others.iter().all(|other| !other.is_making()));
        drop(writer);
        assert_eq!(thread.join().unwrap(), 0);
        assert!(!who.is_making());
    }
}
