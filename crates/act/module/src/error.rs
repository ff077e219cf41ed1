//! Errors, each in one line: the input, the reason, the next step.

use std::io;
use std::path::PathBuf;

use luc_units::FileOperationError;
use thiserror::Error;

use crate::INTERFACE;

/// Reason why something about the module cannot be done.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    #[error(
        "this kernel was built without loadable modules, so luc.ko cannot be loaded: boot a distribution's kernel, \
         or use `luc run --level gate`, which needs none"
    )]
    NoModules,
    #[error(
        "kernel.modules_disabled is 1, so no module can be loaded until the next boot: reboot without that setting"
    )]
    ModulesDisabled,
    #[error(
        "no ext4 journal here: jbd2 is not loaded; mount an ext4 file system first, or run `modprobe ext4`"
    )]
    NoJbd2,
    #[error(
        "this kernel was built without ftrace (CONFIG_DYNAMIC_FTRACE), by which luc.ko reaches jbd2: boot a distribution's kernel"
    )]
    NoFtrace,
    #[error(
        "kernel.ftrace_enabled is 0, so luc.ko could not reach jbd2: run `sysctl kernel.ftrace_enabled=1`"
    )]
    FtraceDisabled,
    #[error(
        "{path} is not signed, and {why}: let DKMS sign it (`dkms install luc/{version}`) with a key that you enrol by \
         `mokutil --import /var/lib/dkms/mok.pub`", path = .path.display()
    )]
    Unsigned {
        path: PathBuf,
        /// Reason why the kernel requires a signature.
        why: String,
        version: &'static str,
    },
    #[error(
        "{path} is signed by a key that this kernel does not trust: enrol it by `mokutil --import \
         /var/lib/dkms/mok.pub` (or your own key) and reboot", path = .0.display()
    )]
    UnknownKey(PathBuf),
    #[error("kernel {version} is not in /lib/modules{}: give one that is, or install it", there(.installed))]
    NoSuchKernel { version: String, installed: Vec<String> },
    #[error("the headers of kernel {version} are missing ({} is not there): run `{install}`", .looked.display())]
    NoHeaders {
        version: String,
        /// Path at which they should be.
        looked: PathBuf,
        /// Command that installs them.
        install: String,
    },
    #[error("there is no folder to build luc.ko in: set HOME or XDG_CACHE_HOME to one of yours")]
    NoCache,
    #[error(
        "{path} {reason}, so luc.ko is not built below it: `chmod go-w {path}` and `chown` it to yourself, or (not for \
         root) set XDG_CACHE_HOME", path = .path.display()
    )]
    Unsafe { path: PathBuf, reason: String },
    #[error("{tool} cannot be run ({source}): run `{install}`")]
    NoTool {
        tool: &'static str,
        source: io::Error,
        /// Command that installs it.
        install: String,
    },
    #[error("luc.ko cannot be built for kernel {version}: {reason}; all of it is in {}", .log.display())]
    Build {
        version: String,
        /// The first error, or the last line.
        reason: String,
        log: PathBuf,
    },
    #[error("{} is no kernel module ({reason}): build it again with `luc kernel build`", .path.display())]
    NotAModule { path: PathBuf, reason: String },
    #[error("{} was built for kernel {built_for}, but {running} is running: run `luc kernel build`", .path.display())]
    WrongKernel {
        path: PathBuf,
        /// Release in its version magic.
        built_for: String,
        running: String,
    },
    #[error("the kernel refused {}: {reason}", .path.display())]
    Refused {
        path: PathBuf,
        /// The kernel's reason and the next step.
        reason: String,
    },
    #[error("luc.ko {loaded} is loaded, and this is luc {ours}: run `luc kernel unload` first")]
    OtherVersion { loaded: String, ours: &'static str },
    #[error("only root can {what}: run it with sudo")]
    NotRoot { what: String },
    #[error(
        "luc.ko is not loaded: run `luc kernel load` (root), or use `luc run --level gate`, which needs none"
    )]
    NotLoaded,
    #[error(
        "the loaded luc.ko has interface {found}, and this luc knows {INTERFACE}: unload it, and load the one of this version"
    )]
    Interface { found: String },
    #[error("there is no setting '{given}'{}: the settings are {}", did_you_mean(.nearest), .known)]
    NoSuchSetting {
        given: String,
        /// Setting that looks most like it.
        nearest: Option<&'static str>,
        known: String,
    },
    #[error("'{0}' is no setting: write KEY=VALUE, as in policy=auto")]
    NotASetting(String),
    #[error("{key}={value}: give {expected}")]
    BadValue { key: &'static str, value: String, expected: String },
    #[error(
        "{place}: {source}; give a mount point, a path below it, a device, or a journal of `luc kernel status`"
    )]
    NoSuchPlace { place: String, source: io::Error },
    #[error(
        "{place} (device {device}) has no ext4 journal that luc.ko knows: `luc kernel status` lists those it does"
    )]
    NoJournalThere { place: String, device: String },
    #[error("luc.ko knows no journal: mount an ext4 file system first")]
    NoJournals,
    #[error("{journal}: the module did not take {key}={value} ({source}); nothing was changed")]
    NotTaken { journal: String, key: &'static str, value: String, source: io::Error },
    #[error(
        "luc.ko is still in use after {waited_s} s: {holders}; end these, or wait longer with --timeout"
    )]
    InUse { waited_s: u64, holders: String },
    #[error(transparent)]
    Io(#[from] FileOperationError),
}

impl Error {
    /// Whether the system denied it to the user.
    pub(crate) fn is_denied(&self) -> bool {
        matches!(self, Self::Io(failed) if failed.source.kind() == io::ErrorKind::PermissionDenied)
    }
}

fn there(installed: &[String]) -> String {
    if installed.is_empty() {
        String::new()
    } else {
        format!(" (there are {})", installed.join(", "))
    }
}

fn did_you_mean(name: &Option<&'static str>) -> String {
    name.map_or_else(String::new, |name| format!(", did you mean '{name}'?"))
}
