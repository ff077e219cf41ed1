//! The first line of a script, read as Linux reads it (fs/binfmt_script.c).

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Number of bytes of a file in which Linux looks for the `#!` line (BINPRM_BUF_SIZE).
pub(super) const LINE_BYTES: usize = 256;

/// The interpreter and argument of a script's `#!` line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Shebang {
    pub(super) interpreter: PathBuf,
    /// All words after it, which Linux hands over as one argument.
    pub(super) argument: Option<OsString>,
}

impl Shebang {
    /// Parses the beginning of a file; `None` if it is no script.
    pub(super) fn parse(head: &[u8]) -> Option<Self> {
        let head = head.get(..head.len().min(LINE_BYTES))?;
        let line = head.strip_prefix(b"#!")?.split(|&byte| byte == b'\n').next()?;
        let line = line.split(|&byte| byte == 0).next()?.trim_ascii();
        let end = line.iter().position(|&byte| matches!(byte, b' ' | b'\t')).unwrap_or(line.len());
        let (interpreter, argument) = line.split_at(end);
        let argument = argument.trim_ascii();
        (!interpreter.is_empty()).then(|| Self {
            interpreter: PathBuf::from(OsStr::from_bytes(interpreter)),
            argument: (!argument.is_empty()).then(|| OsStr::from_bytes(argument).to_owned()),
        })
    }

    /// The program that `env` will look for in PATH, if the interpreter is `env`. Its argument has to be a plain
    /// `NAME`, or `-S` with assignments and a name.
    pub(super) fn name_for_env(&self) -> Option<&OsStr> {
        if Path::new(self.interpreter.file_name()?) != Path::new("env") {
            return None;
        }
        let argument = self.argument.as_deref()?.as_bytes();
        let name = match argument.strip_prefix(b"-S") {
            None => argument,
            Some(words) => words
                .split(u8::is_ascii_whitespace)
                .find(|word| !word.is_empty() && !word.contains(&b'='))?,
        };
        let is_name = !name.starts_with(b"-") && !name.contains(&b'=');
        is_name.then(|| OsStr::from_bytes(name))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(head: &str) -> Shebang {
        Shebang::parse(head.as_bytes()).unwrap()
    }

    #[test]
    fn splits_interpreter_and_the_one_argument() {
        let shebang = parse("#! /bin/awk  -f x \nBEGIN {}");
        assert_eq!(shebang.interpreter, Path::new("/bin/awk"));
        assert_eq!(shebang.argument.unwrap(), "-f x");
        assert_eq!(parse("#!/bin/sh").argument, None);
    }

    #[test]
    fn what_has_no_interpreter_is_no_script() {
        for head in ["", "#", "#!", "#! \t\n/bin/sh", "echo", "\u{7f}ELF"] {
            assert_eq!(Shebang::parse(head.as_bytes()), None, "{head:?}");
        }
    }

    #[test]
    fn env_looks_for_a_name() {
        let name = |head| parse(head).name_for_env().map(|name| name.to_owned());
        assert_eq!(name("#!/usr/bin/env python3\n").unwrap(), "python3");
        assert_eq!(name("#!/usr/bin/env -S A=b python3 -u\n").unwrap(), "python3");
        assert_eq!(name("#!/usr/bin/env -i\n"), None);
        assert_eq!(name("#!/usr/bin/env\n"), None);
        assert_eq!(name("#!/bin/sh -S python3\n"), None);
    }

    proptest! {
        #[test]
        fn takes_any_bytes(head in proptest::collection::vec(any::<u8>(), 0..600)) {
            let mut script = b"#!".to_vec();
            script.extend(&head);
            for bytes in [&head, &script] {
                if let Some(shebang) = Shebang::parse(bytes) {
                    prop_assert!(shebang.interpreter.as_os_str().len() <= LINE_BYTES);
                    let _ = shebang.name_for_env();
                }
            }
        }
    }
}
