//! Removes `luc.ko` from the kernel, once nobody uses it.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use luc_units::OnPath as _;
use rustix::io::Errno;
use rustix::system::delete_module;

use crate::setting_leases::SettingLeases;
use crate::{Error, LucModule, MachinePaths};

/// Interval between two attempts to unload the module.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// Called with the users of the module that an unload waits for.
pub type OnUnloadWait<'w> = &'w mut dyn FnMut(&str);

/// Unloads the module, and waits up to `timeout` until nobody uses it. `waiting` is called once with the users.
///
/// # Errors
/// [`Error::NotLoaded`], [`Error::NotRoot`], [`Error::InUse`] with the users. The module goes on working
/// then.
pub fn unload(
    machine: &MachinePaths,
    timeout: Duration,
    waiting: OnUnloadWait<'_>,
) -> Result<(), Error> {
    if LucModule::loaded_version(machine).is_none() {
        return Err(Error::NotLoaded);
    }
    let not_root = || Error::NotRoot { what: "unload luc.ko".to_owned() };
    let leases = SettingLeases::of(machine);
    let begun = Instant::now();
    let mut is_told = false;
    loop {
        let mut holders = leases.holders();
        if holders.is_empty() {
            if !machine.is_ours() {
                return Err(not_root());
            }
            match delete_module(c"luc", rustix::fs::OFlags::NONBLOCK.bits() as i32) {
                // Gone by somebody else's hand is gone as well.
                Ok(()) | Err(Errno::NOENT) => return Ok(()),
                Err(Errno::PERM) => return Err(not_root()),
                Err(Errno::AGAIN | Errno::BUSY) => holders = users(machine),
                Err(errno) => return Err(Error::io("unload", "luc.ko")(errno)),
            }
        }
        let holders = holders.join(", ");
        if begun.elapsed() >= timeout {
            return Err(Error::InUse { waited_s: timeout.as_secs(), holders });
        }
        if !is_told {
            waiting(&holders);
            is_told = true;
        }
        thread::sleep(LOOK_INTERVAL);
    }
}

/// The users that keep the module loaded, by sysfs.
fn users(machine: &MachinePaths) -> Vec<String> {
    let mut users: Vec<_> = fs::read_dir(machine.path("/sys/module/luc/holders"))
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| format!("module {}", entry.file_name().to_string_lossy()))
        .collect();
    if users.is_empty() {
        let count = machine.text("/sys/module/luc/refcnt").unwrap_or_default();
        users.push(format!("{count} references (a trace of its events, or an open file)"));
    }
    users
}
