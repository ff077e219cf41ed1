//! Building a module of this project for a kernel.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Kernel;
use crate::error::Error;
use crate::tools;

impl Kernel {
    /// Builds the module whose sources, `Kbuild` and `Makefile` (variables `KDIR` and `BUILD`) are in
    /// `source`, in a folder of this kernel below `work`, and returns the `.ko` file, named like the
    /// source folder. What is built already is not built again.
    ///
    /// # Errors
    ///
    /// [`Error::NoHeaders`] if the kernel's headers are not installed, [`Error::Command`] with the
    /// compiler's last words.
    pub fn build_module(&self, source: &Path, work: &Path) -> Result<PathBuf, Error> {
        let headers = self
            .headers()
            .ok_or_else(|| Error::NoHeaders(self.release().to_owned()))?;
        let file = |path: &Path| {
            let path = path.to_owned();
            move |source| Error::File { path, source }
        };
        let source = source.canonicalize().map_err(file(source))?;
        let name = source.file_name().unwrap_or_default();
        let build = work.join(self.release()).join(name);
        fs::create_dir_all(&build).map_err(file(&build))?;
        let build = build.canonicalize().map_err(file(&build))?;
        let mut make = Command::new(tools::find("make")?);
        make.arg("-s").arg("-C").arg(&source);
        make.arg(format!("KDIR={}", headers.display()))
            .arg(format!("BUILD={}", build.display()));
        // A make above this one would pass on its own targets and flags.
        for variable in ["MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES"] {
            make.env_remove(variable);
        }
        tools::output(&mut make)?;
        Ok(build.join(name).with_extension("ko"))
    }
}
