//! The library's part in a process whose calls a supervisor is notified of: it makes a call again that a signal ended.
//!
//! Until the supervisor has received a notice, a signal whose handler has no SA_RESTART ends the call with EINTR.
//! ext4's own calls never end in this way: the handler runs, and the call goes on.

use core::ffi::c_int;

use luc_rounds::call_path_syscalls;

use crate::{process_state, weak_symbols};

/// Makes `real`, a synchronization of `fd`, until it ends as the file system's own would.
pub(crate) fn repeat(fd: c_int, real: impl Fn() -> c_int) -> c_int {
    loop {
        let before = weak_symbols::errno();
        let result = real();
        let is_interrupted = result != 0
            && process_state::is_notified()
            && weak_symbols::errno() == libc::EINTR
            && call_path_syscalls::is_on_ext4(fd);
        if !is_interrupted {
            return result;
        }
        weak_symbols::set_errno(before);
    }
}
