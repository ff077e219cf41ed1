//! Is a process under a filter of system calls?

pub use luc_rounds::seccomp_filter::*;

/// Number of filters on another process; `None` if it cannot be read.
#[must_use]
pub fn filters_of(process: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"));
    status.ok().as_deref().map(from_status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_can_be_asked_by_itself_and_by_others() {
        assert_eq!(filters(), filters_of(std::process::id()));
    }
}
