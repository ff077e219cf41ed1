//! Processes that a command under trial has left behind.

use std::fs;
use std::path::Path;

/// Kills processes that a command started outside its process group: those in whose environment `variable` is `dir`, a
/// directory of one trial that nobody else has.
pub(crate) fn kill_strays(variable: &str, dir: &Path) {
    use std::os::unix::ffi::OsStrExt as _;
    let wanted = [variable.as_bytes(), b"=", dir.as_os_str().as_bytes()].concat();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        if environment.split(|&byte| byte == 0).any(|variable| variable == wanted) {
            // SAFETY: a system call with plain integers, on a process just seen to be ours.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
    }
}
