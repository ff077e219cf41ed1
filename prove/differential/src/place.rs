//! A mount namespace of our own, which keeps other mounts out and leaves none behind.
//!
//! In it a `lucd` takes over attached processes, as systemd's would. A file stands for systemctl.

use std::ffi::CStr;
use std::fs::{self, Permissions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::lane::Way;

/// Folder that is searched for systemctl.
const FOLDER: &str = "/run/luc-differential";
const SYSTEMCTL: &str = "#!/bin/sh\necho MainPID=$(cat /run/luc-differential/lucd)\n";

/// Enters a mount namespace: a copy of a mount elsewhere would keep a disk busy. Shared memory and services of other
/// programs are not visible in it.
pub(crate) fn enter() -> Result<()> {
    // SAFETY: a plain number; there is one thread.
    if unsafe { libc::unshare(libc::CLONE_NEWNS) } != 0 {
        let error = io::Error::last_os_error();
        return Err(error).context("a mount namespace cannot be had: be root");
    }
    mount(None, c"/", libc::MS_REC | libc::MS_PRIVATE)?;
    for folder in [c"/run", c"/dev/shm"] {
        mount(Some((c"tmpfs", c"tmpfs")), folder, 0)?;
    }
    fs::set_permissions("/dev/shm", Permissions::from_mode(0o1777))?;
    Ok(())
}

/// Mounts a source of a kind.
fn mount(what: Option<(&CStr, &CStr)>, at: &CStr, flags: libc::c_ulong) -> Result<()> {
    let (source, kind) = match what {
        Some((source, kind)) => (source.as_ptr(), kind.as_ptr()),
        None => (std::ptr::null(), std::ptr::null()),
    };
    // SAFETY: live strings, or none.
    let result = unsafe { libc::mount(source, at.as_ptr(), kind, flags, std::ptr::null()) };
    if result != 0 {
        return Err(io::Error::last_os_error()).with_context(|| format!("mounting {at:?}"));
    }
    Ok(())
}

/// A running `lucd`, which ends with this value.
pub(crate) struct Lucd(Child);

impl Lucd {
    /// Starts `lucd` if a way needs it.
    pub(crate) fn start(ways: &[Way], luc: &Path) -> Result<Option<Self>> {
        if !ways.contains(&Way::Attach) {
            return Ok(None);
        }
        for folder in ["/run/systemd/system", "/run/luc", FOLDER] {
            fs::create_dir_all(folder).context(folder)?;
        }
        let systemctl = Path::new(FOLDER).join("systemctl");
        fs::write(&systemctl, SYSTEMCTL)?;
        fs::set_permissions(&systemctl, Permissions::from_mode(0o755))?;
        if Path::new("/usr/bin/systemctl").is_file() {
            // Whoever looks for it in folders of their own finds it, too.
            let source = c"/run/luc-differential/systemctl";
            mount(Some((source, c"none")), c"/usr/bin/systemctl", libc::MS_BIND)?;
        }
        let socket = UnixListener::bind("/run/luc/oci.sock").context("/run/luc/oci.sock")?;
        let number = socket.as_raw_fd();
        let lucd = luc.with_file_name("lucd");
        if !lucd.is_file() {
            bail!("{}: not there: `make build` first", lucd.display());
        }
        let mut command = Command::new("sh");
        command
            .args(["-c", "LISTEN_PID=$$ exec \"$0\""])
            .arg(lucd)
            .envs([("LISTEN_FDS", "1"), ("LISTEN_FDNAMES", "oci")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(Path::new(FOLDER).join("errors"))?);
        // SAFETY: between fork and exec only dup2 and fcntl are called, which are async-signal-safe.
        unsafe {
            command.pre_exec(move || {
                if libc::dup2(number, 3) != 3 || libc::fcntl(3, libc::F_SETFD, 0) != 0 {
                    return Err(io::Error::last_os_error());
                }
                Ok(())
            });
        }
        let lucd = command.spawn().context("lucd cannot be started")?;
        fs::write(Path::new(FOLDER).join("lucd"), lucd.id().to_string())?;
        let path = std::env::var("PATH").unwrap_or_default();
        // SAFETY: there is one thread.
        unsafe { std::env::set_var("PATH", format!("{FOLDER}:{path}")) };
        Ok(Some(Self(lucd)))
    }
}

impl Drop for Lucd {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
