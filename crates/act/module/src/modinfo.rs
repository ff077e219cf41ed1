//! Reads a `.ko` file's `.modinfo` section, and whether it is signed.

use std::fs;
use std::path::Path;

use luc_units::OnPath as _;
use object::{Object as _, ObjectSection as _};

use crate::Error;

/// End of a signed module, behind its signature (`MODULE_SIG_STRING`, include/linux/module_signature.h).
const SIGNATURE_END: &[u8] = b"~Module signature appended~\n";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModInfo {
    /// The module's version; empty if it has none.
    pub version: String,
    /// The release of the kernel that it was built for.
    pub kernel: String,
    pub parameters: Vec<String>,
    /// Whether it ends in a signature.
    pub is_signed: bool,
}

impl ModInfo {
    /// Reads a `.ko` file that is not compressed.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::NotAModule`].
    pub fn read(path: &Path) -> Result<Self, Error> {
        let bytes = fs::read(path).map_err(Error::io("read", path))?;
        Self::parse(&bytes).map_err(|reason| Error::NotAModule { path: path.to_owned(), reason })
    }

    fn parse(bytes: &[u8]) -> Result<Self, String> {
        let elf = object::File::parse(bytes).map_err(|error| error.to_string())?;
        let section = elf.section_by_name(".modinfo").ok_or("it has no .modinfo section")?;
        let data = section.data().map_err(|error| error.to_string())?;
        let fields = || {
            data.split(|&byte| byte == 0)
                .filter_map(|field| std::str::from_utf8(field).ok()?.split_once('='))
        };
        let find = |name| fields().find(|(key, _)| *key == name).map(|(_, value)| value);
        let magic = find("vermagic").ok_or("it has no version magic")?;
        Ok(Self {
            version: find("version").unwrap_or_default().to_owned(),
            kernel: magic.split(' ').next().unwrap_or_default().to_owned(),
            parameters: fields()
                .filter(|(key, _)| *key == "parm")
                .filter_map(|(_, value)| Some(value.split_once(':')?.0.to_owned()))
                .collect(),
            is_signed: bytes.ends_with(SIGNATURE_END),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_module_s_own_words_are_read() {
        let place = tempfile::tempdir().unwrap();
        let source = place.path().join("m.c");
        fs::write(
            &source,
            r#"__attribute__((section(".modinfo"), used)) static const char info[] =
               "version=1.2\0parm=policy:for new journals\0vermagic=6.1.0-18-amd64 SMP mod_unload ";"#,
        )
        .unwrap();
        let path = place.path().join("m.ko");
        let compiled = Command::new("cc").arg("-c").arg(&source).arg("-o").arg(&path).status();
        if !compiled.is_ok_and(|status| status.success()) {
            luc_testkit::skipped!("no C compiler");
            return;
        }
        let info = ModInfo::read(&path).unwrap();
        assert_eq!((info.version.as_str(), info.kernel.as_str()), ("1.2", "6.1.0-18-amd64"));
        assert_eq!(info.parameters, ["policy"]);
        assert!(!info.is_signed);
        let mut bytes = fs::read(&path).unwrap();
        bytes.extend_from_slice(SIGNATURE_END);
        assert!(ModInfo::parse(&bytes).unwrap().is_signed);
        for end in (0..bytes.len()).step_by(7) {
            let _ = ModInfo::parse(&bytes[..end]);
        }
    }

    #[test]
    fn what_is_no_module_is_refused() {
        let error = ModInfo::parse(b"text").unwrap_err();
        assert!(!error.is_empty());
        let program = std::env::current_exe().unwrap();
        let error = ModInfo::read(&program).unwrap_err().to_string();
        assert!(error.contains(".modinfo"), "{error}");
    }
}
