//! Decides whether a preloaded library can reach a program's fsync.
//!
//! `LD_PRELOAD` is a feature of glibc's and musl's loaders. One of them must load the program, for LUC's own
//! architecture and without added privileges. The program must also call libc for its fsync.

use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{StatVfsMountFlags, fgetxattr, fstatvfs};
use rustix::process::{getgid, getuid};

use super::elf::{self, ElfImage};
use super::shebang::{LINE_BYTES, Shebang};
use super::{InspectError, resolve};

/// Maximum number of interpreters that Linux follows (fs/exec.c).
const MAX_DEPTH: u32 = 4;

/// Whether a program can be gated and, if not, why.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Gateability {
    /// glibc's or musl's loader for this machine loads it.
    Gateable,
    /// It is a script, and can be gated if its interpreter can.
    Script {
        /// The program that interprets it; for `/usr/bin/env NAME`, the program NAME.
        interpreter: PathBuf,
        /// Whether that can be gated.
        gateability: Box<Gateability>,
    },
    /// It is started without a loader.
    Static,
    /// It is made by Go, whose programs call the kernel without libc.
    Go,
    /// Executing it adds privileges, so the loader ignores `LD_PRELOAD`.
    SetId(Privilege),
    /// Another C library's loader loads it.
    ForeignLibc { loader: PathBuf },
    /// It is for another machine than LUC's own.
    ForeignArchitecture {
        /// The machine's name, such as `32-bit x86`.
        architecture: String,
    },
    /// It is neither an ELF program nor a script with `#!`.
    NotElf,
}

/// Rights that executing a program adds to this user's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Privilege {
    /// It runs as its owner (set-user-ID).
    User,
    /// It runs with its group (set-group-ID).
    Group,
    Capabilities,
}

impl fmt::Display for Privilege {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::User => "is set-user-ID",
            Self::Group => "is set-group-ID",
            Self::Capabilities => "has file capabilities",
        })
    }
}

/// Whether the kernel runs programs of another machine: those of its own 32-bit variant, or others by an emulator,
/// whose system calls are this machine's.
fn may_run(architecture: &str) -> bool {
    const BINFMT: &str = "/proc/sys/fs/binfmt_misc";
    let is_sister = architecture.starts_with("32-bit") || architecture == "x32";
    // Beside `register` and `status` there is a file for each kind of program.
    let emulators = std::fs::read_dir(BINFMT).map_or(0, Iterator::count);
    is_sister || emulators > 2
}

impl Gateability {
    /// Whether the gate's library will be loaded into it.
    #[must_use]
    pub fn is_gateable(&self) -> bool {
        match self {
            Self::Gateable => true,
            Self::Script { gateability, .. } => gateability.is_gateable(),
            _ => false,
        }
    }

    /// Whether only notifications of its system calls reach it, because the gate's library cannot be loaded into it.
    #[must_use]
    pub fn needs_notifier(&self) -> bool {
        match self {
            Self::Static | Self::Go | Self::ForeignLibc { .. } => true,
            Self::ForeignArchitecture { architecture } => may_run(architecture),
            Self::Script { gateability, .. } => gateability.needs_notifier(),
            _ => false,
        }
    }

    /// Whether executing it adds privileges. Notifications reach it as well, but unless their supervisor is privileged
    /// they keep it from gaining any.
    #[must_use]
    pub fn adds_privileges(&self) -> bool {
        match self {
            Self::SetId(_) => true,
            Self::Script { gateability, .. } => gateability.adds_privileges(),
            _ => false,
        }
    }

    /// The last interpreter of a script, which is the program that is executed.
    #[must_use]
    pub fn interpreter(&self) -> Option<&Path> {
        match self {
            Self::Script { interpreter, gateability } => {
                Some(gateability.interpreter().unwrap_or(interpreter))
            }
            _ => None,
        }
    }

    /// The reason why it cannot be gated, as a clause about the program that starts with "it" or "its"; `None` if it
    /// can be gated.
    #[must_use]
    pub fn reason(&self) -> Option<String> {
        Some(match self {
            Self::Gateable => return None,
            Self::Script { interpreter, gateability } => format!(
                "it is a script, and of its interpreter {} holds: {}",
                interpreter.display(),
                gateability.reason()?
            ),
            Self::Static => {
                "it is linked statically, so LD_PRELOAD cannot reach its fsync".to_owned()
            }
            Self::Go => {
                "it is a Go program, which calls the kernel without libc, so LD_PRELOAD cannot reach its fsync".to_owned()
            }
            Self::SetId(privilege) => {
                format!("it {privilege}, so the loader ignores LD_PRELOAD")
            }
            Self::ForeignLibc { loader } => format!(
                "its loader is {}, neither glibc's nor musl's, so the gate's library may not be loaded into it",
                loader.display()
            ),
            Self::ForeignArchitecture { architecture } => format!(
                "it is built for {architecture}, and the gate's library for {}",
                std::env::consts::ARCH
            ),
            Self::NotElf => {
                "it is neither an ELF program nor a script with a #! line".to_owned()
            }
        })
    }
}

/// Decides whether the program at `path` can be gated when this process executes it. Names behind `/usr/bin/env` are
/// looked for in this process's PATH.
///
/// # Errors
/// The file cannot be read or is no regular file. A script's interpreter is missing, or stands behind more interpreters
/// than Linux follows. A damaged program is no error but [`Gateability::NotElf`].
pub fn program(path: &Path) -> Result<Gateability, InspectError> {
    inspect(path, std::env::var_os("PATH").as_deref(), MAX_DEPTH)
}

/// Decides like [`program()`], with the PATH that the program will be given.
///
/// # Errors
/// Those of [`program()`].
pub fn program_with_path(
    path: &Path,
    path_env: Option<&OsStr>,
) -> Result<Gateability, InspectError> {
    inspect(path, path_env, MAX_DEPTH)
}

fn inspect(path: &Path, path_env: Option<&OsStr>, depth: u32) -> Result<Gateability, InspectError> {
    let metadata = path.metadata().map_err(InspectError::io(path))?;
    if metadata.is_dir() {
        return Err(InspectError::IsDirectory(path.to_path_buf()));
    }
    if !metadata.is_file() {
        return Err(InspectError::NotAFile(path.to_path_buf()));
    }
    let file = File::open(path).map_err(InspectError::io(path))?;
    let mut head = Vec::with_capacity(LINE_BYTES);
    (&file).take(LINE_BYTES as u64).read_to_end(&mut head).map_err(InspectError::io(path))?;
    if let Some(shebang) = Shebang::parse(&head) {
        return inspect_script(path, &shebang, path_env, depth);
    }
    Ok(match elf::read(&file) {
        ElfImage::Broken => Gateability::NotElf,
        ElfImage::Foreign(architecture) => Gateability::ForeignArchitecture { architecture },
        ElfImage::Native { loader, go } => match (privilege(&file, &metadata), go, loader) {
            (Some(privilege), _, _) => Gateability::SetId(privilege),
            (None, true, _) => Gateability::Go,
            (None, false, None) => Gateability::Static,
            (None, false, Some(loader)) if loads_the_library(&loader) => Gateability::Gateable,
            (None, false, Some(loader)) => Gateability::ForeignLibc { loader },
        },
    })
}

fn inspect_script(
    script: &Path,
    shebang: &Shebang,
    path_env: Option<&OsStr>,
    depth: u32,
) -> Result<Gateability, InspectError> {
    if depth == 0 {
        return Err(InspectError::TooDeep(script.to_path_buf()));
    }
    let (wanted, found) = match shebang.name_for_env() {
        None => {
            let wanted = shebang.interpreter.as_os_str();
            // The kernel takes the path as it is, also without a slash: relative to the folder.
            (wanted, resolve(Path::new(".").join(wanted).as_os_str(), None, Path::new("")))
        }
        Some(name) => (name, resolve(name, path_env, Path::new(""))),
    };
    let interpreter = match found {
        Ok(interpreter) => interpreter,
        Err(InspectError::NotFound { .. }) => {
            return Err(InspectError::NoInterpreter {
                script: script.to_path_buf(),
                interpreter: wanted.to_string_lossy().into_owned(),
            });
        }
        Err(other) => return Err(other),
    };
    let gateability = Box::new(inspect(&interpreter, path_env, depth - 1)?);
    Ok(Gateability::Script { interpreter, gateability })
}

/// Rights that executing the file adds to this user's (security/commoncap.c): another owner's or group's identity, or
/// capabilities, which add nothing to root.
fn privilege(file: &File, metadata: &std::fs::Metadata) -> Option<Privilege> {
    const SET_USER_ID: u32 = 0o4000;
    const SET_GROUP_ID_AND_EXECUTE: u32 = 0o2010;
    let ignored =
        fstatvfs(file).is_ok_and(|system| system.f_flag.contains(StatVfsMountFlags::NOSUID));
    if ignored {
        return None;
    }
    let mode = metadata.mode();
    if mode & SET_USER_ID != 0 && metadata.uid() != getuid().as_raw() {
        return Some(Privilege::User);
    }
    if mode & SET_GROUP_ID_AND_EXECUTE == SET_GROUP_ID_AND_EXECUTE
        && metadata.gid() != getgid().as_raw()
    {
        return Some(Privilege::Group);
    }
    let has_capabilities = fgetxattr(file, "security.capability", &mut [0_u8; 64]).is_ok();
    (has_capabilities && !getuid().is_root()).then_some(Privilege::Capabilities)
}

/// glibc's loaders are named `ld-linux*.so.N`, `ld64.so.N` (PowerPC, IBM Z) or `ld.so.1` (MIPS), musl's
/// `ld-musl-ARCHITECTURE.so.1`. Each knows `LD_PRELOAD`.
fn loads_the_library(loader: &Path) -> bool {
    let name = loader.file_name().unwrap_or_default().to_string_lossy();
    ["ld-linux", "ld64.so", "ld.so", "ld-musl-"].iter().any(|start| name.starts_with(start))
}
