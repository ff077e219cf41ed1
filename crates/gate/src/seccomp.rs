//! Is this process under a filter of system calls?

/// Room for `/proc/self/status`, which is about 1,500 bytes long.
const STATUS_BYTES: usize = 8192;

/// Filters (seccomp) that this process is under, from `/proc/self/status`; 0 if that cannot be read.
///
/// Before Linux 5.9 the kernel does not count them: then 1 stands for any number.
///
/// By `open` and `read` alone, which the dynamic loader has just made: the standard library would call
/// `statx` for the file's size, for which the filter may kill.
#[must_use]
pub fn filters() -> u32 {
    let mut status = [0; STATUS_BYTES];
    let length = read_status(&mut status);
    std::str::from_utf8(&status[..length]).map_or(0, from_status)
}

/// How many bytes of `/proc/self/status` were read.
fn read_status(status: &mut [u8]) -> usize {
    let flags = libc::O_RDONLY | libc::O_CLOEXEC;
    // SAFETY: a C string; the descriptor is checked.
    let fd = unsafe { libc::open(c"/proc/self/status".as_ptr(), flags) };
    if fd < 0 {
        return 0;
    }
    let mut length = 0;
    while let Some(rest) = status.get_mut(length..).filter(|rest| !rest.is_empty()) {
        // SAFETY: `rest` is valid for writes of its length.
        let read = unsafe { libc::read(fd, rest.as_mut_ptr().cast(), rest.len()) };
        match usize::try_from(read) {
            Ok(read @ 1..) => length += read,
            _ => break,
        }
    }
    // SAFETY: opened above and not used again.
    unsafe { libc::close(fd) };
    length
}

/// Filters that another process is under; `None` if that cannot be read.
#[must_use]
pub fn filters_of(process: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"));
    status.ok().as_deref().map(from_status)
}

/// The same of a process' `/proc/PID/status`.
pub(crate) fn from_status(status: &str) -> u32 {
    let number = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().parse::<u32>().ok()
    };
    number("Seccomp_filters:").unwrap_or_else(|| number("Seccomp:").unwrap_or(0).min(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_can_be_asked() {
        let mut status = [0; STATUS_BYTES];
        let length = read_status(&mut status);
        let text = std::str::from_utf8(&status[..length]).unwrap();
        assert!(text.contains("Seccomp:"), "{text}");
        assert!(length < STATUS_BYTES);
    }

    #[test]
    fn filters_are_counted_where_the_kernel_counts_them() {
        assert_eq!(
            from_status("Name:\tx\nSeccomp:\t2\nSeccomp_filters:\t3\n"),
            3
        );
        assert_eq!(from_status("Seccomp:\t0\nSeccomp_filters:\t0\n"), 0);
        assert_eq!(from_status("Seccomp:\t2\n"), 1);
        assert_eq!(from_status(""), 0);
    }
}
