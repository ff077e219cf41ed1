//! Whose clock a process has: CLOCK_MONOTONIC differs between time namespaces.

use core::ffi::CStr;

use crate::call_path_syscalls;

const LINK_BYTES: usize = 32;

/// The number of this process' time namespace; 0 where the kernel has none, `None` if it does not tell.
pub fn namespace() -> Option<u64> {
    match number_of(c"/proc/self/ns/time") {
        // Before Linux 5.6, or without CONFIG_TIME_NS.
        None => number_of(c"/proc/self/ns/mnt").map(|_| 0),
        number => number,
    }
}

/// The number of this process' namespace of processes; 0 if the kernel does not tell.
pub fn process_namespace() -> u64 {
    number_of(c"/proc/self/ns/pid").unwrap_or(0)
}

/// The number in a link such as `pid:[4026531836]`.
fn number_of(path: &CStr) -> Option<u64> {
    let mut link = [0; LINK_BYTES];
    let text = call_path_syscalls::read_link(path, &mut link)?;
    let mut digits = text.iter().skip_while(|byte| !byte.is_ascii_digit());
    let number = digits
        .by_ref()
        .take_while(|byte| byte.is_ascii_digit())
        .fold(0_u64, |number, byte| number.wrapping_mul(10).wrapping_add(u64::from(byte - b'0')));
    (number > 0).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_a_clock_and_numbers() {
        use std::os::unix::fs::MetadataExt as _;
        let inode = |path| std::fs::metadata(path).map(|found| found.ino());
        assert_eq!(namespace(), Some(inode("/proc/self/ns/time").unwrap_or(0)));
        assert_eq!(process_namespace(), inode("/proc/self/ns/pid").unwrap());
        assert_eq!(number_of(c"/proc/self/exe"), None);
    }
}
