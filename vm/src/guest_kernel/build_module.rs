//! Builds modules of this project for a kernel.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{GuestKernel, build_root, headers_in_root};
use crate::error::Error;
use crate::host_tools;

/// Runs `make` in root $0 on sources $1, in build folder $2.
const IN_ROOT: &str = r#"set -e
root=$0
mount --rbind /dev "$root/dev"
mount --rbind /proc "$root/proc"
mount --bind "$1" "$root/source"
mount --bind "$2" "$root/work"
shift 2
exec chroot "$root" /usr/bin/make -s -C /source BUILD=/work "$@""#;
const COMPILER: &str = "x86_64-linux-gnu-gcc-14";

impl GuestKernel {
    /// Builds the module in `source`, which has its `Kbuild` and a `Makefile` with variables `KDIR` and `BUILD`.
    /// Returns the `.ko` file, named like the source folder.
    ///
    /// It is built in a folder of this kernel below `work`. A module that is built already is not built again.
    ///
    /// # Errors
    ///
    /// [`Error::NoHeaders`] if the kernel's headers are not installed, [`Error::Command`] with the
    /// compiler's last words.
    pub fn build_module(&self, source: &Path, work: &Path) -> Result<PathBuf, Error> {
        let headers = self.headers().ok_or_else(|| Error::NoHeaders(self.release().to_owned()))?;
        let file = |path: &Path| {
            let path = path.to_owned();
            move |source| Error::File { path, source }
        };
        let source = source.canonicalize().map_err(file(source))?;
        let name = source.file_name().unwrap_or_default();
        let build = work.join(self.release()).join(name);
        fs::create_dir_all(&build).map_err(file(&build))?;
        let build = build.canonicalize().map_err(file(&build))?;
        let mut make = match build_root().filter(|root| headers.starts_with(root)) {
            Some(root) => self.make_in_root(&root, &source, &build)?,
            None => {
                let mut make = Command::new(host_tools::find("make")?);
                make.arg("-s").arg("-C").arg(&source);
                make.arg(format!("KDIR={}", headers.display()))
                    .arg(format!("BUILD={}", build.display()));
                make
            }
        };
        // A make above this one would pass on its own targets and flags.
        for variable in ["MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES"] {
            make.env_remove(variable);
        }
        host_tools::output(&mut make)?;
        Ok(build.join(name).with_extension("ko"))
    }

    /// Returns `make` in the root that has the headers: their programs need its C library, and often its compiler. Its
    /// mounts disappear with its namespace.
    fn make_in_root(&self, root: &Path, source: &Path, build: &Path) -> Result<Command, Error> {
        let mut make = Command::new(host_tools::find("unshare")?);
        make.args(["--mount", "--map-root-user", "sh", "-c", IN_ROOT]);
        make.args([root, source, build]);
        make.arg(format!("KDIR=/{}", headers_in_root(self.release())));
        // The compiler of the kernel's own distribution may have another name here.
        make.arg(format!("CC={COMPILER}"));
        // A kernel of a newer compiler has attributes in its headers that this one does not know.
        make.arg("KCFLAGS=-Wno-attributes");
        Ok(make)
    }
}
