//! Loads `luc.ko` into the running kernel, and tells the reasons for a refusal apart.

use std::ffi::CString;
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use luc_host::installed_programs::tool;
use luc_units::OnPath as _;
use rustix::io::Errno;
use rustix::system::finit_module;

use crate::build_module::{self, BuildWhen};
use crate::journal_setting::JournalSettings;
use crate::modinfo::ModInfo;
use crate::{Error, LucModule, MachinePaths, load_obstacles};

/// Folders below /lib/modules/VERSION in which distributions and DKMS put modules that are not the kernel's own.
const INSTALLED_FOLDERS: [&str; 4] = ["updates/dkms", "updates", "extra", "weak-updates"];

/// The loaded module, and the file that it was loaded from.
#[derive(Clone, Debug)]
pub struct LoadResult {
    pub module: LucModule,
    /// The file that was loaded; `None` if the module was there already.
    pub path: Option<PathBuf>,
}

/// Loads the module into the running kernel, and builds it first if necessary. New journals start with `settings`. A
/// loaded module is left alone.
///
/// # Errors
/// Every [`Error`] of [`load_obstacles::check`], [`build_module::build`] and [`LucModule::open`];
/// [`Error::WrongKernel`], [`Error::Unsigned`], [`Error::UnknownKey`], [`Error::Refused`], [`Error::NotRoot`],
/// [`Error::OtherVersion`]. Nothing is loaded then.
pub fn load(machine: &MachinePaths, settings: &JournalSettings) -> Result<LoadResult, Error> {
    if let Some(loaded) = LucModule::loaded_version(machine) {
        let ours = env!("CARGO_PKG_VERSION");
        if loaded != ours {
            return Err(Error::OtherVersion { loaded, ours });
        }
        let module = LucModule::open(machine)?;
        return Ok(LoadResult { module, path: None });
    }
    load_obstacles::check(machine)?;
    let running = machine.running_kernel();
    let path = match find_installed(machine, &running) {
        Some(path) => path,
        None => find_or_build(machine, &running)?,
    };
    if is_compressed(&path) {
        // The kernel may or may not unpack it; modprobe always does.
        check_root(machine)?;
        modprobe(&path, &parameters(settings))?;
    } else {
        let info = ModInfo::read(&path)?;
        check(machine, &path, &info)?;
        check_root(machine)?;
        insert(machine, &path, &info, parameters(settings))?;
    }
    Ok(LoadResult { module: LucModule::open(machine)?, path: Some(path) })
}

/// The module as DKMS or a package has installed it, of this program's version.
fn find_installed(machine: &MachinePaths, kernel: &str) -> Option<PathBuf> {
    let names = ["luc.ko", "luc.ko.xz", "luc.ko.zst", "luc.ko.gz"];
    let paths = INSTALLED_FOLDERS.iter().flat_map(|dir| {
        names.map(|name| machine.path(format!("/lib/modules/{kernel}/{dir}/{name}")))
    });
    let is_ours = |path: &PathBuf| {
        is_compressed(path)
            || ModInfo::read(path).is_ok_and(|info| info.version == env!("CARGO_PKG_VERSION"))
    };
    paths.filter(|path| path.exists()).find(is_ours)
}

/// Builds the module unless that has been done. Without headers an earlier build will do.
fn find_or_build(machine: &MachinePaths, kernel: &str) -> Result<PathBuf, Error> {
    match build_module::build(machine, kernel, BuildWhen::Changed) {
        Ok(built) => Ok(built.path),
        Err(error @ (Error::NoHeaders { .. } | Error::NoSuchKernel { .. })) => {
            build_module::cached(machine, kernel).ok_or(error)
        }
        Err(error) => Err(error),
    }
}

fn is_compressed(path: &Path) -> bool {
    path.extension().is_some_and(|kind| kind != "ko")
}

fn check(machine: &MachinePaths, path: &Path, info: &ModInfo) -> Result<(), Error> {
    let running = machine.running_kernel();
    if info.kernel != running {
        return Err(Error::WrongKernel {
            path: path.to_owned(),
            built_for: info.kernel.clone(),
            running,
        });
    }
    match load_obstacles::requires_signature(machine) {
        Some(why) if !info.is_signed => Err(unsigned(path, why)),
        _ => Ok(()),
    }
}

fn check_root(machine: &MachinePaths) -> Result<(), Error> {
    if machine.is_ours() {
        return Ok(());
    }
    Err(Error::NotRoot { what: "load luc.ko".to_owned() })
}

/// The module's parameters: settings that new journals start with.
fn parameters(settings: &JournalSettings) -> Vec<String> {
    settings.iter().map(|(key, value)| format!("{key}={value}")).collect()
}

fn insert(
    machine: &MachinePaths,
    path: &Path,
    info: &ModInfo,
    mut parameters: Vec<String>,
) -> Result<(), Error> {
    let file = File::open(path).map_err(Error::io("open", path))?;
    parameters.retain(|parameter| {
        let name = parameter.split('=').next();
        info.parameters.iter().any(|known| Some(known.as_str()) == name)
    });
    // Checked values have no zero in them.
    let parameters = CString::new(parameters.join(" ")).unwrap_or_default();
    let log = KernelLog::open();
    match finit_module(&file, &parameters, 0) {
        // Somebody else was quicker.
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        // A locked kernel says so of a key that it does not know.
        Err(Errno::PERM)
            if info.is_signed && load_obstacles::requires_signature(machine).is_some() =>
        {
            Err(Error::UnknownKey(path.to_owned()))
        }
        Err(errno) => Err(refusal(path, info, errno, log)),
    }
}

fn refusal(path: &Path, info: &ModInfo, errno: Errno, log: Option<KernelLog>) -> Error {
    let path = path.to_owned();
    match errno {
        Errno::NOKEY | Errno::KEYREJECTED | Errno::BADMSG if info.is_signed => {
            Error::UnknownKey(path)
        }
        Errno::NOKEY | Errno::KEYREJECTED | Errno::BADMSG => {
            unsigned(&path, "the kernel takes only signed modules".to_owned())
        }
        Errno::PERM => Error::Refused {
            path,
            reason: "no permission; loading modules takes CAP_SYS_MODULE, which a container does not have: \
                     load it on the host"
                .to_owned(),
        },
        _ => {
            let message = log.map(KernelLog::last_line).unwrap_or_default();
            let reason = if message.is_empty() {
                format!("{errno}; see `dmesg`, and build it again with `luc kernel build`")
            } else {
                format!("{errno}; its log says: {message}")
            };
            Error::Refused { path, reason }
        }
    }
}

fn unsigned(path: &Path, why: String) -> Error {
    Error::Unsigned { path: path.to_owned(), why, version: env!("CARGO_PKG_VERSION") }
}

fn modprobe(path: &Path, parameters: &[String]) -> Result<(), Error> {
    let output =
        tool("modprobe").arg("luc").args(parameters).output().map_err(|source| Error::NoTool {
            tool: "modprobe",
            source,
            install: "your package manager for kmod".to_owned(),
        })?;
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr);
    Err(Error::Refused {
        path: path.to_owned(),
        reason: format!("{}; see `dmesg`", message.lines().last().unwrap_or("modprobe failed")),
    })
}

/// Lines that the kernel logs from now on.
struct KernelLog(File);

impl KernelLog {
    fn open() -> Option<Self> {
        let log = fs::OpenOptions::new()
            .read(true)
            .custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32)
            .open("/dev/kmsg")
            .ok()?;
        rustix::fs::seek(&log, rustix::fs::SeekFrom::End(0)).ok()?;
        Some(Self(log))
    }

    /// The module's last line; empty if it said nothing.
    fn last_line(mut self) -> String {
        let mut last = String::new();
        let mut record = [0; 8192];
        // One record each; an error when there are no more.
        while let Ok(length @ 1..) = self.0.read(&mut record) {
            let text = String::from_utf8_lossy(&record[..length]);
            let message = text.split_once(';').map_or("", |(_, message)| message);
            let line = message.lines().next().unwrap_or_default();
            if line.starts_with("luc: ") {
                line.clone_into(&mut last);
            }
        }
        last
    }
}
