//! Is this process under a filter of system calls?

use std::fs;

/// Filters (seccomp) that this process is under, from `/proc/self/status`; 0 if that cannot be read.
///
/// Before Linux 5.9 the kernel does not count them: then 1 stands for any number.
#[must_use]
pub fn filters() -> u32 {
    fs::read_to_string("/proc/self/status").map_or(0, |status| from_status(&status))
}

fn from_status(status: &str) -> u32 {
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
