//! Debian's chrony, unpacked but not installed, since it would replace this machine's own time service.

use std::path::PathBuf;
use std::process::Command;

use luc_harness::harness::Harness;

/// Settings of the server, which serves its time and changes no clock (`-x`).
pub(super) const SERVER: &str =
    "local stratum 5\nallow 10.0.0.0/8\ncmdport 0\nbindcmdaddress /\npidfile /run/chronyd.pid\n";
/// Settings of the client. It asks the server each second, and changes the clock's rate as far as it may.
pub(super) const CLIENT: &str = "server 10.0.1.1 iburst minpoll -1 maxpoll 0 xleave\ncmdport 0\nbindcmdaddress /\n\
                                 pidfile /run/chronyd.pid\nlogdir /run/chrony\nlog tracking\n";

/// Returns the program, or the reason why there is none.
pub(super) fn unpack(harness: &Harness) -> Result<PathBuf, String> {
    let folder = harness.path("chrony");
    let failed = |what: String| format!("chrony cannot be had: {what}");
    std::fs::create_dir_all(&folder).map_err(|error| failed(error.to_string()))?;
    let mut download = Command::new("apt-get");
    // As root, apt would hand the download to a user who may not write here.
    download.args(["-qq", "-o", "APT::Sandbox::User=root", "download", "chrony"]);
    download.current_dir(&folder).env("LC_ALL", "C");
    let run = |command: &mut Command| {
        harness.execute(command, &[0]).map_err(|error| failed(error.to_string()))
    };
    run(&mut download)?;
    let mut entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
    let package = entries.find(|entry| entry.path().extension().is_some_and(|end| end == "deb"));
    let package =
        package.ok_or_else(|| failed("apt-get download brought no package".to_owned()))?;
    run(Command::new("dpkg-deb").arg("-x").arg(package.path()).arg(&folder))?;
    Ok(folder.join("usr/sbin/chronyd"))
}
