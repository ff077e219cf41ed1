//! The QEMU that runs a guest: the system's, one that is unpacked beside it, or one built with processors in parallel.

use std::fmt;
use std::path::PathBuf;
use std::process::Command;

use crate::architecture::Architecture;
use crate::cache_folder;
use crate::error::Error;
use crate::host_tools;

/// Folder in the cache of the QEMU that `make qemu` builds, with processors in parallel.
const BUILT_FOLDER: &str = "qemu/parallel";
/// Folder in the cache of the distribution's newer QEMU, which `make setup-vm` unpacks.
const UNPACKED_FOLDER: &str = "qemu/unpacked/usr";
/// Firmware of Debian's packages, which a QEMU that is not installed does not find by itself.
const FIRMWARE: [&str; 2] = ["/usr/share/qemu", "/usr/share/seabios"];
/// Mark in the version of a QEMU with processors in parallel (`--with-pkgversion` in `scripts/qemu.sh`).
const PARALLEL_MARK: &str = "(luc-parallel";
/// First version that divides the time to the next timer among the processors (`icount_percpu_budget`). Earlier ones
/// give all of that time to each of several processors, and the guest hangs.
const MIN_MULTIPROCESSOR_VERSION: (u32, u32) = (8, 1);

#[derive(Clone, Debug)]
pub struct Qemu {
    program: PathBuf,
    /// Folders of its firmware; empty if it finds that by itself.
    firmware: Vec<PathBuf>,
    /// Version in QEMU's own words: `10.0.2 (Debian ...)`.
    version: String,
    number: (u32, u32),
}

impl Qemu {
    /// Finds the QEMU in `PATH`.
    ///
    /// # Errors
    ///
    /// [`Error::MissingTool`] if there is none, [`Error::Command`] if it does not say its version.
    pub fn system() -> Result<Self, Error> {
        Self::system_for(Architecture::X86_64)
    }

    /// Finds the QEMU in `PATH` for guests of an architecture.
    pub(crate) fn system_for(architecture: Architecture) -> Result<Self, Error> {
        Self::open(host_tools::find(architecture.qemu())?, Vec::new())
    }

    /// Finds the best QEMU for several processors in virtual time.
    ///
    /// # Errors
    ///
    /// [`Error::OldQemu`] if only an older one is there; as [`Qemu::system`].
    pub fn for_several() -> Result<Self, Error> {
        let system = Self::system()?;
        let found = Self::all_for_several()?.into_iter().next();
        found.ok_or(Error::OldQemu { qemu: system.to_string() })
    }

    /// Finds every QEMU that can run several processors in virtual time, the best first: in parallel; unpacked; the
    /// system's.
    ///
    /// # Errors
    ///
    /// [`Error::Command`] if one of them does not run.
    pub fn all_for_several() -> Result<Vec<Self>, Error> {
        let mut all = Vec::new();
        if let Some(cache) = cache_folder::path() {
            for root in [BUILT_FOLDER, UNPACKED_FOLDER].map(|name| cache.join(name)) {
                let program = root.join("bin").join(Architecture::X86_64.qemu());
                if program.is_file() {
                    let firmware = [root.join("share/qemu")].into_iter();
                    let firmware = firmware.chain(FIRMWARE.map(PathBuf::from));
                    all.push(Self::open(program, firmware.collect())?);
                }
            }
        }
        if let Some(program) = host_tools::which(Architecture::X86_64.qemu()) {
            all.push(Self::open(program, Vec::new())?);
        }
        all.retain(Self::runs_several);
        Ok(all)
    }

    /// Whether several processors execute at the same moments of virtual time. If not, they take turns, each at its
    /// share of the speed.
    pub fn is_parallel(&self) -> bool {
        self.version.contains(PARALLEL_MARK)
    }

    /// Describes itself, and how it runs this many processors in virtual time.
    pub fn with_processors(&self, processors: u32) -> String {
        let how = match processors {
            1 => return format!("{self}, one processor"),
            _ if self.is_parallel() => "in parallel",
            _ => "that take turns",
        };
        format!("{self}, {processors} processors {how}")
    }

    /// Whether it runs several processors in virtual time.
    pub(crate) fn runs_several(&self) -> bool {
        self.number >= MIN_MULTIPROCESSOR_VERSION
    }

    /// Whether processors may run on threads of their own.
    ///
    /// QEMU before 8.1 can go on executing an instruction that another processor replaced while it was being
    /// translated. Since then it locks pages before translation. The kernel replaces instructions when tracing is
    /// switched on, as `luc.ko` does when it is loaded. A processor that keeps hitting the breakpoint of a replacement
    /// that is long over never goes on. On one thread processors take turns, and never in the middle of a translation.
    pub(crate) fn patches_code_safely(&self) -> bool {
        self.number >= (8, 1)
    }

    /// Returns the command that starts it, with the folders of its firmware.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        for folder in &self.firmware {
            command.arg("-L").arg(folder);
        }
        command
    }

    fn open(program: PathBuf, firmware: Vec<PathBuf>) -> Result<Self, Error> {
        let printed = host_tools::output(Command::new(&program).arg("--version"))?;
        let unknown = |reason: &str| Error::Command {
            command: format!("{} --version", program.display()),
            reason: reason.to_owned(),
        };
        let printed = String::from_utf8_lossy(&printed).into_owned();
        let (version, number) = version_of(&printed)
            .ok_or_else(|| unknown("it says no version: install QEMU again"))?;
        Ok(Self { version: version.to_owned(), number, program, firmware })
    }
}

impl fmt::Display for Qemu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "QEMU {}", self.version)
    }
}

/// Returns the text after `version ` in `QEMU emulator version 7.2.22 (Debian ...)`, and the major and minor version.
fn version_of(text: &str) -> Option<(&str, (u32, u32))> {
    let (_, version) = text.lines().next()?.split_once("version ")?;
    let mut numbers = version.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((version, (numbers.next()?.ok()?, numbers.next()?.ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(printed: &str) -> Qemu {
        let (version, number) = version_of(printed).expect("a version");
        Qemu { program: PathBuf::new(), firmware: Vec::new(), version: version.to_owned(), number }
    }

    #[test]
    fn versions_are_read() {
        let old = of("QEMU emulator version 7.2.22 (Debian 1:7.2)\nCopyright (c) 2003-2022");
        assert_eq!(old.to_string(), "QEMU 7.2.22 (Debian 1:7.2)");
        assert!(!old.runs_several() && !old.is_parallel());
        assert!(!of("QEMU emulator version 8.0.5").runs_several());
        let new = of("QEMU emulator version 8.1.0");
        assert!(new.runs_several() && !new.is_parallel());
        let built = of("QEMU emulator version 10.0.2 (luc-parallel 1)");
        assert!(built.runs_several() && built.is_parallel());
        assert_eq!(version_of("something else"), None);
    }
}
