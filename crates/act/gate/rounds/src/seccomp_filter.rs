//! Is this process under a filter of system calls?

use crate::call_path_syscalls;

/// What is read of `/proc/self/status` at a time: a signal handler's stack has little room.
const PART_BYTES: usize = 256;

/// Room for the beginning of a line; what is longer is not looked for.
const LINE_BYTES: usize = 32;

/// Filters (seccomp) that this process is under, from `/proc/self/status`; `None` if that cannot be read.
///
/// Before Linux 5.9 the kernel does not count them: then 1 stands for any number.
///
/// By `openat` and `read` alone, which the dynamic loader has made before: the filter may kill for other calls. They
/// are made raw, so no thread is cancelled in them. Async-signal-safe.
#[must_use]
pub fn filters() -> Option<u32> {
    let mut found = Found::default();
    let mut line = ([0; LINE_BYTES], 0);
    read_status(|part| {
        for &byte in part {
            let (text, length) = &mut line;
            if byte == b'\n' {
                found.line(text.get(..*length).unwrap_or(text));
                *length = 0;
            } else {
                if let Some(place) = text.get_mut(*length) {
                    *place = byte;
                }
                *length += 1;
            }
        }
    })
    .then(|| found.filters())
}

/// Hands `/proc/self/status` on in parts. Whether it could be read.
fn read_status(mut take: impl FnMut(&[u8])) -> bool {
    let Some(fd) = call_path_syscalls::open_to_read(c"/proc/self/status") else {
        return false;
    };
    let mut part = [0; PART_BYTES];
    let is_read = loop {
        match call_path_syscalls::read(fd, &mut part).map(|length| part.get(..length)) {
            Some(Some([])) => break true,
            Some(Some(read)) => take(read),
            _ => break false,
        }
    };
    call_path_syscalls::close(fd);
    is_read
}

/// What lines of a status say.
#[derive(Debug, Default)]
struct Found {
    filters: Option<u32>,
    mode: Option<u32>,
}

impl Found {
    fn line(&mut self, line: &[u8]) {
        let number = |name: &[u8]| {
            let text = core::str::from_utf8(line.strip_prefix(name)?).ok()?;
            text.trim().parse::<u32>().ok()
        };
        self.filters = self.filters.or_else(|| number(b"Seccomp_filters:"));
        self.mode = self.mode.or_else(|| number(b"Seccomp:"));
    }

    fn filters(&self) -> u32 {
        self.filters.unwrap_or_else(|| self.mode.unwrap_or(0).min(1))
    }
}

/// Filters that a process is under, from the text of its `/proc/PID/status`.
pub fn from_status(status: &str) -> u32 {
    let mut found = Found::default();
    for line in status.lines() {
        found.line(line.as_bytes());
    }
    found.filters()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_can_be_asked() {
        let mut text = Vec::new();
        assert!(read_status(|part| text.extend_from_slice(part)));
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains("Seccomp:"), "{text}");
        assert_eq!(filters(), Some(from_status(&text)));
    }

    #[test]
    fn filters_are_counted_where_the_kernel_counts_them() {
        assert_eq!(from_status("Name:\tx\nSeccomp:\t2\nSeccomp_filters:\t3\n"), 3);
        assert_eq!(from_status("Seccomp:\t0\nSeccomp_filters:\t0\n"), 0);
        assert_eq!(from_status("Seccomp:\t2\n"), 1);
        assert_eq!(from_status(""), 0);
    }
}
